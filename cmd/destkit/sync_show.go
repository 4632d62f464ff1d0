package main

import (
	"io"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/terminal"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
)

// view is one run at one moment.
type view struct {
	sync restSync
	run  api.SyncRun
	figures
}

// display shows runs: every moment of them, their ends, and what else there is
// to say.
type display interface {
	moment(active []view)
	ended(v view)
	note(text string)
}

// newDisplay chooses by what the user wants and where the output goes.
func newDisplay(out, screen io.Writer, asJSON, quiet bool, now func() time.Time) display {
	switch {
	case asJSON:
		return &jsonDisplay{out: out, screen: screen, said: map[int64]string{}}
	case quiet:
		return &quietDisplay{}
	case terminal.Is(screen):
		return &barDisplay{out: out, screen: screen}
	}
	return &plainDisplay{out: out, screen: screen, now: now, said: map[int64]spoken{}}
}

// quietDisplay leaves everything to the exit status.
type quietDisplay struct{}

func (quietDisplay) moment([]view) {}
func (quietDisplay) ended(view)    {}
func (quietDisplay) note(string)   {}

// plainEvery is how often a run that goes on is told of where no line can be
// taken back.
const plainEvery = 10 * time.Second

// plainDisplay writes a line when something changes, for logs and pipes.
type plainDisplay struct {
	out, screen io.Writer
	now         func() time.Time
	said        map[int64]spoken
}

// spoken is what was last said about a run.
type spoken struct {
	stage string
	at    time.Time
}

func (d *plainDisplay) moment(active []view) {
	for _, v := range active {
		last, stage := d.said[v.run.ID], v.run.Status+" "+words(v.run.CurrentStep)
		if last.stage == stage && d.now().Sub(last.at) < plainEvery {
			continue
		}
		d.said[v.run.ID] = spoken{stage, d.now()}
		foreign.Printf(d.out, "%s: %s\n", runName(v), progressText(v))
	}
}

func (d *plainDisplay) ended(v view) {
	delete(d.said, v.run.ID)
	foreign.Print(d.out, endText(v))
}

func (d *plainDisplay) note(text string) { foreign.Println(d.screen, text) }
