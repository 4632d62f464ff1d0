package server

import (
	"context"

	"github.com/destkit/destkit/server/internal/inspect"
	"github.com/destkit/destkit/server/internal/sync/audit"
)

// DryRunRequest says what to plan, and DryRun is what the next run of a sync would do.
type (
	DryRunRequest = inspect.DryRunRequest
	DryRun        = inspect.DryRun
	DryRunActions = inspect.DryRunActions
	DryRunReason  = inspect.DryRunReason
	DryRunRecord  = inspect.DryRunRecord
	DryRunFailure = inspect.DryRunFailure
)

// Explained is the way of one record through a run.
type (
	Explained         = inspect.Explained
	ExplainedPrints   = inspect.ExplainedPrints
	ExplainedAttempt  = inspect.ExplainedAttempt
	ExplainedExchange = inspect.ExplainedExchange
	ExplainedRetry    = inspect.ExplainedRetry
)

// AuditRequest says what to audit and how the destination is read.
type (
	AuditRequest = inspect.AuditRequest
	AuditHook    = inspect.AuditHook
)

// DryRun tells what the next run of a sync would do, by the code of a run. Nothing is
// sent and nothing is written, but for the kept objects of the destination, which are
// asked for again when they are old, as any reading of them does. A sync with an
// active run is refused: what that sends is known only at its end.
func (s *Server) DryRun(ctx context.Context, id int64, q DryRunRequest) (*DryRun, error) {
	return s.inspect.DryRun(ctx, id, q)
}

// Explain tells one record's way through a run; with runID 0 through the latest
// run of the sync. identifier is JSON text or plain text.
func (s *Server) Explain(ctx context.Context, syncID, runID int64, identifier string) (*Explained, error) {
	return s.inspect.Explain(ctx, syncID, runID, identifier)
}

// Audit reads what the destination of a sync has stored and holds it against
// the ledger and the source. Nothing is changed. A sync
// that is not there, a request that is wrong, a source or a hook that cannot be
// read are errors; what is wrong with records is in the report.
func (s *Server) Audit(ctx context.Context, q AuditRequest) (*audit.Report, error) {
	return s.inspect.Audit(ctx, q)
}
