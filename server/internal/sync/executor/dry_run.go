package executor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// Actions of a run on one record.
const (
	ActionCreate = "create" // the destination has acknowledged nothing of it yet
	ActionChange = "change" // … or something else, or the operation is update
	ActionResend = "resend" // … or exactly this: it is sent again all the same
	ActionDelete = "delete" // the source no longer has it
	ActionSkip   = "skip"   // it is taken as sent (historical_sync_operation, spec 2.6)
	ActionRefuse = "refuse" // it is invalid, and is not sent
)

// MaxDrySamples bounds what a dry run shows of each action.
const MaxDrySamples = 100

const (
	// dryMemory bounds the bytes of the records that a dry run shows.
	dryMemory = 4 << 20
	// dryReasons bounds the reasons that are counted one by one.
	dryReasons = 50
)

// DryRun is what a run would do. The code that decides it is that of a run: it
// reads, maps and compares, and neither sends nor writes anything.
type DryRun struct {
	// Counters are those with which a run would begin to send: the rows and what the
	// comparison makes of them.
	Counters
	// SourceUpdates are Created, Changed and Resent together.
	Created, Changed, Resent, Skipped, Unchanged int64
	FullSync                                     bool
	FullReason                                   string
	// Failure is why the run would fail before it had sent everything; nil: it would
	// not, as far as the destination does its part.
	Failure *Failure
	// Reasons count the rows that are refused, the most frequent reason first. Doubts
	// count records that would be sent and that the destination has cause to refuse.
	Reasons, Doubts []Reason
	// Samples are the first records of each action, at most as many as requested.
	Samples []DryRecord
}

// Reason is why rows are invalid, or records may be refused.
type Reason struct {
	Text string
	Rows int64
}

// DryRecord is one record of a dry run.
type DryRecord struct {
	Action     string
	Identifier []byte // JSON text; nil where the row has none
	// Operation is that of the batch, and Record its record: JSON text, nil where
	// nothing is sent, or where Bytes were too many to be kept.
	Operation string
	Record    []byte
	Bytes     int
	Reason    string // of a refusal, or of a doubt
	Rows      int64  // of the source, more than one for a duplicate identifier
}

// ErrUnsettled: the log of an earlier run is not in the state yet. The next run puts
// it there before it compares, which a dry run must not.
var ErrUnsettled = errors.New("the log of an earlier run is not in the state yet; the next run puts it there")

// DryRun reports what Run would do with a job, with at most so many samples of each
// action. Job.Run need not be the number of a run: templates see it. The error is
// why that is unknown; that the run would fail is no error.
func (e *Executor) DryRun(ctx context.Context, job Job, most int) (*DryRun, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if job.Log == nil {
		job.Log = e.options.Log.With("sync", job.Sync)
	}
	job.Report = nil
	r := e.newRun(job, cancel)
	r.dry = &dryRun{most: min(most, MaxDrySamples)}
	defer r.comparison.removals.close()
	defer r.sending.room.leaveWide()
	err := r.rehearse(ctx)
	var failure *Failure
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, ledger.ErrBusy), errors.Is(err, ErrUnsettled):
		return nil, err
	case !errors.As(err, &failure):
		failure = failed(CodeInternal, err, "%v", err)
	}
	return r.rehearsed(failure), nil
}

// rehearse is work without what sends and writes.
func (r *run) rehearse(ctx context.Context) error {
	if err := r.prepare(); err != nil {
		return err
	}
	if err := r.booking.begin(); err != nil {
		return err
	}
	r.sending.staff(1)
	for _, f := range r.plan.Fields() {
		if f.RequiredForMapping && !f.ActiveIdentifier {
			r.dry.required = append(r.dry.required, f.FullName)
		}
	}
	if err := r.reading.measure(ctx); err != nil {
		return err
	}
	if err := r.reading.readAll(ctx, r.sending.phase(r.operation.wire, r.sending.calls.backoff.Rounds, nil)); err != nil {
		return err
	}
	return r.comparison.emptied()
}

