package outputs

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// Progress shows how far a judgement is: a bar on a terminal, a line now and then
// elsewhere. It returns the function that takes the steps and the function that ends
// the display; both can be called when nothing is shown.
func Progress(w io.Writer, quiet bool) (step func(conformance.Progress), done func()) {
	switch {
	case quiet:
		return nil, func() {}
	case !command.Is(w):
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
	done = command.EveryTenSeconds(w, func(after time.Duration) string {
		mu.Lock()
		p := last
		mu.Unlock()
		if p.Total == 0 {
			return fmt.Sprintf("judging for %s: no check is done yet", after)
		}
		return fmt.Sprintf("judging for %s: %d of %s, the last was %s", after, p.Done, quantity.Count(p.Total, "check"), p.Result.ID)
	})
	step = func(p conformance.Progress) {
		mu.Lock()
		defer mu.Unlock()
		last = p
	}
	return step, done
}

// Groups folds parts of the output in the log of GitHub Actions; nil elsewhere.
func Groups(w io.Writer) func(io.Writer, string, string) error {
	if os.Getenv("GITHUB_ACTIONS") != "true" || command.Is(w) {
		return nil
	}
	return foreign.Group
}
