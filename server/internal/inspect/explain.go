package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// Explained is one record's way through a run (GET /_control/explain).
type Explained struct {
	SyncID     int64           `json:"sync_id"`
	RunID      int64           `json:"sync_run_id"`
	Identifier json.RawMessage `json:"identifier"`
	// SourceRow is the row as the source has it now, Record what it is mapped to,
	// Invalid why it cannot be sent, Copies how often its identifier stands there.
	SourceRow   json.RawMessage `json:"source_row"`
	SourceError *string         `json:"source_error"` // the source cannot be read now
	Copies      int64           `json:"copies"`
	Record      json.RawMessage `json:"record"`
	Invalid     *string         `json:"invalid"`
	Prints      ExplainedPrints `json:"fingerprints"`
	// Decision is sent, deleted, skipped, invalid or left, Reason why.
	Decision string             `json:"decision"`
	Reason   string             `json:"reason"`
	Attempts []ExplainedAttempt `json:"attempts"`
	Verdict  *string            `json:"verdict"` // that counts; nil: nothing was sent
	Message  string             `json:"message"`
	Next     ExplainedRetry     `json:"next_retry"`
	// SchemaChanges are the columns of the source that the run found other than the one
	// before it.
	SchemaChanges []api.SchemaChange `json:"schema_changes"`
}

// ExplainedPrints are fingerprints in hex; nil where there is none.
type ExplainedPrints struct {
	Before *string `json:"before"` // of what was acknowledged before the run
	After  *string `json:"after"`  // and after it
	Now    *string `json:"now"`    // of Record
}

// ExplainedAttempt is one call that carried the record.
type ExplainedAttempt struct {
	Number      int64           `json:"number"`
	Operation   string          `json:"operation"`
	StartedAt   *api.Time       `json:"started_at"`
	CompletedAt *api.Time       `json:"completed_at"`
	Verdict     string          `json:"verdict"`
	Message     string          `json:"message"`
	Record      json.RawMessage `json:"record"`
	Call        *string         `json:"call"` // the JSON-RPC id
	// Exchange is the call in the journal; nil when that has forgotten it.
	Exchange *ExplainedExchange `json:"exchange"`
}

// ExplainedExchange is a call as the journal has it: params and result without
// secrets, null above 16 KiB.
type ExplainedExchange struct {
	ID            string          `json:"id"` // in /_control/journal/calls
	Request       json.RawMessage `json:"request"`
	Response      json.RawMessage `json:"response"`
	RequestBytes  int64           `json:"request_bytes"`
	ResponseBytes int64           `json:"response_bytes"`
	Status        int             `json:"status"`
	Outcome       string          `json:"outcome"`
	Error         string          `json:"error"`
}

// ExplainedRetry says when the record is sent again: this run, next run or none.
type ExplainedRetry struct {
	When string    `json:"when"`
	At   *api.Time `json:"at"` // of the next scheduled run
}

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

// explainRoutes tell what became of one record.
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

// Explain tells one record's way through a run; with runID 0 through the latest
// run of the sync. identifier is JSON text or plain text.
func (k *Inspector) Explain(ctx context.Context, syncID, runID int64, identifier string) (*Explained, error) {
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

// explaining gathers what is known of one record.
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
		} else if x.run, err = tx.AnySyncRun(runID); errors.Is(err, store.ErrNotFound) {
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
