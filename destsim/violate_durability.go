package destsim

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// The sizes that the violations look at.
const (
	lateBatch     = 50  // DUR-001 and DUR-001.3 act on batches of so many records or more
	lostRecord    = 50  // DUR-001.2 loses every so-manieth record of a batch
	busyRun       = 8   // DUR-002: so many batches of one sync run at a time
	cutBatch      = 20  // DUR-004 acts on batches of so many records or more
	columnLength  = 255 // DUR-005 has room for so many characters, and takes
	longestColumn = 4096
)

// durabilityViolations are acknowledged records that are lost or doubled, and what does
// not bear to be delivered twice (DUR-*, DUP-*).
var durabilityViolations = []violation{
	breaks("DUR-001", "batches of 50 or more records are written Delays.Write after they are acknowledged",
		rowsOf(func(r *record) bool { return r.batch.Len() >= lateBatch }, lateRows)),
	breaks("DUR-001.2", "every 50th record of a batch is acknowledged and not written",
		unwritten(func(r *record, _ *store.Row) bool { return r.index%lostRecord == lostRecord-1 })),
	breaks("DUR-001.3", "the last record of a batch of 50 or more is acknowledged and not written",
		unwritten(func(r *record, _ *store.Row) bool { n := r.batch.Len(); return n >= lateBatch && r.index == n-1 })),
	keeps("DUR-002", "batches of one record are written Delays.Write after they are acknowledged when eight or more batches of their sync run are in flight or were answered within Delays.Meet", lateWhenBusy),
	breaks("DUR-003", "a restart empties the store", seams{restart: func(s *Sim) {
		for _, o := range s.catalogue.Load().objects {
			_ = s.store.Drop(o.table.Name) // a store that fails has lost its records, too
		}
	}}),
	keeps("DUR-004", whenCut+"the second half of the records loses what the batch wrote but for new identifiers, and the same batch again is acknowledged without a write", func() seams { return (&cutReplies{takesBack: true}).seams() }),
	keeps("DUR-004.2", whenCut+"the same batch again adds a second copy of each record", func() seams { return (&cutReplies{}).seams() }),
	breaks("DUR-005", "strings of 256 to 4096 characters are cut to 255 and acknowledged", altersText(func(text string) string {
		if n := utf8.RuneCountInString(text); n > columnLength && n <= longestColumn {
			return string([]rune(text)[:columnLength])
		}
		return text
	})),
	breaks("DUP-001", "upsert of a batch all of whose records are stored with the same values is an error",
		refused(rpc.CodeServerError, "unique violation", func(b *batch) bool {
			_, same := b.standings()
			return b.operation == rpc.OperationUpsert && b.Len() > 0 && same == b.Len()
		})),
	breaks("DUP-002", "upsert of a record that is stored with the same values adds a second copy",
		doubled(func(r *record, old *store.Row) bool { return r.same(old.Data) })),
	breaks("DUP-003", "upsert of one existing record with the same values, alone in its batch, is reported as failed", batched(func(c *call, b *batch) {
		if _, same := b.standings(); b.upserts(1) && same == 1 {
			identifier, _ := b.Record(0).Field(b.identifier.APIName)
			c.answer(json.RawMessage(appendResults(nil, []result{{identifier: identifier, message: "no row was changed"}})))
		}
	})),
}

// lateRows delays the changes of the rows of a record.
func lateRows(r *record, rows store.Rows) store.Rows {
	s := r.batch.call.sim
	write := func(data []byte) error {
		s.putLater(s.delays.Write, r.object.table, r.active.quoted, r.key, data)
		return nil
	}
	return changedRows{
		Rows:   rows,
		put:    func(_ *store.Row, data []byte) error { return write(data) },
		remove: func(*store.Row) error { return write(nil) },
	}
}

// crowd is the activity in one sync run.
type crowd struct {
	inFlight int
	answered []time.Time
}

// lateWhenBusy is DUR-002: the queue of a destination that only fills up under
// load. A batch is late when it is small and its run is busy.
func lateWhenBusy() seams {
	var runs byRun[crowd]
	var entered, late perCall[bool]
	busy := rowsOf(func(r *record) bool { return late.get(r.batch.call) }, lateRows)
	busy.batch = func(c *call, b *batch) {
		now, window := c.sim.clock(), c.sim.delays.Meet
		run := runs.change(b.Plan.SyncRunID, func(k crowd) crowd {
			recent := slices.DeleteFunc(k.answered, func(t time.Time) bool { return now.Sub(t) > window })
			return crowd{k.inFlight + 1, recent}
		})
		entered.set(c, true)
		late.set(c, b.Len() == 1 && run.inFlight+len(run.answered) >= busyRun)
	}
	busy.answered = func(c *call) {
		if late.forget(c); entered.take(c) {
			runs.change(c.batch.Plan.SyncRunID, func(k crowd) crowd {
				return crowd{k.inFlight - 1, append(k.answered, c.sim.clock())}
			})
		}
	}
	return busy
}

