package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/controlapi"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// The decisions, and when a record is sent again.
const (
	decisionSent    = "sent"
	decisionDeleted = "deleted"
	decisionSkipped = "skipped"
	decisionInvalid = "invalid"
	decisionLeft    = "left"

	retryThisRun = "this run"
	retryNextRun = "next run"
	retryNone    = "none"

	verdictDoubt  = "in doubt"
	verdictFailed = "failed"
)

// explainRoutes report what became of one record.
func (k *Inspector) explainRoutes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("GET", "/explain", "?sync_run_id= or ?sync_id=, &identifier= tells one record's way through a run", func(c *call.Control) (any, error) {
			query, err := c.Query("sync_run_id", "sync_id", "identifier")
			if err != nil {
				return nil, err
			}
			run, err := call.Integer(query, "sync_run_id", 0, 1, 1<<62)
			if err != nil {
				return nil, err
			}
			sync, err := call.Integer(query, "sync_id", 0, 1, 1<<62)
			if err != nil {
				return nil, err
			}
			if (run == 0) == (sync == 0) {
				return nil, problem.InvalidField("sync_run_id", "give sync_run_id, or sync_id for its latest run")
			}
			if query.Get("identifier") == "" {
				return nil, problem.InvalidField("identifier", "is required: the primary identifier of a record, as text or as JSON")
			}
			return k.Explain(c.R.Context(), sync, run, query.Get("identifier"))
		}),
	}
}

// Explain reports one record's way through a run; with runID 0 through the
// latest run of the sync. identifier is JSON text or plain text.
func (k *Inspector) Explain(ctx context.Context, syncID, runID int64, identifier string) (*controlapi.Explained, error) {
	x := &explaining{k: k}
	if err := x.find(ctx, syncID, runID); err != nil {
		return nil, err
	}
	x.key, x.other = runs.IdentifierKeys(identifier)
	if err := x.readLedger(ctx); err != nil {
		return nil, err
	}
	if err := x.readSource(ctx); err != nil {
		return nil, err
	}
	if x.found == nil {
		if x.sourceFault != "" {
			return nil, problem.Refuse(http.StatusNotFound, "the ledger of sync %d has no %s, and its source cannot be asked: %s", x.sync.ID, foreign.Clip(identifier, 100), x.sourceFault)
		}
		return nil, problem.Refuse(http.StatusNotFound, "neither the source nor the ledger of sync %d has %s", x.sync.ID, foreign.Clip(identifier, 100))
	}
	return x.tell(ctx)
}

// explaining gathers the facts about one record.
type explaining struct {
	k          *Inspector
	sync       *store.Sync
	run        *store.SyncRun
	latest     bool   // no run came after it
	key, other []byte // forms of the identifier
	found      []byte // the one that is there; nil: none is

	// Of the ledger.
	before  *ledger.Logged  // the last record of the runs before
	acked   *ledger.Logged  // the last acknowledgement of those
	events  []ledger.Logged // of the run
	later   *ledger.Logged  // the last record of the runs after
	state   *ledger.Entry
	logKept bool
	sent    []int64 // runs before that have sent something
	lost    bool    // the log of one of them is gone

	// Of the source, as it is now.
	view        *syncView
	sourceFault string
	row         json.RawMessage
	record      []byte
	invalid     string
	mark        []byte // of the high-water mark
	copies      int64
}

// find reads the run and its sync, of whichever workspace.
func (x *explaining) find(ctx context.Context, syncID, runID int64) error {
	return x.k.Shared.Store.View(ctx, func(tx *store.Tx) (err error) {
		if runID == 0 {
			x.run, err = tx.LastRun(syncID)
			if errors.Is(err, store.ErrNotFound) {
				return problem.Refuse(http.StatusNotFound, "there is no sync %d, or it has never run", syncID)
			}
		} else if x.run, err = store.SyncRuns.Any(tx, runID); errors.Is(err, store.ErrNotFound) {
			return call.Gone("sync run", runID)
		}
		if err != nil {
			return err
		}
		if x.sync, err = store.Syncs.Read(tx, x.run.WorkspaceID, x.run.SyncID); err != nil {
			return err
		}
		runs, _, err := store.SyncRuns.List(tx, x.sync.ID, store.Page{Ascending: true})
		for _, run := range runs {
			if x.latest = run.ID == x.run.ID; run.ID < x.run.ID && run.Run.RecordsProcessed != nil && *run.Run.RecordsProcessed > 0 {
				x.sent = append(x.sent, run.ID)
			}
		}
		return err
	})
}
