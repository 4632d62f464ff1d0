package executor

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/internal/source/rowsort"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// stream is the reading of a topic. Each run reads the messages behind the mark,
// and the mark moves over those that are settled, from the first on: one that
// was refused to the end holds it, so the next run meets it again and leaves out
// messages acknowledged behind it.
type stream struct {
	log    source.Log
	events bool   // every message is a separate record, once (spec 2.6)
	topic  string // the id of the topic
	mark   int64  // messages up to here are settled; 0: none
	from   int64  // this run reads behind it; before the mark it only counts
	begun  bool   // a run has set a mark before
	last   int64  // this run reads up to here
	lowest int64  // of those refused to the end; 0: none
}

// streamOf is nil for sources with tables.
func streamOf(job *Job) *stream {
	log, ok := job.Source.(source.Log)
	if !ok {
		return nil
	}
	s := &stream{log: log, events: SentOnce(&job.Config)}
	if id := job.Config.SourceAttributes.Object.ID; id != nil {
		s.topic = strconv.FormatInt(*id, 10)
	}
	return s
}

// SentOnce reports whether every row or message is sent once in the life of the
// sync, so that it has no full sync: append syncs and event-based
// activation.
func SentOnce(c *api.SyncConfig) bool {
	family := c.SyncBehaviorFamily
	return c.Operation == api.OperationAppend || family != nil && *family == api.FamilyActivateEvents
}

// resume finds the mark of the runs before. A full run reads everything that
// the topic still has. One that had come to its end, and was killed before
// anybody noted it, reads from where it began, so that its counters are the same.
func (s *stream) resume(before ledger.Meta, log *ledger.Run, full bool) (err error) {
	if s.mark, s.begun, err = markOf(before); err != nil || full {
		s.mark = 0
		return err
	}
	s.from = s.mark
	if log != nil && log.Resumed() {
		var began int64
		if began, _, err = markOf(log.Began()); err == nil {
			s.from = min(s.mark, began)
		}
	}
	return err
}

// markOf reads the mark of a state; false where no run has set one.
func markOf(meta ledger.Meta) (mark int64, begun bool, err error) {
	if text := meta.HighWater; len(text) > 0 && string(text) != "null" {
		if err := json.Unmarshal(text, &mark); err != nil {
			return 0, false, failed(CodeState, err, "read the position in the topic: %v", err)
		}
		begun = true
	}
	return mark, begun, nil
}

// refuse notes that a message was refused to the end.
func (s *stream) refuse(at int64) {
	if s.lowest == 0 || at < s.lowest {
		s.lowest = at
	}
}

// settled is the mark after the run. The state keeps no events below it: they
// are never read again.
func (s *stream) settled(meta *ledger.Meta, complete bool) {
	if !complete {
		return
	}
	mark := max(s.last, s.mark)
	if s.lowest > 0 {
		mark = s.lowest - 1
	}
	meta.HighWater = strconv.AppendInt(nil, mark, 10)
	meta.Below = nil
	if s.events {
		meta.Below = appendPosition(nil, mark+1)
	}
}

// appendPosition writes the key of an event in the ledger: JSON text of one
// width, so that keys come in the order of the positions.
func appendPosition(dst []byte, at int64) []byte { return fmt.Appendf(dst, `"%019d"`, at) }

// stampAt is the position of a message on its way.
func stampAt(position int64) (s stamp) {
	binary.BigEndian.PutUint64(s[:], uint64(position))
	return s
}

func (s stamp) position() int64 { return int64(binary.BigEndian.Uint64(s[:])) }

// bookKey is the key of an item in the ledger: its identifier, but for events,
// several of which may have the same one.
func (t *terms) ledgerKey(it *item) []byte {
	if t.stream == nil || !t.stream.events {
		return it.key
	}
	return appendPosition(nil, it.stamp.position())
}

// readStream is the one pass over the new messages.
func (r *reading) readStream(ctx context.Context, p *phase) error {
	rows, err := r.stream.log.After(ctx, r.job.Object, r.plan.Columns(), r.stream.from)
	if err != nil {
		return explain(ctx, &sourceError{err})
	}
	defer rows.Close()
	r.stream.last = rows.Last()
	if r.booking.skipping { // spec 2.6: existing messages count as sent
		return nil
	}
	before, err := r.booking.scan()
	if err != nil {
		return failed(CodeState, err, "read the state of the sync: %v", err)
	}
	defer before.Close()
	pack := r.sending.packer(ctx, p)
	if r.stream.events {
		r.comparison.sink = r.sending.apart(ctx, pack)
		err = r.readEvents(ctx, rows, before)
	} else {
		r.comparison.sink = pack.add
		err = r.readLatest(ctx, rows, before)
	}
	return r.drain(ctx, pack, err)
}

