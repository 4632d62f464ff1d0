package executor

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// InDoubt is the message of a record that was sent and not answered.
const InDoubt = "sent, and not answered"

// notes must match for the keys of a state to be valid.
type notes struct {
	Connection int64  `json:"connection"`
	Object     string `json:"object"`
	Identifier string `json:"identifier"`
	Rows       bool   `json:"rows,omitempty"` // the state has the row of every key
	Topic      string `json:"topic,omitempty"`
	Events     bool   `json:"events,omitempty"` // the keys are positions
}

// booking is the ledger's side of a run: the state as it was, the log of sent and
// acknowledged records, and the input of the state at the end.
type booking struct {
	*terms
	progress *progress

	ledger   *ledger.Sync
	log      *ledger.Run
	before   ledger.Meta // of the state as it was
	full     bool        // every row is sent
	reason   string      // … why
	resumed  bool        // part of the log is older than this pass over the source
	skipping bool        // existing rows are taken as sent
	kept     bool        // the state has the row of every key
	merged   bool        // … and the log of the run
}

// keptNotes are the notes that the state gets from this run.
func (bk *booking) keptNotes() json.RawMessage {
	now := bk.notes()
	now.Rows = bk.rows && bk.kept
	text, _ := json.Marshal(now) // numbers and texts always marshal
	return text
}

// scan opens the state in key order.
func (bk *booking) scan() (State, error) {
	if bk.dry != nil && bk.dry.blank {
		return noState{}, nil
	}
	return bk.ledger.Scan()
}

func (t *terms) notes() notes {
	n := notes{Connection: t.job.Connection, Object: t.job.DestinationObject.FullName, Identifier: t.plan.Identifier()}
	if t.stream != nil {
		n.Topic, n.Events = t.stream.topic, t.stream.events
	}
	if n.Events {
		n.Identifier = ""
	}
	return n
}

// begin opens the log of the run and decides whether every row has to be sent.
// Acknowledgements of an interrupted run of the same number go into the state
// first, so that the comparison sees it.
func (bk *booking) begin() error {
	bk.ledger = bk.options.Ledger.Sync(bk.job.Sync)
	bk.ledger.Expect(bk.job.Merged)
	if err := bk.missed(); err != nil {
		return err
	}
	if err := bk.openLog(); err != nil {
		return err
	}
	was, readable := bk.noted()
	mark, kept := bk.before.HighWater, was.Rows
	was.Rows = false
	if !readable || was != bk.notes() {
		if err := bk.forget(); err != nil {
			return err
		}
		// Each message is sent once in the life of the sync, wherever to.
		if bk.stream != nil && bk.stream.events && was.Topic == bk.stream.topic {
			bk.before.HighWater = mark
		}
	}
	bk.kept = kept || bk.before.Rows == 0
	bk.decideFull()
	if bk.before.Damaged {
		bk.job.Log.Warn("the ledger of the sync is not as it was left", "reason", bk.before.Reason)
	}
	if bk.stream != nil {
		if err := bk.stream.resume(bk.before, bk.log, bk.full); err != nil {
			return err
		}
	}
	bk.skipping = bk.skips()
	if bk.dry != nil || !bk.log.Resumed() {
		return nil
	}
	return bk.restart()
}

// logGone is why a run that goes on is a full sync.
const logGone = "the log of the run is gone; " + ledger.UnknownDeletes

// missed finds that the log of a run is gone that has sent something already.
func (bk *booking) missed() error {
	if bk.dry != nil || bk.job.Reported == 0 {
		return nil
	}
	runs, err := bk.ledger.Runs()
	if err == nil && !slices.Contains(runs, bk.job.Run) {
		err = bk.ledger.Lose(logGone)
	}
	if err != nil {
		return failed(CodeState, err, "look for the log of the run: %v", err)
	}
	return nil
}

// noted are the notes of the state; those of this run where it has none.
func (bk *booking) noted() (was notes, readable bool) {
	if len(bk.before.Notes) == 0 {
		return bk.notes(), true
	}
	err := json.Unmarshal(bk.before.Notes, &was)
	return was, err == nil
}

// openLog begins the log, or goes on with it. A process that was killed after the
// state had taken over what the run learnt, and before anybody noted how the run
// ended, begins where the run began: with its mapping and its high-water mark. Not
// so in a topic, of which the state keeps nothing below the mark.
func (bk *booking) openLog() error {
	if bk.dry != nil {
		return bk.look()
	}
	now, err := bk.ledger.Meta()
	if err != nil {
		return failed(CodeState, err, "read the state of the sync: %v", err)
	}
	if len(now.Notes) == 0 { // from them a lost state can be rebuilt with this log
		now.Notes = bk.keptNotes()
	}
	log, err := bk.ledger.Begin(bk.job.Run, now)
	if err != nil {
		return failed(CodeState, err, "open the log of the run: %v", err)
	}
	if bk.before, err = bk.ledger.Meta(); err != nil { // after Begin, which finds damage
		return errors.Join(failed(CodeState, err, "read the state of the sync: %v", err), log.Close())
	}
	if began := log.Began(); !bk.before.Damaged && bk.stream == nil {
		bk.before.Mapping, bk.before.HighWater = began.Mapping, began.HighWater
	}
	bk.progress.mu.Lock()
	defer bk.progress.mu.Unlock()
	bk.log = log
	return nil
}

