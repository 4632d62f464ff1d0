// Package syncs owns the resource of the API that runs work on: syncs, how they are
// checked before they are stored, their runs, and the records of those. What a run does is
// left to runs, what columns mean to columns.
package syncs

import (
	"log/slog"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/destinations"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// Parts are what the resource needs of the service.
type Parts struct {
	Shared       *call.Shared
	Log          *slog.Logger
	Clock        *clock.Clock
	Sources      *sources.Sources
	Destinations *destinations.Destinations
	Gate         *destination.Gate
	Schedule     *runs.Schedule
	Runs         *runs.Engine
	Ledger       func() *ledger.Ledger // opened after the parts were assembled
	Ends         ends
}

// ends ends what is done for syncs.
type ends interface {
	// Forget drops what a deleted sync leaves behind.
	Forget(id int64) error
}

// Handlers answer the operations.
type Handlers struct {
	shared       *call.Shared
	log          *slog.Logger
	clock        *clock.Clock
	sources      *sources.Sources
	destinations *destinations.Destinations
	gate         *destination.Gate
	schedule     *runs.Schedule
	runs         *runs.Engine
	ledger       func() *ledger.Ledger
	ends         ends
	replies      *rendered
}

// New assembles them.
func New(p Parts) *Handlers {
	return &Handlers{
		shared: p.Shared, log: p.Log, clock: p.Clock, sources: p.Sources, destinations: p.Destinations,
		gate: p.Gate, schedule: p.Schedule, runs: p.Runs, ledger: p.Ledger, ends: p.Ends, replies: newRendered(),
	}
}

// Operations are the handlers by the ids that the OpenAPI document gives them.
func (h *Handlers) Operations() map[string]call.Handler {
	return map[string]call.Handler{
		"listSyncs":           h.listSyncs,
		"createSync":          h.createSync,
		"fetchSync":           h.fetchSync,
		"updateSync":          h.updateSync,
		"deleteSync":          h.deleteSync,
		"triggerSync":         h.triggerSync,
		"listSyncRuns":        h.listSyncRuns,
		"fetchSyncRun":        h.fetchSyncRun,
		"cancelSyncRun":       h.cancelSyncRun,
		"fetchSyncRunRecords": h.fetchSyncRunRecords,
	}
}

// ForgetReplies drops the replies that are kept: a restored world has other rows under
// the ids.
func (h *Handlers) ForgetReplies() { h.replies.forget() }
