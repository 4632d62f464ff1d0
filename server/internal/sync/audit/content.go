package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// Records without a stored identifier, as in files, are identified by their
// content, and counted: so many as were acknowledged must be there.

// The parts of one content.
const (
	partAcknowledged = iota
	partAssumed      // taken as sent
	partRefused      // sent, and not acknowledged
	partStored
	partSource // valid, and not waiting
	parts
)

// content is all records of one content.
type content struct {
	record []byte
	counts [parts]int64
	run    int64 // the last one that has acknowledged any
}

// walkContent compares everything in one sort.
func (a *audit) walkContent(ctx context.Context) error {
	if err := errors.Join(a.readMark(), a.findGaps()); err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	sorted, err := a.sorted(ctx, []int{0}, func(push func([][]byte) error) error { return a.pushContent(ctx, push) })
	if err != nil {
		return err
	}
	defer sorted.Close()
	var key []byte
	var one *content
	for {
		row, err := sorted.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if one != nil && (err != nil || !bytes.Equal(key, row[0])) {
			a.judgeContent(one)
			one = nil
		}
		if err != nil {
			return nil
		}
		if one == nil {
			key, one = append(key[:0], row[0]...), &content{record: bytes.Clone(row[2])}
		}
		part := row[1][0]
		one.counts[part]++
		if part == partAcknowledged {
			_ = json.Unmarshal(row[3], &one.run)
		}
	}
}

// pushContent hands over what ledger, source and destination have.
func (a *audit) pushContent(ctx context.Context, push func([][]byte) error) error {
	hand := func(part byte, record []byte, run int64) error {
		return push([][]byte{a.contentOf(record), {part}, bytes.Clone(record), number(run)})
	}
	if err := a.pushLedger(hand); err != nil {
		return err
	}
	if err := a.pushSource(ctx, hand); err != nil {
		return err
	}
	err := a.job.Destination.List(ctx, func(fields map[string]json.RawMessage) error {
		a.report.Checked.Destination++
		record, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		return hand(partStored, record, 0)
	})
	if err != nil {
		return &ReadError{"destination", err}
	}
	return nil
}

// pushLedger hands over the sent records. Of a file that is replaced as a
// whole only the last replacement counts.
func (a *audit) pushLedger(hand func(byte, []byte, int64) error) error {
	runs, err := a.job.Ledger.Runs()
	if err != nil {
		return err
	}
	from := int64(0)
	if a.job.Config.Operation == api.OperationMirror {
		for _, run := range a.job.Runs {
			if run.Status == api.RunCompleted {
				from = run.ID
			}
		}
	}
	for _, run := range runs {
		err := a.job.Ledger.Each(run, func(l *ledger.Logged) error {
			switch {
			case l.Verdict == ledger.Invalid || l.Delete || len(l.Payload) == 0 || run < from:
				return nil
			case l.Verdict == ledger.Rejected:
				return hand(partRefused, l.Payload, run)
			case l.Batch.Operation == executor.OperationSkip:
				return hand(partAssumed, l.Payload, run)
			}
			a.report.Checked.Ledger++
			return hand(partAcknowledged, l.Payload, run)
		})
		if err != nil && !errors.Is(err, ledger.ErrNoRun) {
			return err
		}
	}
	return nil
}

func (a *audit) pushSource(ctx context.Context, hand func(byte, []byte, int64) error) error {
	rows, err := a.openRows(ctx)
	if err != nil {
		return err
	}
	defer rows.Close()
	for {
		row, err := rows.next()
		if row == nil || err != nil {
			return err
		}
		if row.copies > 1 || row.invalid != "" {
			a.invalids += row.copies
		} else if !row.waits {
			if err := hand(partSource, row.record, 0); err != nil {
				return err
			}
		}
	}
}

// contentOf is the content of a record in one form: its members in the order of
// their names, without nulls and without fields that are not stored.
func (a *audit) contentOf(record []byte) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(record, &fields) != nil {
		return record
	}
	names := make([]string, 0, len(fields))
	for name, raw := range fields {
		if !rawjson.IsNull(raw) && !a.fields[name].Hidden && !a.volatile[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	out := []byte{'{'}
	for _, name := range names {
		value := fields[name]
		if a.job.Texts {
			var flat bytes.Buffer
			if value = bytes.TrimSpace(value); value[0] != '"' && json.Compact(&flat, value) == nil {
				value = rawjson.AppendString(nil, flat.String())
			}
			if string(value) == `""` { // in a CSV file it is null
				continue
			}
		}
		out = append(rawjson.AppendString(out, name), ':')
		out = append(mapping.AppendCanonical(out, value), ',')
	}
	return append(out, '}')
}

// judgeContent compares the counts of one content.
func (a *audit) judgeContent(one *content) {
	is := &one.counts
	acked, stored := is[partAcknowledged], is[partStored]
	run := &one.run
	if one.run == 0 {
		run = nil
	}
	for ; stored < acked; stored++ {
		a.find(Finding{Kind: Lost, RunID: run, Expected: one.record, Message: fmt.Sprintf("acknowledged in run %d, and not stored", one.run)})
	}
	for ; stored > acked && !a.gaps; stored-- {
		f := Finding{Kind: Foreign, RunID: run, Actual: one.record, Message: "stored, and never sent by this sync"}
		switch {
		case is[partRefused] > 0:
			f.Kind, f.Message = Unacknowledged, "stored, though it was not acknowledged"
		case acked > 0:
			f.Kind, f.Message = Duplicate, fmt.Sprintf("stored more often than it was acknowledged (%d)", acked)
		}
		a.find(f)
	}
	if !a.completed || a.gaps || a.log != nil && a.skipsHistory() {
		return
	}
	known := acked + is[partAssumed]
	for ; known < is[partSource]; known++ {
		if is[partRefused] > 0 {
			a.find(Finding{Kind: Refused, Expected: one.record, Message: "the destination did not take it"})
			continue
		}
		a.find(Finding{Kind: Missing, RunID: &a.last.ID, Expected: one.record, Message: "valid in the source, and never acknowledged, though the last run says completed"})
	}
	if a.job.Config.Operation != api.OperationMirror {
		return
	}
	for gone := acked - is[partSource]; gone > 0; gone-- {
		a.find(Finding{Kind: Leftover, RunID: run, Actual: one.record, Message: "the source no longer has it, and the mirror has not removed it"})
	}
}
