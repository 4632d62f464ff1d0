package runs

import (
	"encoding/json"
	"time"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// Kept is how long the records of a run are kept after its end.
const Kept = 14 * 24 * time.Hour

// Forgotten reports whether the time for which a run's records are kept is over.
func Forgotten(run *store.SyncRun, now time.Time) bool {
	return run.Run.CompletedAt != nil && !now.Before(run.Run.CompletedAt.Add(Kept))
}

// ShownRecord is one record of the ledger as the API shows it. event is the
// EventField of its sync.
func ShownRecord(l *ledger.Logged, event string) api.SyncRunRecord {
	r := api.SyncRunRecord{
		RecordPayload: l.Payload, Identifier: RecordIdentifier(event, &l.Record), Operation: l.Batch.Operation, Status: l.Verdict.String(),
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

// InDoubt reports whether a record was sent and not answered.
func InDoubt(r *ledger.Record) bool {
	return r.Verdict == ledger.Rejected && r.Message == executor.InDoubt
}

// EventField is the field of the identifier in the records of a sync whose
// ledger goes by the position of messages; "" where it goes by identifiers.
func EventField(y *store.Sync) string {
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

// RecordIdentifier is the identifier of a logged record. For a message it is in
// the sent record; one under way has none yet.
func RecordIdentifier(event string, r *ledger.Record) []byte {
	if event == "" || r.Verdict == ledger.Invalid {
		return r.Key
	}
	var record map[string]json.RawMessage
	if json.Unmarshal(r.Payload, &record) != nil || record[event] == nil {
		return nil
	}
	return mapping.AppendCanonical(nil, record[event])
}

// IdentifierKeys are the forms that an identifier may have in the ledger: people type
// JSON text or plain text, and 42 may mean "42".
func IdentifierKeys(text string) (key, other []byte) {
	quoted := rawjson.AppendString(nil, text)
	if json.Valid([]byte(text)) {
		value := mapping.AppendCanonical(nil, []byte(text))
		if value[0] == '"' || value[0] == '-' || value[0] >= '0' && value[0] <= '9' {
			return value, mapping.AppendCanonical(nil, quoted)
		}
	}
	return mapping.AppendCanonical(nil, quoted), nil
}
