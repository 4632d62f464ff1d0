package executor

import (
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/ledger"
	"github.com/destkit/destkit/server/mapping"
)

// Deviations change how a run works, one broken rule each, so that a judge of
// services can be judged. The zero value is the right behaviour.
type Deviations struct {
	// What an operation makes of the differences (spec 2.6, 4.2).

	UpsertsOnlyNew   bool // an upsert sync sends no changes
	InsertsChanges   bool // an insert sync sends changed records again
	KeepsGone        bool // sync_updates_and_deletes sends no deletes in a run that has sent upserts
	NullsDelete      bool // sync_updates_and_nulls sends deletes
	SwapsDifferences bool // upload_and_swap sends the differences only
	SendsUnchanged   bool // an upsert sync sends every record in every run

	// What is read and compared (facts C).

	RowLimit       int64 // so many rows are read and no more; 0: all
	EmptyBatch     bool  // where nothing has changed, a batch without records is sent
	SendsNull      bool  // a row without an identifier is sent
	SendsCopies    bool  // an identifier that stands more than once is sent as often
	DeletesInvalid bool  // a mirror deletes what has become a duplicate

	// What becomes of failures (spec 7.2).

	EndsOnRefusal bool // a refused record ends the run
}

// operation changes what an operation does.
func (d *Deviations) operation(o *operation, c *api.SyncConfig) {
	mirror, strategy := c.Operation == api.OperationMirror, strategyOf(c)
	switch {
	case d.UpsertsOnlyNew && c.Operation == api.OperationUpsert:
		o.changed = false
	case d.InsertsChanges && c.Operation == api.OperationInsert:
		o.changed = true
	case d.NullsDelete && mirror && strategy == api.MirrorNulls:
		o.deletes = true
	case d.SwapsDifferences && mirror && strategy == api.MirrorSwap:
		o.all = false
	case d.SendsUnchanged && c.Operation == api.OperationUpsert:
		o.all = true
	}
}

func strategyOf(c *api.SyncConfig) string {
	if c.MirrorStrategy == nil {
		return api.MirrorDeletes
	}
	return *c.MirrorStrategy
}

// keeps tells that what is gone is not deleted.
func (d *Deviations) keeps(r *run) bool {
	return d.KeepsGone && r.tally.updates > 0 && strategyOf(&r.job.Config) == api.MirrorDeletes
}

// row sees a key before it is compared, and tells whether that is all.
func (d *Deviations) row(r *run, row *entry, old *ledger.Entry) (done bool, err error) {
	switch {
	case d.RowLimit > 0 && r.tally.rows >= d.RowLimit:
		return true, nil
	case d.SendsCopies && row.copies > 1:
		for range row.copies {
			if err := r.sink(item{key: row.key, record: row.record, print: printOf(row.record)}); err != nil {
				return true, err
			}
		}
		return true, nil
	case d.DeletesInvalid && row.copies > 1 && old != nil && r.operation.deletes:
		return true, r.gone(old)
	case d.SendsNull && row.invalid == mapping.InvalidNull:
		record := append([]byte(`{"`+r.plan.Identifier()), `":null}`...)
		return true, r.sink(item{key: []byte("null"), record: record, print: printOf(record)})
	}
	return false, nil
}
