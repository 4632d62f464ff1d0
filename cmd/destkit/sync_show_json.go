package main

import (
	"encoding/json"
	"io"
	"math"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
)

// jsonDisplay writes one object on a line whenever a run has changed.
type jsonDisplay struct {
	out, screen io.Writer
	said        map[int64]string
}

// runLine is a line of --json. The run is as the API shows it; figures that
// nobody knows are null.
type runLine struct {
	Run              api.SyncRun `json:"sync_run"`
	Label            *string     `json:"label"`
	ElapsedSeconds   float64     `json:"elapsed_seconds"`
	RecordsPerSecond float64     `json:"records_per_second"`
	RowsPerSecond    float64     `json:"rows_per_second"`
	SecondsLeft      *float64    `json:"seconds_left"`
}

func (d *jsonDisplay) moment(active []view) {
	for _, v := range active {
		d.line(v)
	}
}

func (d *jsonDisplay) ended(v view) {
	d.line(v)
	delete(d.said, v.run.ID)
}

func (d *jsonDisplay) note(text string) { foreign.Println(d.screen, text) }

func (d *jsonDisplay) line(v view) {
	state, err := json.Marshal(v.run)
	if err != nil || d.said[v.run.ID] == string(state) {
		return
	}
	d.said[v.run.ID] = string(state)
	l := runLine{v.run, v.sync.Label, thousandth(v.elapsed.Seconds()), thousandth(v.recordsPerSecond), thousandth(v.rowsPerSecond), nil}
	if v.left >= 0 {
		l.SecondsLeft = api.Ptr(v.left.Seconds())
	}
	_ = foreign.EncodeJSON(d.out, l, "") // a reader that is gone must not stop anything
}

func thousandth(f float64) float64 { return math.Round(f*1000) / 1000 }
