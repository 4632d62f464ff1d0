package runs

import (
	"context"
	"errors"

	"github.com/destkit/destkit/server/internal/descriptors"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// OpenFiles is how many files a run has open at most, besides its connections to the
// destination: the database of its source with log and index, its ledger, and what does
// not fit into memory.
const OpenFiles = 16

// admit lets a run start when there are descriptors for all that it opens: a started
// run never waits for them. Until then it is queued, and the clock moves on. The
// outcome is that of a run that has waited in vain; one whose wait was ended by another
// has none.
func (e *Engine) admit(ctx context.Context) (release func(), o executor.Outcome) {
	budget := e.Files
	release, ok := budget.Try(OpenFiles)
	if ok {
		return release, o
	}
	resume := e.Clock.Pause(ctx)
	defer resume()
	release, err := budget.Take(ctx, OpenFiles, resume)
	if err == nil {
		return release, o
	}
	var none *descriptors.ExhaustedError
	if errors.As(err, &none) {
		o = PlanFailure(&PlanError{Code: CodeFailed, Message: "the run could not begin", Detail: none.Error(), Transient: true, Cause: err})
	}
	return func() {}, o
}
