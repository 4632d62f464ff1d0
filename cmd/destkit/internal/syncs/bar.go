package syncs

import (
	"io"

	"github.com/schollz/progressbar/v3"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/internal/foreign"
)

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
	if len(active) > 1 { // one bar for all: others would need lines of their own
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
