package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// inDoubt is the message of a record that was sent and not answered.
const inDoubt = "sent, and not answered"

// notes are what must be the same for the keys of a state to mean anything.
type notes struct {
	Connection int64  `json:"connection"`
	Object     string `json:"object"`
	Identifier string `json:"identifier"`
	Rows       bool   `json:"rows,omitempty"` // the state has the row of every key
	Topic      string `json:"topic,omitempty"`
	Events     bool   `json:"events,omitempty"` // the keys are positions
}

// keptNotes are the notes of a state with what only this package reads.
type keptNotes struct {
	notes
	warehouseNotes
}

func (r *run) notes() notes {
	n := notes{Connection: r.job.Connection, Object: r.job.DestinationObject.FullName, Identifier: r.plan.Identifier()}
	if r.stream != nil {
		n.Topic, n.Events = r.stream.topic, r.stream.events
	}
	if n.Events {
		n.Identifier = ""
	}
	return n
}

// begin opens the log of the run and decides whether every row has to be sent.
// What an interrupted run of the same number has acknowledged goes into the
// state first, so that the comparison sees it.
func (r *run) begin(ctx context.Context) error {
	r.books = r.e.options.Ledger.Sync(r.job.Sync)
	r.books.Expect(r.job.Merged)
	if err := r.missed(); err != nil {
		return err
	}
	if err := r.openLog(); err != nil {
		return err
	}
	was, readable := r.noted()
	mark, kept := r.before.HighWater, was.Rows
	was.Rows = false
	if moved := was.Advanced && r.job.Warehouse == nil; !readable || moved || was.notes != r.notes() {
		if err := r.forget(moved && was.notes == r.notes()); err != nil {
			return err
		}
		// Each message is sent once in the life of the sync, wherever to.
		if r.stream != nil && r.stream.events && was.Topic == r.stream.topic {
			r.before.HighWater = mark
		}
		was = keptNotes{}
	}
	behind, entries, err := r.openWarehouse(ctx, was)
	if err != nil {
		if r.log != nil {
			err = errors.Join(err, r.log.Close())
		}
		return err
	}
	r.kept = kept || r.before.Rows+entries == 0
	r.decideFull()
	if r.before.Damaged {
		r.job.Log.Warn("the ledger of the sync is not as it was left", "reason", r.before.Reason)
	}
	if r.stream != nil {
		if err := r.stream.resume(r.before, r.log, r.full || r.e.options.Deviations.ReadsAnew); err != nil {
			return err
		}
	}
	r.skipping = r.skips()
	if r.dry != nil || !r.log.Resumed() && !behind {
		return nil
	}
	return r.restart(ctx)
}

// logGone is why a run that goes on is a full sync.
const logGone = "the log of the run is gone; " + ledger.UnknownDeletes

// missed finds that the log of a run is gone that has sent something already.
func (r *run) missed() error {
	if r.dry != nil || r.job.Reported == 0 {
		return nil
	}
	runs, err := r.books.Runs()
	if err == nil && !slices.Contains(runs, r.job.Run) {
		err = r.books.Lose(logGone)
	}
	if err != nil {
		return failed(CodeState, err, "look for the log of the run: %v", err)
	}
	return nil
}

// noted are the notes of the state; those of this run where it has none.
func (r *run) noted() (was keptNotes, readable bool) {
	if len(r.before.Notes) == 0 {
		return keptNotes{notes: r.notes()}, true
	}
	err := json.Unmarshal(r.before.Notes, &was)
	return was, err == nil
}

