package syncs

import (
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
)

// View is one run at one moment.
type View struct {
	Sync Sync
	Run  api.SyncRun
	Figures
}

// Display shows runs: every moment of them, their ends, and what else there is
// to say.
type Display interface {
	Moment(active []View)
	Ended(v View)
	Note(text string)
}

// NewSyncDisplay chooses by what the user wants and where the output goes.
func NewSyncDisplay(out, screen io.Writer, asJSON, quiet bool, now func() time.Time) Display {
	switch {
	case asJSON:
		return &lines{out: out, screen: screen, said: map[int64]string{}}
	case quiet:
		return &Quiet{}
	case command.Is(screen):
		return NewBar(out, screen)
	}
	return &plain{out: out, screen: screen, now: now, said: map[int64]spoken{}}
}

// Quiet leaves everything to the exit status.
type Quiet struct{}

func (Quiet) Moment([]View) {}
func (Quiet) Ended(View)    {}
func (Quiet) Note(string)   {}

// plainEvery is how often the progress of a run is printed where no line can
// be overwritten.
const plainEvery = 10 * time.Second

// plain writes a line when something changes, for logs and pipes.
type plain struct {
	out, screen io.Writer
	now         func() time.Time
	said        map[int64]spoken
}

// spoken is the last output about a run.
type spoken struct {
	stage string
	at    time.Time
}

func (d *plain) Moment(active []View) {
	for _, v := range active {
		last, stage := d.said[v.Run.ID], v.Run.Status+" "+Text(v.Run.CurrentStep)
		if last.stage == stage && d.now().Sub(last.at) < plainEvery {
			continue
		}
		d.said[v.Run.ID] = spoken{stage, d.now()}
		foreign.Printf(d.out, "%s: %s\n", runName(v), progressText(v))
	}
}

func (d *plain) Ended(v View) {
	delete(d.said, v.Run.ID)
	foreign.Print(d.out, endText(v))
}

func (d *plain) Note(text string) { foreign.Println(d.screen, text) }

// bar draws one line that is drawn over, and keeps the ends of runs.
type bar struct {
	out, screen io.Writer
	bar         *progressbar.ProgressBar
	spinning    bool
}

// barParts is how finely the bar is divided; the last part is never drawn, as
// a full bar ends by itself.
const barParts = 1000

// NewBar draws on screen, a terminal, and writes the ends of runs to out.
func NewBar(out, screen io.Writer) Display {
	return &bar{out: out, screen: screen}
}

func (d *bar) Moment(active []View) {
	if len(active) == 0 {
		d.wipe()
		return
	}
	columns, wide := command.Columns(d.screen), 20
	text, share := runName(active[0])+": "+progressText(active[0]), active[0].Share
	if columns > 0 && columns < 120 {
		text, wide = shortText(active[0]), 10
	}
	if len(active) > 1 { // one bar for all: others would need separate lines
		text, share = sumText(active)
	}
	if unknown := share < 0; d.bar == nil || unknown != d.spinning {
		d.wipe()
		most := int64(barParts)
		if unknown {
			most = -1
		}
		d.spinning = unknown
		d.bar = progressbar.NewOptions64(most, progressbar.OptionSetWriter(foreign.Raw(d.screen)), progressbar.OptionSetWidth(wide),
			progressbar.OptionShowDescriptionAtLineEnd(), progressbar.OptionSetElapsedTime(false),
			progressbar.OptionSetPredictTime(false), progressbar.OptionUseANSICodes(true),
			// A spinner that turns by itself would go on after its end.
			progressbar.OptionSetSpinnerChangeInterval(0))
	}
	// A line that is broken cannot be drawn over.
	if rest := columns - wide - 12; rest > 0 {
		text = foreign.Clip(text, rest)
	}
	d.bar.Describe(foreign.Line(text)) // a bar that cannot be drawn must not stop anything
	_ = d.bar.Set64(min(int64(max(share, 0)*barParts), barParts-1))
}

func (d *bar) Ended(v View) {
	d.wipe()
	foreign.Print(d.out, endText(v))
}

func (d *bar) Note(text string) {
	d.wipe()
	foreign.Println(d.screen, text)
}

func (d *bar) wipe() {
	if d.bar != nil {
		_ = d.bar.Clear()
		d.bar = nil
	}
}

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
