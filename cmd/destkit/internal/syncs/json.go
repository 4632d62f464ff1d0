package syncs

import (
	"encoding/json"
	"io"
	"math"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
)

// lines writes one object on a line whenever a run has changed.
type lines struct {
	out, screen io.Writer
	said        map[int64]string
}

// Line is a line of --json. The run is as the API shows it; figures that
// are not known are null.
type Line struct {
	Run              api.SyncRun `json:"sync_run"`
	Label            *string     `json:"label"`
	ElapsedSeconds   float64     `json:"elapsed_seconds"`
	RecordsPerSecond float64     `json:"records_per_second"`
	RowsPerSecond    float64     `json:"rows_per_second"`
	SecondsLeft      *float64    `json:"seconds_left"`
}

func (d *lines) Moment(active []View) {
	for _, v := range active {
		d.line(v)
	}
}

func (d *lines) Ended(v View) {
	d.line(v)
	delete(d.said, v.Run.ID)
}

func (d *lines) Note(text string) { foreign.Println(d.screen, text) }

func (d *lines) line(v View) {
	state, err := json.Marshal(v.Run)
	if err != nil || d.said[v.Run.ID] == string(state) {
		return
	}
	d.said[v.Run.ID] = string(state)
	l := Line{v.Run, v.Sync.Label, thousandth(v.Elapsed.Seconds()), thousandth(v.RecordsPerSecond), thousandth(v.RowsPerSecond), nil}
	if v.Left >= 0 {
		l.SecondsLeft = api.Ptr(v.Left.Seconds())
	}
	_ = foreign.EncodeJSON(d.out, l, "") // a reader that is gone must not stop anything
}

func thousandth(f float64) float64 { return math.Round(f*1000) / 1000 }
