package executor

import (
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// What the ledger says of a record where no destination said it.
const (
	// InDoubt is the message of a record that was sent and not answered.
	InDoubt = inDoubt
	// Duplicate is the reason of a record whose identifier stands more than once
	// in the source.
	Duplicate = invalidDuplicate
	// OperationSkip is the operation of records that were taken as sent
	// (historical_sync_operation skip_current_records, spec 2.6).
	OperationSkip = operationSkip
)

// HighWaterColumn names the column of the high-water mark of a sync, in its
// present or its deprecated form (spec 2.6); "" without one.
func HighWaterColumn(c *api.SyncConfig) string { return highWaterColumn(c) }

// Moment reads the value of such a column from its JSON text; false where it is
// none.
func Moment(raw []byte) (time.Time, bool) { return momentOf(raw) }

// Fingerprint is what the comparison of a run keeps of a record. mark is the value of
// the high-water mark column of its row, nil
// without one.
func Fingerprint(p *mapping.Plan, record, mark []byte) ledger.Fingerprint {
	print := printOf(p.Compared(record))
	if mark != nil {
		t, _ := momentOf(mark)
		stamp := stampOf(t)
		print = printOf(append(print[:], stamp[:]...))
	}
	return print
}

// MarkKey gives a row whose key is a hash of its content the key of its moment,
// in place: with a high-water mark equal rows of different moments are several
// records. key lies within the record.
func MarkKey(key, mark []byte) {
	if t, ok := momentOf(mark); ok {
		moment(key, stampOf(t))
	}
}
