package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/plural"
)

// terminal reports whether w is a terminal.
func terminal(w io.Writer) bool {
	file, ok := foreign.Raw(w).(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// terminalInput reports whether a person can answer.
func terminalInput(cmd *cobra.Command) bool {
	file, ok := cmd.InOrStdin().(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// colourful reports whether colours are written to w: on a terminal, and where
// FORCE_COLOR or CLICOLOR_FORCE asks for them. --no-color and NO_COLOR forbid them
// everywhere, TERM=dumb and CLICOLOR=0 on a terminal.
func colourful(w io.Writer, refused bool) bool {
	forced := func(name string) bool {
		value := os.Getenv(name)
		return value != "" && value != "0" && value != "false"
	}
	switch {
	case refused || os.Getenv("NO_COLOR") != "":
		return false
	case forced("FORCE_COLOR") || forced("CLICOLOR_FORCE"):
		return true
	}
	return terminal(w) && os.Getenv("TERM") != "dumb" && os.Getenv("CLICOLOR") != "0"
}

// progressEvery is the time between two lines about a command that goes on, where no
// line can be drawn over.
const progressEvery = 10 * time.Second

// progress shows how far a judgement is: a bar on a terminal, a line now and then
// elsewhere. It returns the function that takes the steps and the function that ends
// the display; both can be called when nothing is shown.
func progress(w io.Writer, quiet bool) (step func(conformance.Progress), done func()) {
	switch {
	case quiet:
		return nil, func() {}
	case !terminal(w):
		return progressLines(w)
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

// progressLines writes a line every ten seconds, also while no check ends.
func progressLines(w io.Writer) (step func(conformance.Progress), done func()) {
	var mu sync.Mutex
	var last conformance.Progress
	done = everyTenSeconds(w, func(after time.Duration) string {
		mu.Lock()
		p := last
		mu.Unlock()
		if p.Total == 0 {
			return fmt.Sprintf("judging for %s: no check is done yet", after)
		}
		return fmt.Sprintf("judging for %s: %d of %s, the last was %s", after, p.Done, plural.Count(p.Total, "check"), p.Result.ID)
	})
	step = func(p conformance.Progress) {
		mu.Lock()
		defer mu.Unlock()
		last = p
	}
	return step, done
}

// goesOn writes a line every ten seconds that something still goes on, where no line can
// be drawn over, until done is called.
func goesOn(w io.Writer, quiet bool, what string) (done func()) {
	if quiet || terminal(w) {
		return func() {}
	}
	return everyTenSeconds(w, func(after time.Duration) string { return fmt.Sprintf("%s for %s", what, after) })
}

// everyTenSeconds writes what say gives for the time since the beginning, until done is
// called.
func everyTenSeconds(w io.Writer, say func(after time.Duration) string) (done func()) {
	started, ticks := time.Now(), time.NewTicker(progressEvery)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-ticks.C:
			}
			foreign.Println(w, say(time.Since(started).Round(time.Second)))
		}
	}()
	return sync.OnceFunc(func() { ticks.Stop(); close(end); <-ended })
}

// groups folds parts of what is printed in the log of GitHub Actions; nil elsewhere.
func groups(w io.Writer) func(io.Writer, string, string) error {
	if os.Getenv("GITHUB_ACTIONS") != "true" || terminal(w) {
		return nil
	}
	return foreign.Group
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