// openLog begins the log, or goes on with it. A process that was killed after the
// state had taken over what the run learnt, and before anybody noted how the run
// ended, begins where the run began: with its mapping and its high-water mark. Not
// so in a topic, of which the state keeps nothing below the mark.
func (r *run) openLog() error {
	if r.dry != nil {
		return r.look()
	}
	now, err := r.books.Meta()
	if err != nil {
		return failed(CodeState, err, "read the state of the sync: %v", err)
	}
	now.Delta = r.job.Warehouse != nil
	if len(now.Notes) == 0 { // by them a state that is lost can be made anew from this log
		now.Notes = r.keptNotes()
	}
	log, err := r.books.Begin(r.job.Run, now)
	if err != nil {
		return failed(CodeState, err, "open the log of the run: %v", err)
	}
	if r.before, err = r.books.Meta(); err != nil { // after Begin, which finds damage
		return errors.Join(failed(CodeState, err, "read the state of the sync: %v", err), log.Close())
	}
	if began := log.Began(); !r.before.Damaged && r.stream == nil {
		r.before.Mapping, r.before.HighWater = began.Mapping, began.HighWater
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = log
	return nil
}

// forget drops a state whose keys are those of another identifier or another
// object: a mirror would delete what they happen to name there. So it is with
// what is left of a state that a warehouse has.
func (r *run) forget(moved bool) error {
	if err := r.dropState(); err != nil {
		return failed(CodeState, err, "drop the state of another identifier: %v", err)
	}
	if r.operation.changed && !r.full && !r.e.options.Deviations.QuietForget {
		r.full, r.reason = true, "the identifier or the destination object has changed"
		if moved {
			r.reason = engineChanged
		}
	}
	if r.dry != nil {
		r.before, r.dry.blank = ledger.Meta{}, true
		return nil
	}
	return r.openLog()
}

// dropState empties the books.
func (r *run) dropState() error {
	if r.dry != nil {
		return nil
	}
	return errors.Join(r.log.Close(), r.books.Forget())
}

// decideFull finds the conditions under which acknowledgements may be missing
// (spec 7.2.5). Records that are sent once in their life are not sent again for
// a new mapping.
func (r *run) decideFull() {
	mapping := r.before.Mapping
	switch {
	case r.before.Damaged: // said also where every row is sent for another reason
		if r.reason != "" {
			r.reason += "; "
		}
		r.full, r.reason = true, r.reason+r.before.Reason
	case r.full:
	case r.rows && !r.kept:
		r.full, r.reason = true, "delete records carry the whole row from now on"
	case !r.operation.changed, r.e.options.Deviations.KeepsMapping:
	case mapping != (ledger.Fingerprint{}) && mapping != r.mapping():
		r.full, r.reason = true, "the mappings have changed"
		if r.job.Warehouse != nil {
			r.reason = "the mappings, the types of the columns or the version of the warehouse have changed"
		}
		r.reason = cmp.Or(r.job.MappingReason, r.reason)
	}
}

// skips tells that this run takes what is there as sent: the first one of an
// append sync with skip_current_records (spec 2.6). It stays the first until one
// has come to its end, also where the ledger has lost it.
func (r *run) skips() bool {
	h := r.job.Config.HistoricalSyncOperation
	return r.job.Config.Operation == api.OperationAppend && h != nil && *h == api.HistorySkip &&
		r.before.Mapping == (ledger.Fingerprint{}) && (!r.before.Damaged || !r.job.Completed) && (r.stream == nil || !r.stream.begun)
}

// bookInvalid writes down what was not sent: the samples as records, the others
// as a number.
func (r *run) bookInvalid() error {
	if r.tally.invalids == 0 || r.dry != nil {
		return nil
	}
	now := r.e.options.Clock.Now()
	b := ledger.Batch{
		Operation: r.operation.wire, StartedAt: now, CompletedAt: now, Skipped: r.tally.invalids - int64(len(r.samples)),
	}
	for _, s := range r.samples {
		record := ledger.Record{Verdict: ledger.Invalid, Message: s.Reason}
		if s.Key != "" {
			record.Key = []byte(s.Key)
		}
		b.Records = append(b.Records, record)
	}
	if err := r.log.Append(b); err != nil {
		return failed(CodeState, err, "write down the invalid records: %v", err)
	}
	return nil
}

// operationSkip stands in the log for records that were taken as sent.
const operationSkip = "skip"

// skipper writes down rows that are taken as sent without sending them.
func (r *run) skipper() *packer {
	return &packer{records: bookRecords, bytes: largestBatch, send: func(b *batch) error {
		if r.e.options.Deviations.ForgetsSkipped {
			return nil
		}
		now := r.e.options.Clock.Now()
		return r.book(ledger.Batch{Operation: operationSkip, StartedAt: now, CompletedAt: now, Records: r.entries(b, false)})
	}}
}

// restart merges what was acknowledged so far into the state and goes on with
// the same log.
func (r *run) restart(ctx context.Context) error {
	r.resumed = r.resumed || r.log.Resumed()
	if err := r.merge(ctx, r.meta()); err != nil {
		return err
	}
	return r.openLog()
}

// merge puts the log into the state. Where a warehouse has the state, the log
// is merged into what has to be applied there, and applied.
func (r *run) merge(ctx context.Context, meta ledger.Meta) error {
	if r.job.Warehouse != nil {
		meta = r.beforeApply(meta)
	}
	if err := r.log.Finish(meta); err != nil {
		return failed(CodeState, err, "merge the log of the run into the state: %v", err)
	}
	if r.job.Warehouse == nil {
		return nil
	}
	return r.apply(ctx, meta)
}

// promise notes, before anything of a batch is sent, that its records have to be
// sent again unless a verdict follows: a process that is killed in between does
// not know what the destination did, and the source may change back before the
// next run.
func (d *delivery) promise(items []item) error {
	r := d.run
	d.log = d.log[:0]
	for i := range items {
		d.log = append(d.log, ledger.Record{Key: r.bookKey(&items[i]), Verdict: ledger.Rejected, Message: inDoubt, Delete: d.phase.delete})
		if r.rows && !d.phase.delete { // it may be the last that is known of the key
			d.log[i].Payload, d.log[i].Keep = items[i].record, true
		}
	}
	now := r.e.options.Clock.Now()
	// A pass sends each key once, so a run that was not resumed has none of them.
	err := r.log.Append(ledger.Batch{Operation: d.phase.wire, StartedAt: now, CompletedAt: now, Records: d.log, Fresh: !r.resumed})
	if err != nil {
		return failed(CodeState, err, "write down what is being sent: %v", err)
	}
	for i := range items {
		items[i].place = d.log[i].Place
	}
	return nil
}

// meta is what the state says of itself after a run that did not reach its end.
func (r *run) meta() ledger.Meta {
	m := r.before
	m.Notes = r.keptNotes()
	return m
}

// finish merges what was acknowledged into the state, whatever became of the
// run. Only a run that came to its end may say that the state is whole.
func (r *run) finish(ctx context.Context, cause error) error {
	if cause == nil {
		r.kept = r.rows
	}
	meta := r.meta()
	if cause == nil {
		meta.Mapping, meta.Damaged = r.mapping(), false
	}
	if r.water != nil {
		if mark := r.water.next(cause == nil, r.skipping); mark != nil {
			meta.HighWater, _ = json.Marshal(mark) // a moment always marshals
		}
	}
	if r.stream != nil {
		r.stream.settled(&meta, cause == nil)
	}
	err := r.merge(ctx, meta)
	r.merged = err == nil
	return err
}