// forget drops a state whose keys are those of another identifier or another
// object: a mirror would delete the records that they happen to name there.
func (bk *booking) forget() error {
	if bk.operation.changed && !bk.full {
		bk.full, bk.reason = true, "the identifier or the destination object has changed"
	}
	if bk.dry != nil {
		bk.before, bk.dry.blank = ledger.Meta{}, true
		return nil
	}
	if err := errors.Join(bk.log.Close(), bk.ledger.Forget()); err != nil {
		return failed(CodeState, err, "drop the state of another identifier: %v", err)
	}
	return bk.openLog()
}

// decideFull finds the conditions under which acknowledgements may be missing
// (spec 7.2.5). Records that are sent once in their life are not sent again for
// a new mapping.
func (bk *booking) decideFull() {
	mapping := bk.before.Mapping
	switch {
	case bk.before.Damaged: // said also where every row is sent for another reason
		if bk.reason != "" {
			bk.reason += "; "
		}
		bk.full, bk.reason = true, bk.reason+bk.before.Reason
	case bk.full:
	case bk.rows && !bk.kept:
		bk.full, bk.reason = true, "delete records carry the whole row from now on"
	case !bk.operation.changed, bk.options.Deviations.KeepsMapping:
	case mapping != (ledger.Fingerprint{}) && mapping != bk.plan.Fingerprint():
		bk.full, bk.reason = true, cmp.Or(bk.job.MappingReason, "the mappings have changed")
	}
}

// skips reports whether this run takes existing records as sent: the first one
// of an append sync with skip_current_records (spec 2.6). It stays the first
// until one has completed, also where the ledger has lost it.
func (bk *booking) skips() bool {
	h := bk.job.Config.HistoricalSyncOperation
	return bk.job.Config.Operation == api.OperationAppend && h != nil && *h == api.HistorySkip &&
		bk.before.Mapping == (ledger.Fingerprint{}) && (!bk.before.Damaged || !bk.job.Completed) && (bk.stream == nil || !bk.stream.begun)
}

// bookInvalid logs the rows that were not sent: the samples as records, the
// others as a number.
func (bk *booking) bookInvalid(invalids int64, samples []Sample) error {
	if invalids == 0 || bk.dry != nil {
		return nil
	}
	now := bk.options.Clock.Now()
	b := ledger.Batch{
		Operation: bk.operation.wire, StartedAt: now, CompletedAt: now, Skipped: invalids - int64(len(samples)),
	}
	for _, s := range samples {
		record := ledger.Record{Verdict: ledger.Invalid, Message: s.Reason}
		if s.Key != "" {
			record.Key = []byte(s.Key)
		}
		b.Records = append(b.Records, record)
	}
	if err := bk.log.Append(b); err != nil {
		return failed(CodeState, err, "write down the invalid records: %v", err)
	}
	return nil
}

// OperationSkip marks records in the log that were taken as sent
// (historical_sync_operation skip_current_records, spec 2.6).
const OperationSkip = "skip"

// skipper writes down rows that are taken as sent without sending them.
func (bk *booking) skipper() *packer {
	return &packer{records: bookRecords, bytes: largestBatch, send: func(b *batch) error {
		now := bk.options.Clock.Now()
		return bk.book(ledger.Batch{Operation: OperationSkip, StartedAt: now, CompletedAt: now, Records: bk.entries(b, false)})
	}}
}

// restart merges the acknowledgements so far into the state and goes on with
// the same log.
func (bk *booking) restart() error {
	bk.resumed = bk.resumed || bk.log.Resumed()
	if err := bk.merge(bk.meta()); err != nil {
		return err
	}
	return bk.openLog()
}

// merge puts the log into the state.
func (bk *booking) merge(meta ledger.Meta) error {
	if err := bk.log.Finish(meta); err != nil {
		return failed(CodeState, err, "merge the log of the run into the state: %v", err)
	}
	return nil
}

// promise notes, before anything of a batch is sent, that its records have to be
// sent again unless a verdict follows: a process that is killed in between does
// not know what the destination did, and the source may change back before the
// next run.
func (d *delivery) promise(items []item) error {
	s := d.by
	d.log = d.log[:0]
	for i := range items {
		d.log = append(d.log, ledger.Record{Key: s.ledgerKey(&items[i]), Verdict: ledger.Rejected, Message: InDoubt, Delete: d.phase.delete})
		if s.rows && !d.phase.delete { // it may be the last that is known of the key
			d.log[i].Payload, d.log[i].Keep = items[i].record, true
		}
	}
	now := s.options.Clock.Now()
	// A pass sends each key once, so a run that was not resumed has none of them.
	err := s.booking.log.Append(ledger.Batch{Operation: d.phase.wire, StartedAt: now, CompletedAt: now, Records: d.log, Fresh: !s.booking.resumed})
	if err != nil {
		return failed(CodeState, err, "write down what is being sent: %v", err)
	}
	for i := range items {
		items[i].place = d.log[i].Place
	}
	return nil
}

// meta is the state's metadata after a run that did not reach its end.
func (bk *booking) meta() ledger.Meta {
	m := bk.before
	m.Notes = bk.keptNotes()
	return m
}

// finish merges the acknowledgements into the state, whatever the outcome.
// Only a completed run may mark the state as whole.
func (bk *booking) finish(cause error) error {
	if cause == nil {
		bk.kept = bk.rows
	}
	meta := bk.meta()
	if cause == nil {
		meta.Mapping, meta.Damaged = bk.plan.Fingerprint(), false
	}
	if bk.highWater != nil {
		if mark := bk.highWater.next(cause == nil, bk.skipping); mark != nil {
			meta.HighWater, _ = json.Marshal(mark) // a moment always marshals
		}
	}
	if bk.stream != nil {
		bk.stream.settled(&meta, cause == nil)
	}
	err := bk.merge(meta)
	bk.merged = err == nil
	return err
}