// rehearsed assembles the result.
func (r *run) rehearsed(failure *Failure) *DryRun {
	r.comparison.publish()
	d := &DryRun{
		Counters: r.progress.counters(), Created: r.dry.counts[ActionCreate], Changed: r.dry.counts[ActionChange], Resent: r.dry.counts[ActionResend],
		Skipped: r.dry.counts[ActionSkip], FullSync: r.booking.full, FullReason: r.booking.reason, Failure: failure,
	}
	d.Unchanged = max(r.comparison.tally.valid-d.SourceUpdates-d.Skipped, 0)
	d.Reasons, d.Doubts = sortedReasons(r.dry.reasons), sortedReasons(r.dry.doubts)
	for _, action := range []string{ActionCreate, ActionChange, ActionResend, ActionDelete, ActionSkip} {
		d.Samples = append(d.Samples, r.dry.samples[action]...)
	}
	for _, s := range r.comparison.samples[:min(len(r.comparison.samples), r.dry.most)] {
		refused := DryRecord{Action: ActionRefuse, Reason: s.Reason, Rows: s.Rows}
		if s.Key != "" {
			refused.Identifier = []byte(s.Key)
		}
		d.Samples = append(d.Samples, refused)
	}
	return d
}

func sortedReasons(counts map[string]int64) (list []Reason) {
	for text, rows := range counts {
		list = append(list, Reason{text, rows})
	}
	slices.SortFunc(list, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), strings.Compare(a.Text, b.Text))
	})
	return list
}

// dryRun is what a dry run finds, in place of a log.
type dryRun struct {
	most    int // samples of each action
	bytes   int // of the records among them
	counts  map[string]int64
	samples map[string][]DryRecord
	reasons map[string]int64
	doubts  map[string]int64
	// required are the mapped fields that must not be null.
	required []string
	blank    bool // the ledger has no state that counts
}

// reset forgets a pass over the source that has to be made again.
func (d *dryRun) reset() {
	d.bytes, d.counts, d.samples, d.reasons = 0, map[string]int64{}, map[string][]DryRecord{}, map[string]int64{}
	d.doubts = map[string]int64{}
}

// writes notes a record that a run would send, or take as sent.
func (c *comparison) writes(it item, old *ledger.Entry) {
	action := c.actionOf(it.print, old)
	if c.booking.skipping {
		action = ActionSkip
	}
	one := DryRecord{Action: action, Operation: c.operation.wire, Rows: 1}
	if c.booking.skipping {
		one.Operation = OperationSkip
	} else if one.Reason = c.dry.doubt(it.record); one.Reason != "" {
		c.dry.doubts[one.Reason]++
	}
	c.dry.note(one, it.key, it.record)
}

// doubt returns why a destination may refuse a record; "": no known reason.
func (d *dryRun) doubt(record []byte) string {
	if len(d.required) == 0 {
		return ""
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(record, &fields) != nil {
		return ""
	}
	for _, name := range d.required {
		if rawjson.IsNull(fields[name]) {
			return fmt.Sprintf("field %q is required by the destination, and is null", name)
		}
	}
	return ""
}

// actionOf names what a record that is sent means to the destination, by what that
// has acknowledged.
func (t *terms) actionOf(print ledger.Fingerprint, old *ledger.Entry) string {
	known := old != nil && old.Known
	switch wire := t.operation.wire; {
	case known && old.Print == print, known && wire == rpc.OperationInsert && !t.operation.events:
		return ActionResend
	case wire == rpc.OperationUpdate, known && wire != rpc.OperationInsert:
		return ActionChange
	}
	return ActionCreate
}

// deletes notes a record that a run would delete. A table that is replaced as a whole
// is left without it, and no record shows it.
func (c *comparison) deletes(it item) {
	one := DryRecord{Action: ActionDelete, Operation: rpc.OperationDelete, Rows: 1}
	if _, whole := c.swapper(); whole {
		it.record = nil
	}
	c.dry.note(one, it.key, it.record)
}

// note counts a record, and keeps it while there is room.
func (d *dryRun) note(one DryRecord, key, record []byte) {
	d.counts[one.Action]++
	if len(d.samples[one.Action]) >= d.most {
		return
	}
	one.Identifier, one.Bytes = bytes.Clone(key), len(record)
	if d.bytes += len(record); d.bytes <= dryMemory {
		one.Record = bytes.Clone(record)
	} else {
		d.bytes -= len(record)
	}
	d.samples[one.Action] = append(d.samples[one.Action], one)
}

// refuse counts rows by the reason for which they are invalid.
func (d *dryRun) refuse(reason string, rows int64) {
	if rows == 0 {
		return
	}
	if _, known := d.reasons[reason]; !known && len(d.reasons) >= dryReasons {
		reason = "other reasons"
	}
	d.reasons[reason] += rows
}

// packer drops its records: a dry run sends nothing, whatever the caller.
func (d *dryRun) packer() *packer {
	return &packer{records: bookRecords, bytes: largestBatch, send: func(*batch) error { return nil }}
}
