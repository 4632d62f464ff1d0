package syncs

import (
	"io"
	"time"

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

// plainEvery is how often a run that goes on is told of where no line can be
// taken back.
const plainEvery = 10 * time.Second

// plain writes a line when something changes, for logs and pipes.
type plain struct {
	out, screen io.Writer
	now         func() time.Time
	said        map[int64]spoken
}

// spoken is what was last said about a run.
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
