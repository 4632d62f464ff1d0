// Package inspect answers questions about a sync without running it: what its next run
// would do, what became of one record, and whether its destination holds what its runs
// have claimed. Nothing is sent and nothing is changed. How an audit compares is left to
// sync/audit.
package inspect

import (
	"slices"
	"time"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// Inspector answers.
type Inspector struct {
	Shared   *call.Shared
	Clock    *clock.Clock
	Journal  *journal.Journal
	Gate     *destination.Gate
	Planning *runs.Planner
	Timeout  time.Duration // of one call of a read-back hook
	// Ledger and Executor are there when the service has started.
	Ledger   func() *ledger.Ledger
	Executor func() *executor.Executor
}

// Routes are those of the control API.
func (k *Inspector) Routes() []call.ControlRoute {
	return slices.Concat(k.explainRoutes(), k.dryRunRoutes(), k.auditRoutes())
}
