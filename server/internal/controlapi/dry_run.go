package controlapi

import (
	"encoding/json"

	"github.com/destkit/destkit/server/api"
)

// DryRun is what the next run of a sync would do (POST /_control/syncs/{id}/plan).
type DryRun struct {
	SyncID         int64    `json:"sync_id"`
	Label          *string  `json:"label"`
	At             api.Time `json:"at"` // on the service's clock
	Operation      string   `json:"operation"`
	FullSync       bool     `json:"full_sync"`
	FullSyncReason *string  `json:"full_sync_reason"`
	// The counters with which the run would begin to send (spec 2.9).
	SourceRecordCount    int64 `json:"source_record_count"`
	SourceRecordUpdates  int64 `json:"source_record_updates"`
	SourceRecordDeletes  int64 `json:"source_record_deletes"`
	SourceRecordInvalids int64 `json:"source_record_invalids"`
	// Actions count the records by what would become of them.
	Actions DryRunActions `json:"actions"`
	// Refused has the reasons of invalid rows, the most frequent first. Doubtful has
	// those for which the destination may refuse records that would be sent.
	Refused  []DryRunReason `json:"refused"`
	Doubtful []DryRunReason `json:"doubtful"`
	Sample   []DryRunRecord `json:"sample"`
	// Failure is how the run would fail by itself, whatever its destination answers.
	Failure    *DryRunFailure `json:"failure"`
	DurationMS float64        `json:"duration_ms"` // real time
}

// DryRunActions are counts of records; Refuse counts rows.
type DryRunActions struct {
	Create    int64 `json:"create"`
	Change    int64 `json:"change"`
	Resend    int64 `json:"resend"`
	Delete    int64 `json:"delete"`
	Refuse    int64 `json:"refuse"`
	Skip      int64 `json:"skip"`
	Unchanged int64 `json:"unchanged"`
}

// DryRunReason is why rows are invalid, or records may be refused.
type DryRunReason struct {
	Reason string `json:"reason"`
	Rows   int64  `json:"rows"`
}

// DryRunRecord is one record; Record is null where nothing would be sent, and where
// it is too large to be shown.
type DryRunRecord struct {
	Action     string          `json:"action"`
	Identifier json.RawMessage `json:"identifier"`
	Operation  *string         `json:"operation"`
	Record     json.RawMessage `json:"record"`
	Bytes      int             `json:"bytes"`
	Reason     *string         `json:"reason"`
	Rows       int64           `json:"rows"`
}

// DryRunFailure has the words of a failed run (spec 2.9).
type DryRunFailure struct {
	Code    string  `json:"error_code"`
	Message string  `json:"error_message"`
	Detail  *string `json:"error_detail"`
}
