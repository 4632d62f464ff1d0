package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// is reports whether a key is the record's, and remembers its form.
func (x *explaining) is(key []byte) bool {
	if !bytes.Equal(key, x.key) && (x.other == nil || !bytes.Equal(key, x.other)) {
		return false
	}
	if x.found == nil {
		x.found = bytes.Clone(key)
	}
	return bytes.Equal(key, x.found)
}

// readLedger reads what the runs have written of the record.
func (x *explaining) readLedger(ctx context.Context) error {
	books, event := x.k.Ledger().Sync(x.sync.ID), runs.EventField(x.sync)
	kept, err := books.Runs()
	if err != nil {
		return err
	}
	for _, run := range x.sent {
		x.lost = x.lost || !slices.Contains(kept, run)
	}
	for _, run := range kept {
		err := books.Each(run, func(l *ledger.Logged) error {
			if key := runs.RecordIdentifier(event, &l.Record); len(key) > 0 && x.is(key) {
				one := *l
				one.Record = one.Clone()
				x.keep(run, &one)
			}
			return nil
		})
		if errors.Is(err, ledger.ErrNoRun) || errors.Is(err, ledger.ErrDamaged) {
			x.lost = true // dropped meanwhile, or not to be read behind the damage
			continue
		}
		if err != nil {
			return err
		}
		if run == x.run.ID {
			x.logKept = true
		}
	}
	if event != "" { // the keys of its state are positions
		return nil
	}
	state, err := books.Scan()
	if errors.Is(err, ledger.ErrDamaged) {
		return nil
	}
	if err != nil {
		return err
	}
	defer state.Close()
	for {
		entry, err := state.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, ledger.ErrDamaged) { // the next run reports it
			return nil
		}
		if err != nil {
			return err
		}
		if x.is(entry.Key) {
			entry.Key = bytes.Clone(entry.Key)
			x.state = &entry
			return nil
		}
	}
}

// keep sorts a record of a log by its run.
func (x *explaining) keep(run int64, one *ledger.Logged) {
	switch {
	case run == x.run.ID:
		x.events = append(x.events, *one)
	case one.Verdict == ledger.Invalid:
	case run > x.run.ID:
		x.later = one
	default:
		if x.before = one; one.Verdict == ledger.Acknowledged {
			x.acked = one
		}
	}
}

// readSource looks for the row as it is now. An unreachable source or
// destination leaves out its part.
func (x *explaining) readSource(ctx context.Context) error {
	view, done, err := x.k.viewOf(ctx, x.sync, x.run)
	if err != nil {
		x.sourceFault = problem.Of(err).Message
		return nil
	}
	defer done()
	x.view = view
	columns := slices.Clone(view.plan.Columns())
	width := len(columns)
	for _, c := range view.job.Columns {
		if !slices.Contains(columns, c.Name) {
			columns = append(columns, c.Name)
		}
	}
	mark := -1
	if name := executor.HighWaterColumn(&x.sync.Config); name != "" {
		mark = slices.Index(columns, name)
	}
	rows, err := view.job.Source.Rows(ctx, view.job.Object, columns, nil)
	if err != nil {
		x.sourceFault = "the source cannot be read"
		return nil
	}
	defer rows.Close()
	var record []byte
	for {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			x.sourceFault = "the source failed while it was read"
			return nil
		}
		var key []byte
		var invalid string
		record, key, invalid = view.plan.AppendRecord(record[:0], row[:width])
		if key != nil && invalid == "" && mark >= 0 && view.plan.Generated() {
			executor.MarkKey(key, row[mark])
		}
		if key == nil || !x.is(key) {
			continue
		}
		if x.copies++; x.copies > 1 {
			continue
		}
		x.row, x.record, x.invalid = rowText(columns, row), bytes.Clone(record), invalid
		if invalid != "" {
			x.record = nil
		}
		if mark >= 0 {
			x.mark = bytes.Clone(row[mark])
		}
	}
	if x.copies > 1 {
		x.invalid = executor.Duplicate
	}
	return nil
}

