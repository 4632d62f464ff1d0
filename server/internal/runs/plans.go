package runs

import (
	"context"
	"errors"
	"log/slog"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/destinations"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// Planner plans runs. Its fields are its dependencies.
type Planner struct {
	Shared       *call.Shared
	Log          *slog.Logger
	Sources      *sources.Sources
	Destinations *destinations.Destinations
	Gate         *destination.Gate
	Deviations   executor.Deviations
	// Ask makes calls of a destination with the retries of a run (executor.Ask).
	Ask func(ctx context.Context, connection int64, fn func(ctx context.Context) error) error
}

// CodeFailed is the error code of a run whose destination cannot be reached.
const CodeFailed = "PLANNING_FAILED"

// PlanError is why a run cannot be planned: the error code of the run, its message, its
// details, and the cause.
type PlanError struct {
	Code, Message, Detail string
	Transient             bool // it may pass by itself
	Cause                 error
}

func (p *PlanError) Error() string { return p.Message }
func (p *PlanError) Unwrap() error { return p.Cause }

// PlanFailure is the outcome of a run that err has kept from being planned.
func PlanFailure(err error) executor.Outcome {
	var p *PlanError
	if !errors.As(err, &p) {
		p = &PlanError{Code: CodeFailed, Message: err.Error()}
	}
	return executor.Outcome{Status: api.RunFailed, Code: p.Code, Message: p.Message, Detail: p.Detail, Transient: p.Transient, Cause: err}
}
