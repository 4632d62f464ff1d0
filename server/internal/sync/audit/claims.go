package audit

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// event is one record that a run has appended to its log.
type event struct {
	run     int64
	verdict ledger.Verdict
	deleted bool
	skipped bool // taken as sent, and never sent
	doubt   bool // sent, and not answered
	message string
	payload []byte
}

// events reads the logs of all runs, one row for each append: key, its place in
// time, and the event.
type events struct {
	rows source.Rows
	key  []byte
	now  event
	end  bool
}

// The marks of an event on disk.
const (
	markDeleted = 1 << iota
	markSkipped
	markDoubt
)

// openEvents sorts all logs by key; of one key in the order of time.
func (a *audit) openEvents(ctx context.Context) (*events, error) {
	runs, err := a.job.Ledger.Runs()
	if err != nil {
		return nil, err
	}
	var place uint64
	sorted, err := a.sorted(ctx, []int{0, 1}, func(push func([][]byte) error) error {
		for _, run := range runs {
			err := a.job.Ledger.Each(run, func(l *ledger.Logged) error {
				key := a.identifier(l)
				if l.Verdict == ledger.Invalid || key == nil {
					return nil
				}
				place++
				return push(eventRow(key, run, place, l))
			})
			// A log that was dropped meanwhile is one that is not kept.
			if err != nil && !errors.Is(err, ledger.ErrNoRun) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	e := &events{rows: sorted}
	return e, e.advance()
}

// identifier is that of a logged record; nil where it is not known: a message
// under way is identified by its position alone.
func (a *audit) identifier(l *ledger.Logged) []byte {
	if !a.job.Events {
		return l.Key
	}
	var record map[string]json.RawMessage
	if json.Unmarshal(l.Payload, &record) != nil || record[a.job.Plan.Identifier()] == nil {
		return nil
	}
	return mapping.AppendCanonical(nil, record[a.job.Plan.Identifier()])
}

// eventRow copies: the log's memory is used again.
func eventRow(key []byte, run int64, place uint64, l *ledger.Logged) [][]byte {
	marks := byte(0)
	if l.Delete {
		marks |= markDeleted
	}
	if l.Batch.Operation == executor.OperationSkip {
		marks |= markSkipped
	}
	if l.Verdict == ledger.Rejected && l.Message == executor.InDoubt {
		marks |= markDoubt
	}
	head := binary.AppendVarint([]byte{byte(l.Verdict), marks}, run)
	return [][]byte{
		append([]byte(nil), key...), binary.BigEndian.AppendUint64(nil, place), head, []byte(l.Message), append([]byte(nil), l.Payload...),
	}
}

// advance reads the next event.
func (e *events) advance() error {
	row, err := e.rows.Next()
	if errors.Is(err, io.EOF) {
		e.end, e.key = true, nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("read logs: %w", err)
	}
	run, width := binary.Varint(row[2][2:])
	if width <= 0 {
		return errors.New("read logs: an event is not readable")
	}
	e.key = append(e.key[:0], row[0]...)
	marks := row[2][1]
	e.now = event{
		run: run, verdict: ledger.Verdict(row[2][0]), deleted: marks&markDeleted != 0, skipped: marks&markSkipped != 0,
		doubt: marks&markDoubt != 0, message: string(row[3]), payload: row[4],
	}
	return nil
}

// history is the ledger's record of one key.
type history struct {
	state *ledger.Entry // nil: the state does not have it
	acked *event        // the last acknowledgement; nil: none in a log that is kept
	// pending is the last verdict where it is a refusal, or unknown.
	pending  *event
	refused  [][]byte // sent after acked, and refused
	payloads [][]byte // acknowledged payloads of an event sync: each is one
}

// keptPayloads bounds the remembered payloads of one key.
const keptPayloads = 16

// read takes the events of a key, and counts them for their runs.
func (e *events) read(a *audit, key []byte, h *history) error {
	var open *event // the last of its run
	for !e.end && string(e.key) == string(key) {
		now := e.now
		now.payload = append([]byte(nil), now.payload...)
		if open != nil && open.run != now.run {
			a.count(open)
		}
		open = &now
		if now.verdict == ledger.Acknowledged {
			h.acked, h.pending, h.refused = &now, nil, nil
			if len(now.payload) > 0 && !now.deleted && len(h.payloads) < keptPayloads {
				h.payloads = append(h.payloads, now.payload)
			}
		} else {
			h.pending = &now
			if len(now.payload) > 0 && !now.deleted && len(h.refused) < keptPayloads {
				h.refused = append(h.refused, now.payload)
			}
		}
		if err := e.advance(); err != nil {
			return err
		}
	}
	if open != nil {
		a.count(open)
	}
	return nil
}

// Close frees the disk.
func (e *events) Close() error { return e.rows.Close() }

// claim is what the ledger promises of one key.
type claim uint8

const (
	nothing claim = iota
	stored        // acknowledged
	removed       // its removal was acknowledged
	assumed       // taken as sent without being sent
)

// claims reads a history. The state knows what logs that were dropped said.
func (h *history) claims(skips bool) claim {
	switch {
	case h.acked != nil && h.acked.skipped:
		return assumed
	case h.acked != nil && h.acked.deleted:
		return removed
	case h.acked != nil:
		return stored
	case h.state == nil || !h.state.Known:
		return nothing
	case skips: // whether it was sent or skipped stood in a log that is gone
		return assumed
	}
	return stored
}

// run is the run of an event; nil for none.
func (e *event) runID() *int64 {
	if e == nil {
		return nil
	}
	run := e.run
	return &run
}

// readMark takes from the state how far the source was dealt with: rows and
// messages behind the mark wait for the next run (spec 2.6).
func (a *audit) readMark() error {
	meta, err := a.job.Ledger.Meta()
	if err != nil {
		return err
	}
	marked := len(meta.HighWater) > 0 && string(meta.HighWater) != "null"
	if a.log, _ = a.job.Source.(source.Log); a.log != nil {
		if marked {
			return json.Unmarshal(meta.HighWater, &a.position)
		}
		return nil
	}
	if executor.HighWaterColumn(&a.job.Config) == "" {
		return nil
	}
	a.mark = &time.Time{} // before the first run nothing was dealt with
	if marked {
		return json.Unmarshal(meta.HighWater, a.mark)
	}
	return nil
}

// findGaps looks for runs that have sent something and whose log is gone.
func (a *audit) findGaps() error {
	kept, err := a.job.Ledger.Runs()
	for i := range a.job.Runs {
		run := &a.job.Runs[i]
		if sent := run.RecordsProcessed; sent != nil && *sent > 0 && !slices.Contains(kept, run.ID) {
			a.gaps = true
		}
	}
	return err
}