// rowText is a row as a JSON object in the order of its columns.
func rowText(columns []string, row [][]byte) json.RawMessage {
	out := []byte{'{'}
	for i, name := range columns {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(rawjson.AppendString(out, name), ':'), row[i]...)
	}
	return append(out, '}')
}

// decide reports what the comparison of the run made of the record, and why.
func (x *explaining) decide() (decision, reason string) {
	last := x.last()
	switch {
	case last == nil:
		return x.decideLeft()
	case last.Verdict == ledger.Invalid:
		return decisionInvalid, last.Message
	case last.Batch.Operation == executor.OperationSkip:
		return decisionSkipped, "the first run takes what is there as sent (historical_sync_operation " + api.HistorySkip + ")"
	case last.Delete:
		return decisionDeleted, "the source no longer had it"
	}
	return decisionSent, x.whySent(last)
}

func (x *explaining) whySent(last *ledger.Logged) string {
	strategy := x.sync.Config.MirrorStrategy
	switch {
	case x.run.Run.FullSync:
		return "full sync: " + x.whyFull()
	case x.sync.Config.Operation == api.OperationMirror && strategy != nil && *strategy == api.MirrorSwap:
		return "upload_and_swap sends every record in every run"
	case x.before == nil && x.lost:
		return "new, or changed since it was sent: the logs of earlier runs are not kept any more"
	case x.before == nil:
		return "new: nothing of it was sent before"
	case x.before != nil && inDoubt(x.before):
		return "it was sent before, and not answered"
	case x.before != nil && x.before.Verdict == ledger.Rejected:
		return "the destination refused it before: " + x.before.Message
	case x.before != nil && x.before.Delete:
		return "it was removed before, and is in the source again"
	case x.acked != nil && last.Verdict == ledger.Acknowledged && x.acked.Print == last.Print:
		return "sent again with the same content"
	}
	return "the record has changed since it was acknowledged"
}

func (x *explaining) whyFull() string {
	if why := x.run.Run.TriggerReason; why != nil {
		if _, reason, found := strings.Cut(why.UIDetail, "; full sync: "); found {
			return reason
		}
	}
	return "it was forced"
}

// decideLeft explains why nothing of the record was sent.
func (x *explaining) decideLeft() (decision, reason string) {
	known := x.acked != nil && !x.acked.Delete || x.acked == nil && x.state != nil && x.state.Known
	prints := x.prints()
	changes := x.sync.Config.Operation != api.OperationInsert && x.sync.Config.Operation != api.OperationAppend
	status := x.run.Run.Status
	switch {
	case status == api.RunSkipped:
		return decisionLeft, "the run was skipped, since an earlier one was active"
	case runs.Forgotten(x.run, x.k.Clock.Now()):
		return decisionLeft, "the log of the run is not kept any more"
	case status == api.RunQueued || status == api.RunWorking:
		return decisionLeft, "the run is still active, and has sent nothing of it so far"
	case status == api.RunFailed:
		return decisionLeft, "the run failed before it had sent anything of it"
	case x.invalid != "" && x.latest:
		return decisionInvalid, x.invalid
	case x.row == nil && x.sourceFault == "":
		return decisionLeft, "the source does not have it, and nothing of it had to be removed"
	case known && !changes:
		return decisionLeft, "it was acknowledged before, and is sent once in its life"
	case known && prints.Now != nil && prints.After != nil && *prints.Now == *prints.After:
		return decisionLeft, "unchanged: its fingerprint is that of what was acknowledged"
	case x.waits():
		return decisionLeft, "it waits for a later run: its high-water mark is not below that of the run"
	case x.row != nil && x.latest:
		return decisionLeft, "the source did not have it like this when the run read it"
	}
	return decisionLeft, "nothing of it had changed when the run read the source"
}

// waits reports whether the high-water mark of the sync leaves the row to a later
// run (spec 2.6).
func (x *explaining) waits() bool {
	t, timed := executor.Moment(x.mark)
	if x.mark == nil || !timed {
		return false
	}
	meta, err := x.k.Ledger().Sync(x.sync.ID).Meta()
	if err != nil {
		return false
	}
	var mark api.Time
	return json.Unmarshal(meta.HighWater, &mark.Time) != nil || !t.Before(mark.Time)
}
