package controlapi

import (
	"encoding/json"

	"github.com/destkit/destkit/server/api"
)

// Explained is one record's way through a run (GET /_control/explain).
type Explained struct {
	SyncID     int64           `json:"sync_id"`
	RunID      int64           `json:"sync_run_id"`
	Identifier json.RawMessage `json:"identifier"`
	// SourceRow is the row as the source has it now, Record what it is mapped to,
	// Invalid why it cannot be sent, Copies how often its identifier occurs there.
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

// ExplainedRetry holds when the record is sent again: this run, next run or none.
type ExplainedRetry struct {
	When string    `json:"when"`
	At   *api.Time `json:"at"` // of the next scheduled run
}
