package destsim

import (
	"encoding/json"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
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

// durabilityViolations are acknowledged records that are lost or doubled
// (DUR-*, DUP-*).
func durabilityViolations() []violation {
	return slices.Concat(lateViolations(), cutViolations(), repeatViolations())
}

func lateViolations() []violation {
	return []violation{
		keeps("DUR-001", "batches of 50 or more records are written Delays.Write after they are acknowledged", func(s *Sim) seams {
			return seams{rows: func(_ *call, r *record, rows store.Rows) store.Rows {
				if r.batch.Len() >= lateBatch {
					return s.late(r, rows)
				}
				return rows
			}}
		}),
		breaks("DUR-001.2", "every 50th record of a batch is acknowledged and not written",
			unwritten(func(r *record, _ *store.Row) bool { return r.index%lostRecord == lostRecord-1 })),
		breaks("DUR-001.3", "the last record of a batch of 50 or more is acknowledged and not written",
			unwritten(func(r *record, _ *store.Row) bool { n := r.batch.Len(); return n >= lateBatch && r.index == n-1 })),
		keeps("DUR-002", "batches of one record are written Delays.Write after they are acknowledged when eight or more batches of their sync run are in flight or were answered within Delays.Meet", lateWhenBusy),
		breaks("DUR-003", "a restart empties the store",
			seams{restart: func(s *Sim) {
				for _, o := range s.catalogue.Load().objects {
					_ = s.store.Drop(o.table.Name) // a store that fails has lost its records, too
				}
			}}),
		breaks("DUR-005", "strings of 256 to 4096 characters are cut to 255 and acknowledged",
			seams{value: func(_ *call, _ *record, c *cell) {
				// Identifiers stay: another key would be another rule.
				if c.column.Type != rpc.TypeString || c.column.Array || c.column.Identifier || c.raw[0] != '"' {
					return
				}
				text, err := rawjson.StringText(c.raw)
				if n := utf8.RuneCountInString(text); err == nil && n > columnLength && n <= longestColumn {
					c.raw = store.Quote(string([]rune(text)[:columnLength]))
				}
			}}),
	}
}

// late puts off what is done to the rows of a record.
func (s *Sim) late(r *record, rows store.Rows) store.Rows {
	write := func(data []byte) {
		s.putLater(s.delays.Write, r.object.table, r.active.quoted, r.key, data)
	}
	return changedRows{
		Rows:   rows,
		put:    func(_ *store.Row, data []byte) error { write(data); return nil },
		remove: func(*store.Row) error { write(nil); return nil },
	}
}

// crowd is what is going on in one sync run.
type crowd struct {
	inFlight map[*call]bool // and whether its write comes late
	answered []time.Time
}

// crowds is that of every sync run.
type crowds struct {
	mu   sync.Mutex
	runs map[int64]*crowd
}

// enter begins a batch; it is late when the run is busy and the batch is small.
func (k *crowds) enter(c *call, b *batch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs == nil {
		k.runs = map[int64]*crowd{}
	}
	run := k.runs[b.Plan.SyncRunID]
	if run == nil {
		run = &crowd{inFlight: map[*call]bool{}}
		k.runs[b.Plan.SyncRunID] = run
	}
	now, window := c.sim.clock(), c.sim.delays.Meet
	run.answered = slices.DeleteFunc(run.answered, func(t time.Time) bool { return now.Sub(t) > window })
	run.inFlight[c] = false
	run.inFlight[c] = b.Len() == 1 && len(run.inFlight)+len(run.answered) >= busyRun
}

func (k *crowds) late(c *call, b *batch) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	run := k.runs[b.Plan.SyncRunID]
	return run != nil && run.inFlight[c]
}

func (k *crowds) leave(c *call, b *batch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	run := k.runs[b.Plan.SyncRunID]
	if run == nil {
		return
	}
	if _, is := run.inFlight[c]; is {
		delete(run.inFlight, c)
		run.answered = append(run.answered, c.sim.clock())
	}
}

// lateWhenBusy is DUR-002: the queue of a destination that only fills up under
// load.
func lateWhenBusy(s *Sim) seams {
	var runs crowds
	return seams{
		batch: func(c *call, b *batch) *rpc.Error {
			runs.enter(c, b)
			return nil
		},
		rows: func(c *call, r *record, rows store.Rows) store.Rows {
			if runs.late(c, r.batch) {
				return s.late(r, rows)
			}
			return rows
		},
		answered: func(c *call) {
			if c.method == rpc.MethodSyncBatch && c.batch != nil {
				runs.leave(c, c.batch)
			}
		},
	}
}

// repeatViolations do not bear what is delivered twice (DUP-*).
func repeatViolations() []violation {
	return []violation{
		breaks("DUP-001", "upsert of a batch all of whose records are stored with the same values is an error",
			refused(rpc.CodeServerError, "unique violation", func(b *batch) bool {
				return b.operation == rpc.OperationUpsert && b.Len() > 0 && count(b.standings(), standing.isSame) == b.Len()
			})),
		breaks("DUP-002", "upsert of a record that is stored with the same values adds a second copy",
			doubled(func(r *record, old *store.Row) bool { return r.same(old.Data) })),
		breaks("DUP-003", "upsert of one existing record with the same values, alone in its batch, is reported as failed",
			seams{batch: func(c *call, b *batch) *rpc.Error {
				if b.operation == rpc.OperationUpsert && b.Len() == 1 && b.standings()[0].same {
					identifier, _ := b.Record(0).Field(b.identifier.APIName)
					c.answer(json.RawMessage(appendResults(nil, []result{{identifier: identifier, message: "no row was changed"}})))
				}
				return nil
			}}),
	}
}
