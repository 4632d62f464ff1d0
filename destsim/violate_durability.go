package destsim

import (
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

// lateRows puts off what is done to the rows of a record.
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

// crowd is what is going on in one sync run.
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