// whenCut begins both ways of DUR-004.
const whenCut = "when the client goes away in the middle of the reply to the first batch of 20 or more records of a sync run, "

// cutReplies is DUR-004: a destination that does not bear it when the client goes away in
// the middle of a reply and sends the batch again. It looks at one batch of a sync run, so
// that a load is not held up by its waiting.
type cutReplies struct {
	takesBack bool

	runs    byRun[bool] // sync runs that had their batch
	sent    shared[fingerprint, *delivery]
	watched perCall[*delivery] // the batch that may be cut
	again   perCall[bool]      // the batch was cut before
}

// delivery is one batch and what became of its reply.
type delivery struct {
	content fingerprint
	answer  []byte
	settled chan struct{} // closed when the client has taken the reply or has gone
	gone    bool
	undo    []before // of the second half, in order
}

func (k *cutReplies) seams() seams {
	return seams{batch: k.batch, rows: k.rows, write: k.write, answered: k.again.forget}
}

func (k *cutReplies) batch(c *call, b *batch) {
	if b.Len() < cutBatch {
		return
	}
	content := b.fingerprint(0, b.Len())
	d, mine := k.claim(content, b.Plan.SyncRunID)
	switch {
	case mine:
		k.watched.set(c, d)
	case d == nil || !d.wait(c):
	case k.takesBack:
		c.answer(json.RawMessage(d.answer))
	default:
		k.again.set(c, true)
	}
}

// claim gives the earlier delivery of the same content, or a new one when this
// is the first such batch of its sync run.
func (k *cutReplies) claim(content fingerprint, run int64) (d *delivery, mine bool) {
	if d = k.sent.get(content); d != nil {
		return d, false
	}
	k.runs.change(run, func(had bool) bool { mine = !had; return true })
	if mine {
		d = &delivery{content: content, settled: make(chan struct{})}
	}
	return d, mine
}

// wait reports whether the client of the first delivery has gone.
func (d *delivery) wait(c *call) bool {
	t := time.NewTimer(2 * c.sim.leaving())
	defer t.Stop()
	select {
	case <-d.settled:
		return d.gone
	case <-t.C:
	case <-c.r.Context().Done():
	case <-c.sim.life.Done():
	}
	return false
}

// leaving is for how long half of a reply waits for the client to go away
// (200 ms).
func (s *Sim) leaving() time.Duration { return 4 * s.delays.Meet }

// rows notes how the second half stood, and does not find rows that were cut before.
func (k *cutReplies) rows(c *call, r *record, rows store.Rows) store.Rows {
	rows = blind(func(r *record) bool {
		return k.again.get(c) && r.operation != rpc.OperationUpdate && r.operation != rpc.OperationDelete
	}).rows(c, r, rows)
	d := k.watched.get(c)
	if d == nil || r.index < r.batch.Len()/2 {
		return rows
	}
	note := func(data []byte) { d.undo = append(d.undo, r.before(data)) }
	return changedRows{
		Rows: rows,
		put: func(old *store.Row, data []byte) error {
			if old != nil {
				note(old.Data)
			} else {
				note(encodeCells([]cell{{r.active, r.key}})) // left with its identifier alone
			}
			return rows.Put(old, data)
		},
		remove: func(old *store.Row) error { note(old.Data); return rows.Remove(old) },
	}
}

// write sends the reply in two halves. The delivery is known before the first
// byte leaves: the client may be faster with its next call than we are.
func (k *cutReplies) write(c *call, h *httpReply) {
	d := k.watched.take(c)
	if d == nil || c.err != nil {
		return
	}
	d.answer = bytes.Clone(c.result)
	k.sent.set(d.content, d)
	h.stall, h.stallAt = c.sim.leaving(), onWire(h)/2
	h.stalled = func(gone bool) { k.settle(c.sim, d, gone) }
}

func (k *cutReplies) settle(s *Sim, d *delivery, gone bool) {
	switch {
	case !gone:
		k.sent.forget(d.content)
	case k.takesBack:
		for _, was := range slices.Backward(d.undo) {
			was.restore(s)
		}
	}
	d.gone = gone
	close(d.settled)
}
