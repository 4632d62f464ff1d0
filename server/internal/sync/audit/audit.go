// Package audit proves from both sides what the runs of a sync have claimed: the
// records that a destination has stored, read by a way that no run writes by,
// are held against the ledger of the sync and against its source. It recounts
// the ledger and compares every record by its content; nothing that it finds is
// corrected.
//
// It refuses to know the REST API, the store of the service, and how records are
// sent. It writes nothing but scratch files, and its memory does not grow with
// the number of records.
package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// The kinds of findings. Refused and Foreign are information; Foreign counts
// where a run replaces the whole object.
const (
	Lost           = "lost"           // acknowledged, and not stored
	Unacknowledged = "unacknowledged" // stored or removed, though the last verdict is no success
	Changed        = "changed"        // stored with another value
	Duplicate      = "duplicate"      // stored more than once
	Leftover       = "leftover"       // stored, though it was removed or is gone from the source of a mirror
	Missing        = "missing"        // valid in the source, but never sent by a run marked completed
	Counter        = "counter"        // a counter of a run is not the sum over its ledger
	Foreign        = "foreign"        // stored, and never sent
	Refused        = "refused"        // the destination refused it, and the run reports so
)

// Job is one audit with everything that it needs, open. The caller closes its
// parts.
type Job struct {
	Sync   int64
	Config api.SyncConfig
	Plan   *mapping.Plan // of Config, as the next run would have it
	Ledger *ledger.Sync
	// Runs are those of the sync that are over, in ascending order of their ids; Active means
	// that one is not, so that its source and counters prove nothing yet.
	Runs   []api.SyncRun
	Active bool

	// Source is left out with LedgerOnly.
	Source     source.Reader
	Object     source.Object
	LedgerOnly bool
	// Events means that the ledger has a record for each message of a topic, by
	// its position and not by its identifier.
	Events bool

	// Destination holds the stored records.
	Destination Destination
	// TrueSwap means that upload_and_swap replaces the whole object there.
	TrueSwap bool
	// Handled means that the destination handles options of mappings
	// besides storing: preserved values, merged arrays, lookups.
	Handled bool
	// Content means that records are identified by their content, since no
	// identifier of them is stored; Texts that all of it is stored as text.
	Content, Texts bool
	// SkipsAcknowledged is for a destination that answers success to an insert of
	// a record that exists and to an update of one that does not.
	SkipsAcknowledged bool

	Limit   int    // findings in the report; 100 when zero
	Scratch string // folder for what does not fit into memory; "" is the system's
}

// Report is what an audit has found.
type Report struct {
	Clean    bool             `json:"clean"` // no finding but Refused and Foreign
	SyncID   int64            `json:"sync_id"`
	RunID    *int64           `json:"sync_run_id"` // the last run that is over; nil: none is
	Checked  Checked          `json:"checked"`
	Totals   map[string]int64 `json:"totals"` // findings by kind, those that are not listed too
	Findings []Finding        `json:"findings"`
	// Truncated means that there are more findings than are listed.
	Truncated bool `json:"truncated"`
}

// Checked counts what the audit covered: rows of the source, identifiers that
// the ledger knows, records of the destination, and runs.
type Checked struct {
	Source      int64 `json:"source"`
	Ledger      int64 `json:"ledger"`
	Destination int64 `json:"destination"`
	Runs        int64 `json:"runs"`
}

// Finding is one thing that is not as it was claimed. Identifier is null for a
// counter, Field names a field of the record or a counter and is null where the
// whole record is meant. Expected and Actual are JSON, null for nothing.
type Finding struct {
	Kind       string          `json:"kind"`
	Identifier json.RawMessage `json:"identifier"`
	RunID      *int64          `json:"sync_run_id"` // that claimed it; nil: not known any more
	Field      *string         `json:"field"`
	Message    string          `json:"message"`
	Expected   json.RawMessage `json:"expected"`
	Actual     json.RawMessage `json:"actual"`
}

// audit is one under way.
type audit struct {
	job     Job
	report  Report
	changed bool // the operation sends a record again when it changes
	deletes bool // rows missing from the source are deleted
	last    *api.SyncRun
	// completed reports that the last run claims to have dealt with all of the source.
	completed bool
	fields    map[string]mapping.Field
	volatile  map[string]bool // fields that differ from run to run
	sums      map[int64]*sums
	invalids  int64      // rows of the source that a run would not send
	mark      *time.Time // rows before it were dealt with; nil: all
	log       source.Log // of a topic; nil: the source has tables
	position  int64      // messages up to here were dealt with
	gaps      bool       // records sent long ago are not known any more
}

// ReadError means that one of the two ends could not be read.
type ReadError struct {
	What string // source or destination
	Err  error
}

func (e *ReadError) Error() string { return "read " + e.What + ": " + e.Err.Error() }
func (e *ReadError) Unwrap() error { return e.Err }

// Audit looks at every record once. Errors mean that the source, ledger or
// destination cannot be read; wrong records are in the report.
func Audit(ctx context.Context, job Job) (*Report, error) {
	a := &audit{job: job, sums: map[int64]*sums{}, volatile: map[string]bool{}, fields: map[string]mapping.Field{}}
	a.job.Limit = cmp.Or(job.Limit, 100)
	a.report = Report{SyncID: job.Sync, Totals: map[string]int64{}, Findings: []Finding{}}
	if n := len(job.Runs); n > 0 {
		a.last = &job.Runs[n-1]
		a.report.RunID = &a.last.ID
	}
	a.completed = !job.LedgerOnly && !job.Active && a.last != nil && a.last.Status == api.RunCompleted
	a.readConfig()
	walk := a.walk
	if job.Content {
		walk = a.walkContent
	}
	if err := walk(ctx); err != nil {
		return nil, err
	}
	if err := a.counters(); err != nil {
		return nil, err
	}
	a.report.Clean = true
	for kind := range a.report.Totals {
		if kind != Refused && (kind != Foreign || a.swaps()) {
			a.report.Clean = false
		}
	}
	return &a.report, nil
}

// readConfig takes from the configuration what the operation promises (spec 2.6).
func (a *audit) readConfig() {
	c := &a.job.Config
	switch c.Operation {
	case api.OperationUpsert, api.OperationUpdate:
		a.changed = true
	case api.OperationMirror:
		a.changed, a.deletes = true, c.MirrorStrategy == nil || *c.MirrorStrategy != api.MirrorNulls
	}
	for _, f := range a.job.Plan.Fields() {
		a.fields[f.FullName] = f
	}
	for i := range c.Mappings {
		m := &c.Mappings[i]
		var name string
		if m.From.Type == api.FromSyncMetadata && json.Unmarshal(m.From.Data, &name) == nil && name == mapping.MetadataRunID {
			a.volatile[m.To] = true
		}
	}
}

// swaps reports whether the object was replaced as a whole: nothing foreign may
// be in it then.
func (a *audit) swaps() bool {
	s := a.job.Config.MirrorStrategy
	return a.job.TrueSwap && a.completed && a.job.Config.Operation == api.OperationMirror && s != nil && *s == api.MirrorSwap
}

// find adds a finding.
func (a *audit) find(f Finding) {
	a.report.Totals[f.Kind]++
	if len(a.report.Findings) >= a.job.Limit {
		a.report.Truncated = true
		return
	}
	for _, raw := range []*json.RawMessage{&f.Identifier, &f.Expected, &f.Actual} {
		if *raw = append(json.RawMessage(nil), *raw...); len(*raw) == 0 { // its memory is used again
			*raw = json.RawMessage("null")
		}
	}
	a.report.Findings = append(a.report.Findings, f)
}
