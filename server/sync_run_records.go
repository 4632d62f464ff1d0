package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// fetchSyncRunRecords lists what became of each record of a run.
func (s *Server) fetchSyncRunRecords(c *call.Call) (*call.Reply, error) {
	var run *store.SyncRun
	var y *store.Sync
	err := c.View(func(tx *store.Tx) (err error) {
		if run, err = tx.SyncRun(c.Who.WorkspaceID, c.ID("sync_run_id")); err == nil {
			y, err = tx.Sync(c.Who.WorkspaceID, run.SyncID)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.forgotten(run) {
		return nil, problem.Refuse(http.StatusGone, "the records of this run are not kept any more; they are for 14 days")
	}
	query, event := c.R.URL.Query(), eventField(y)
	filter := ledger.Filter{Operation: query.Get("operation")}
	if text := query.Get("primary_identifier"); text != "" {
		key, other := identifierKeys(text)
		if filter.Key, filter.OrKey = key, other; event != "" {
			filter = ledger.Filter{Operation: filter.Operation, Also: func(r *ledger.Record) bool {
				got := identifierOf(event, r)
				return got != nil && (bytes.Equal(got, key) || other != nil && bytes.Equal(got, other))
			}}
		}
	}
	for _, verdict := range []ledger.Verdict{ledger.Acknowledged, ledger.Rejected, ledger.Invalid} {
		if verdict.String() == query.Get("status") {
			filter.Verdict = verdict
		}
	}
	page := c.Page()
	var records []ledger.Logged
	var total int64
	// A page so far away that its place overflows has nothing, as one past the end.
	first := (page.Number - 1) * page.PerPage
	if first/page.PerPage != page.Number-1 {
		first = 1 << 62
	}
	records, total, err = s.ledger.Sync(run.SyncID).Records(run.ID, filter, first, page.PerPage)
	switch {
	case errors.Is(err, ledger.ErrDamaged):
		s.log.Error("the log of a run is damaged", "run", run.ID, "sync", run.SyncID, "error", err)
		return nil, problem.Refuse(http.StatusGone, "the records of this run cannot be read any more: the file of its log is damaged")
	case !errors.Is(err, ledger.ErrNoRun):
	case run.Run.RecordsProcessed != nil && *run.Run.RecordsProcessed > 0:
		return nil, problem.Refuse(http.StatusGone, "the records of this run are not kept any more: the sync has another identifier or object since, or its ledger was lost")
	default: // it ended before there was anything to write down
		err = nil
	}
	if err != nil {
		return nil, err
	}
	shown := make([]api.SyncRunRecord, len(records))
	for i := range records {
		shown[i] = recordOf(&records[i], event)
	}
	return c.List(page, total, shown)
}

// forgotten reports whether the time of a run's records is over.
func (s *Server) forgotten(run *store.SyncRun) bool {
	return run.Run.CompletedAt != nil && !s.clock.Now().Before(run.Run.CompletedAt.Add(runs.RecordsKept))
}

// recordOf shows one record of the ledger.
func recordOf(l *ledger.Logged, event string) api.SyncRunRecord {
	r := api.SyncRunRecord{
		RecordPayload: l.Payload, Identifier: identifierOf(event, &l.Record), Operation: l.Batch.Operation, Status: l.Verdict.String(),
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

// eventField is the field of the identifier in the records of a sync whose
// ledger goes by the position of messages; "" where it goes by identifiers.
func eventField(y *store.Sync) string {
	if kind := y.Config.SourceAttributes.Object.Type; kind != api.ObjectTopic || !executor.SentOnce(&y.Config) {
		return ""
	}
	for i := range y.Config.Mappings {
		if m := &y.Config.Mappings[i]; m.IsPrimaryIdentifier {
			return m.To
		}
	}
	return ""
}

// identifierOf is the identifier of a logged record. Of a message it stands in
// what was sent; one that is under way has none yet.
func identifierOf(event string, r *ledger.Record) []byte {
	if event == "" || r.Verdict == ledger.Invalid {
		return r.Key
	}
	var record map[string]json.RawMessage
	if json.Unmarshal(r.Payload, &record) != nil || record[event] == nil {
		return nil
	}
	return mapping.AppendCanonical(nil, record[event])
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