// readEvents merges messages and state, which both come in the order of the
// positions.
func (r *reading) readEvents(ctx context.Context, rows source.LogRows, before State) error {
	old, oldErr := before.Next()
	var record, place []byte
	for n := 0; ; n++ {
		if n%often == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			r.comparison.publish()
		}
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &sourceError{err}
		}
		place = appendPosition(place[:0], rows.Position())
		for oldErr == nil && bytes.Compare(old.Key, place) < 0 {
			old, oldErr = before.Next()
		}
		if oldErr != nil && !errors.Is(oldErr, io.EOF) {
			return failed(CodeState, oldErr, "read the state of the sync: %v", oldErr)
		}
		var known *ledger.Entry
		if oldErr == nil && bytes.Equal(old.Key, place) {
			known = &old
		}
		got := mapped{stamp: stampAt(rows.Position())}
		got.record, got.key, got.invalid = r.plan.AppendRecord(record[:0], row)
		record = got.record
		if err := r.comparison.event(got, place, known); err != nil {
			return err
		}
	}
}

// event deals with one message, whose key in the ledger is place.
func (c *comparison) event(got mapped, place []byte, known *ledger.Entry) error {
	if got.invalid != "" {
		got.invalid = ofMessage(got.stamp, got.invalid)
		c.invalid(entry{got, 1})
		return nil
	}
	c.tally.rows++
	c.tally.valid++
	if c.plan.Generated() { // two messages of the same content are two events
		got = numbered(got, got.stamp.position())
	}
	print := printOf(c.plan.Compared(got.record))
	if got.stamp.position() <= c.stream.mark || c.operation.decide(&entry{got, 1}, print, known, c.booking.full) != write || c.delivered(place, print) {
		return nil
	}
	c.tally.updates++
	return c.put(item{key: got.key, record: got.record, print: print, stamp: got.stamp}, known)
}

// ofMessage names the message in a reason.
func ofMessage(at stamp, reason string) string {
	return fmt.Sprintf("message %d: %s", at.position(), reason)
}

// eventsUnderWay bounds the identifiers that apart remembers.
const eventsUnderWay = 1 << 16

// apart keeps events of the same identifier in different batches, one after the
// other: results are matched by identifier, and the later event must not come
// first.
func (s *sending) apart(ctx context.Context, pack *packer) func(item) error {
	if s.stream == nil || !s.stream.events {
		return pack.add
	}
	under := map[string]struct{}{}
	return func(it item) error {
		if _, there := under[string(it.key)]; there || len(under) == eventsUnderWay {
			if err := pack.flush(); err != nil {
				return err
			}
			s.inFlight.wait(ctx)
			clear(under)
		}
		under[string(it.key)] = struct{}{}
		return pack.add(it)
	}
}

// readLatest compares the latest message of each identifier with the state.
func (r *reading) readLatest(ctx context.Context, rows source.LogRows, before State) error {
	in := &mappedRows{direct: direct{rows: rows, mapper: r.plan, at: func() stamp { return stampAt(rows.Position()) }}}
	sorted, err := rowsort.Sort(ctx, in, []int{0}, r.options.Scratch)
	if err != nil {
		return &sourceError{err}
	}
	feed := &latest{rows: sorted, tally: &r.comparison.tally}
	defer feed.Close()
	return r.comparison.compare(ctx, &group{feed: feed}, before)
}

// latest gives, of the valid messages of one identifier, the last one: those
// before it are superseded, and only counted as read.
type latest struct {
	rows  source.Rows // sorted by key, of equal keys the earlier one first
	tally *tally
	kept  [2]mapped // the one to give, and the one before
	turn  int
	held  bool
	ended error
}

func (l *latest) next() (mapped, error) {
	for l.ended == nil {
		cells, err := l.rows.Next()
		if err != nil {
			l.ended = err
			break
		}
		at := stamp(cells[3])
		if len(cells[2]) > 0 {
			// Without its key, so that it does not hide a valid message.
			return mapped{invalid: ofMessage(at, string(cells[2]))}, nil
		}
		same := l.held && bytes.Equal(l.kept[l.turn].key, cells[0])
		if same {
			l.tally.rows++
		} else {
			l.turn = 1 - l.turn
		}
		before := l.held && !same
		l.keep(cells, at)
		if before {
			return l.kept[1-l.turn], nil
		}
	}
	if l.held && errors.Is(l.ended, io.EOF) {
		l.held = false
		return l.kept[l.turn], nil
	}
	return mapped{}, l.ended
}

// keep copies a message into the present slot.
func (l *latest) keep(cells [][]byte, at stamp) {
	slot := &l.kept[l.turn]
	slot.key, slot.record = append(slot.key[:0], cells[0]...), append(slot.record[:0], cells[1]...)
	slot.stamp, l.held = at, true
}

// Close ends the reading.
func (l *latest) Close() error { return l.rows.Close() }
