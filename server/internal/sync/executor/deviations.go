package executor

import (
	"errors"
	"slices"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// Deviations change how a run works, one broken rule each, so that a judge of
// services can be judged. The zero value is the right behaviour.
type Deviations struct {
	// Handling of differences by an operation (spec 2.6, 4.2).

	UpsertsOnlyNew   bool // an upsert sync sends no changes
	KeepsGone        bool // sync_updates_and_deletes sends no deletes in a run that has sent upserts
	NullsDelete      bool // sync_updates_and_nulls sends deletes
	SwapsDifferences bool // upload_and_swap sends the differences only
	SendsUnchanged   bool // an upsert sync sends every record in every run

	// Reading and comparing.

	SendsNull      bool // a row without an identifier is sent
	SendsCopies    bool // an identifier that occurs more than once is sent as often
	DeletesInvalid bool // a mirror deletes rows that have become duplicates

	// Handling of failures (spec 7.2).

	EndsOnRefusal     bool // a refused record ends the run
	OneRound          bool // a refused record is not sent again in the run
	ForgetsRefused    bool // a refused record is not sent again by later runs
	ForgetsDeletes    bool // … nor is a refused delete
	RetriesNeighbours bool // all records of a batch are sent again for one that was refused
	BatchesOnce       bool // a batch that brought no 200 is not sent again in the run
	NoSplit           bool // a batch that keeps failing is not split
	SteadyBackoff     bool // all waits before attempts have the same length
	SpeedOnce         bool // get_sync_speed is not tried again
	NoAnotherRun      bool // no run follows one that failed

	// Counters (spec 2.9).

	CountsRefusals     bool // each refusal of a record that is sent again, in runs without deletes
	CountsFirstRefusal bool // a refusal, where all are accepted at last

	// When everything is sent again (spec 7.2.5).

	KeepsURL     bool // not for another URL of the destination
	KeepsMapping bool // … nor for another mapping

	// How fast is sent (spec 8).

	Uncapped   bool // more than 50 batches are under way where the destination allows it
	LimitOfRun bool // each run counts its own calls against the limit of the connection
}

// operation changes what an operation does.
func (d *Deviations) operation(o *operation, c *api.SyncConfig) {
	mirror, strategy := c.Operation == api.OperationMirror, strategyOf(c)
	switch {
	case d.UpsertsOnlyNew && c.Operation == api.OperationUpsert:
		o.changed = false
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

// keeps reports whether missing records are not deleted.
func (d *Deviations) keeps(c *comparison) bool {
	return d.KeepsGone && c.tally.updates > 0 && strategyOf(&c.job.Config) == api.MirrorDeletes
}

// again is what record keeps for the next round besides refusals.
func (d *Deviations) again(p *phase, items []item, verdicts []verdict) error {
	if !d.RetriesNeighbours || p.refused == nil || !slices.Contains(verdicts, refused) {
		return nil
	}
	for i := range items {
		if verdicts[i] == accepted {
			if err := p.refused.add(items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// gives reports whether a batch is left alone after its first failure.
func (d *Deviations) gives(err error) bool {
	var call *destination.CallError
	return d.BatchesOnce && errors.As(err, &call) && call.Outcome == destination.OutcomeStatus
}

// miscount adds wrong counts to the counters.
func (d *Deviations) miscount(t *traffic, c *Counters) {
	if d.CountsRefusals && c.SourceDeletes == 0 || d.CountsFirstRefusal && c.Failed == 0 {
		extra := t.refusals.Load()
		c.Failed += extra
		c.Processed += extra
	}
}

// row sees a key before it is compared, and reports whether that is all.
func (d *Deviations) row(c *comparison, row *entry, old *ledger.Entry) (done bool, err error) {
	switch {
	case d.ForgetsRefused && row.invalid == "" && old != nil && old.Verdict == ledger.Rejected:
		c.tally.rows++
		c.tally.valid++
		return true, nil
	case d.SendsCopies && row.copies > 1:
		for range row.copies {
			if err := c.sink(item{key: row.key, record: row.record, print: printOf(row.record)}); err != nil {
				return true, err
			}
		}
		return true, nil
	case d.DeletesInvalid && row.copies > 1 && old != nil && c.operation.deletes:
		return true, c.gone(old)
	case d.SendsNull && row.invalid == mapping.InvalidNull:
		record := append([]byte(`{"`+c.plan.Identifier()), `":null}`...)
		return true, c.sink(item{key: []byte("null"), record: record, print: printOf(record)})
	}
	return false, nil
}
