package main

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
)

// terminal reports whether w is a terminal. NO_COLOR and TERM=dumb are honoured
// by colourful, not here: a plain terminal can still show progress.
func terminal(w io.Writer) bool {
	file, ok := foreign.Raw(w).(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// colourful reports whether colours may be written to w.
func colourful(w io.Writer, refused bool) bool {
	return terminal(w) && !refused && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// progress shows how far a run is, on a terminal only. It returns the function
// that takes the steps and the function that wipes the bar away; both may be
// called when nothing is shown.
func progress(w io.Writer, wanted bool) (step func(conformance.Progress), done func()) {
	if !wanted || !terminal(w) {
		return nil, func() {}
	}
	bar := progressbar.NewOptions(1,
		progressbar.OptionSetWriter(foreign.Raw(w)),
		progressbar.OptionSetDescription("judging"),
		progressbar.OptionShowCount(),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(false),
	)
	step = func(p conformance.Progress) {
		bar.ChangeMax(p.Total)
		bar.Describe(p.Result.ID)
		_ = bar.Set(p.Done) // a bar that cannot be drawn must not stop a run
	}
	return step, func() { _ = bar.Finish(); _ = bar.Clear() }
}

// terminalColumns is the width of the terminal behind w, 0 when it is none.
func terminalColumns(w io.Writer) int {
	file, ok := foreign.Raw(w).(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
