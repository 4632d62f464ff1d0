package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/executor"
	"github.com/destkit/destkit/server/ledger"
	"github.com/destkit/destkit/server/mapping"
	"github.com/destkit/destkit/server/store"
)

// recordsKept is how long the records of a run are kept after its end (facts B1,
// B3).
const recordsKept = 14 * 24 * time.Hour

// fetchSyncRunRecords lists what became of each record of a run (facts B3).
func (s *Server) fetchSyncRunRecords(c *call) (*reply, error) {
	var run *store.SyncRun
	err := c.view(func(tx *store.Tx) (err error) {
		run, err = tx.SyncRun(c.who.WorkspaceID, c.id("sync_run_id"))
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.forgotten(run) {
		return nil, refuse(http.StatusGone, "the records of this run are not kept any more; they are for 14 days")
	}
	query := c.r.URL.Query()
	filter := ledger.Filter{Operation: query.Get("operation")}
	if text := query.Get("primary_identifier"); text != "" {
		filter.Key, filter.OrKey = identifierKeys(text)
	}
	for _, verdict := range []ledger.Verdict{ledger.Acknowledged, ledger.Rejected, ledger.Invalid} {
		if verdict.String() == query.Get("status") {
			filter.Verdict = verdict
		}
	}
	page := c.page()
	var records []ledger.Logged
	var total int64
	// A page so far away that its place overflows has nothing, as one past the end.
	first := (page.Number - 1) * page.PerPage
	if first/page.PerPage != page.Number-1 {
		first = 1 << 62
	}
	records, total, err = s.ledger.Sync(run.SyncID).Records(run.ID, filter, first, page.PerPage)
	switch {
	case !errors.Is(err, ledger.ErrNoRun):
	case run.Run.RecordsProcessed != nil && *run.Run.RecordsProcessed > 0:
		return nil, refuse(http.StatusGone, "the records of this run are not kept any more: the sync has another identifier or object since")
	default: // it ended before there was anything to write down
		err = nil
	}
	if err != nil {
		return nil, err
	}
	shown := make([]api.SyncRunRecord, len(records))
	for i := range records {
		shown[i] = recordOf(&records[i])
	}
	return c.list(page, total, shown)
}

// forgotten tells whether the time of a run's records is over.
func (s *Server) forgotten(run *store.SyncRun) bool {
	return run.Run.CompletedAt != nil && !s.clock.Now().Before(run.Run.CompletedAt.Add(recordsKept))
}

// recordOf shows one record of the ledger.
func recordOf(l *ledger.Logged) api.SyncRunRecord {
	r := api.SyncRunRecord{
		RecordPayload: l.Payload, Identifier: l.Key, Operation: l.Batch.Operation, Status: l.Verdict.String(),
		BatchStartedAt: api.Time{Time: l.Batch.StartedAt}, BatchCompletedAt: api.Time{Time: l.Batch.CompletedAt},
	}
	if r.RecordPayload == nil {
		r.RecordPayload = json.RawMessage("{}")
	}
	if r.Identifier == nil {
		r.Identifier = json.RawMessage("null")
	}
	if l.Message != "" {
		r.StatusMessage = &l.Message
	}
	switch {
	case l.Verdict != ledger.Invalid:
	case l.Message == mapping.InvalidNull:
		r.Status = api.RecordNull
	case l.Message == executor.Duplicate:
		r.Status = api.RecordDuplicate
	}
	return r
}

// identifierKeys are the forms that an identifier may have in the ledger: what people
// type may be JSON text or plain text, and 42 may stand for "42".
func identifierKeys(text string) (key, other []byte) {
	quoted := rpc.AppendString(nil, text)
	if json.Valid([]byte(text)) {
		value := mapping.AppendCanonical(nil, []byte(text))
		if value[0] == '"' || value[0] == '-' || value[0] >= '0' && value[0] <= '9' {
			return value, mapping.AppendCanonical(nil, quoted)
		}
	}
	return mapping.AppendCanonical(nil, quoted), nil
}
