package destsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"github.com/destkit/destkit/destsim/internal/store"
	"slices"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
)

// parallelViolations are parallel calls that get into each other's way (PAR-*).
var parallelViolations = []violation{
	keeps("PAR-001", "when more than eight list_fields calls are in flight, replies carry the id of the call that arrived last",
		func() seams { return crossed(func(c *call) *[]byte { return &c.id }) }),
	keeps("PAR-001.2", "when more than eight list_fields calls are in flight, replies carry the fields of the object that was asked for last",
		func() seams { return crossed(func(c *call) *[]byte { return &c.params }) }),
	keeps("PAR-002", "upsert batches of two records of one sync run that are in flight together are answered with the results of the one that arrived last", func() seams {
		var ready gathering[int64, []result]
		return seams{results: func(c *call, rs []result) []result {
			if !c.batch.upserts(2) {
				return rs
			}
			mine := slices.Clone(rs)
			for i := range mine {
				mine[i].identifier = bytes.Clone(mine[i].identifier)
			}
			if g := ready.hold(c, c.batch.Plan.SyncRunID, mine); g.together() {
				return slices.Clone(g.last.brings) // the batch reuses its slice
			}
			return rs
		}}
	}),
	keeps("PAR-002.2", "of upsert batches of two records of one sync run that are in flight together one is acknowledged and not written", func() seams {
		var batches gathering[int64, struct{}]
		return batched(func(c *call, b *batch) {
			if !b.upserts(2) {
				return
			}
			if g := batches.hold(c, b.Plan.SyncRunID, struct{}{}); g.together() && g.last == g {
				b.acknowledge()
			}
		})
	}),
	keeps("PAR-003", "upsert batches of three new records of one sync run with the same identifiers that are in flight together add copies", func() seams {
		var batches gathering[string, struct{}]
		var unseeing perCall[bool]
		copies := blind(func(r *record) bool { return unseeing.get(r.batch.call) })
		copies.batch = func(c *call, b *batch) {
			if !b.upserts(3) {
				return
			}
			if stored, _ := b.standings(); stored == 0 {
				unseeing.set(c, batches.hold(c, b.sameKeys(), struct{}{}).together())
			}
		}
		copies.answered = unseeing.forget
		return copies
	}),
	keeps("PAR-003.2", "upsert batches of three records of one sync run with the same identifiers that are in flight together write the first half of the fields from one batch and the second half from another", torn),
	keeps("PAR-003.3", "upsert batches of three stored records of one sync run with the same identifiers that are in flight together write the whole record as it was before, with their own values", lostUpdates),
	// One call is served at a time.
	keeps("PAR-004", "list_objects calls are served one at a time under one lock and take Delays.Work each", func() seams {
		one := make(chan struct{}, 1)
		return called(objectsReply, func(c *call) {
			one <- struct{}{}
			c.sleep(c.sim.delays.Work)
			<-one
		})
	}),
	keeps("PAR-005", "batches of two records of one sync run that are in flight together are executed with the operation of the one that arrived last", func() seams {
		var batches gathering[int64, string]
		return batched(func(c *call, b *batch) {
			if b.Len() == 2 {
				b.operation = batches.hold(c, b.Plan.SyncRunID, b.operation).last.brings
			}
		})
	}),
}

// gathering knows which calls are in flight at the same moment, by what they have
// in common. The zero value is ready for use.
type gathering[K comparable, T any] struct {
	mu sync.Mutex
	in map[K][]*guest[T]
}

// guest is one call of a gathering. All but brings is final once hold is over.
type guest[T any] struct {
	brings T
	most   int       // so many were in flight at once, itself included
	last   *guest[T] // of them arrived last
	before *guest[T] // arrived just before it, or, where it was the first, after it
}

// hold keeps a call in flight for Delays.Meet, so that parallel ones meet.
func (w *gathering[K, T]) hold(c *call, key K, brings T) *guest[T] {
	me := &guest[T]{brings: brings}
	w.mu.Lock()
	if w.in == nil {
		w.in = map[K][]*guest[T]{}
	}
	if there := w.in[key]; len(there) > 0 {
		me.before = there[len(there)-1]
	}
	w.in[key] = append(w.in[key], me)
	for _, g := range w.in[key] {
		g.most, g.last = max(g.most, len(w.in[key])), me
		if g.before == nil && g != me {
			g.before = me
		}
	}
	w.mu.Unlock()
	c.sleep(c.sim.delays.Meet)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.in[key] = slices.DeleteFunc(w.in[key], func(g *guest[T]) bool { return g == me })
	if len(w.in[key]) == 0 {
		delete(w.in, key)
	}
	return me
}

// together reports whether the call met another one.
func (g *guest[T]) together() bool { return g.most > 1 }

// manyPlanning is how many list_fields calls stay apart (PAR-001).
const manyPlanning = 8

// crossed takes a part of a list_fields call from the one that arrived last.
func crossed(part func(c *call) *[]byte) seams {
	var calls gathering[string, []byte]
	return called(giving(rpc.MethodListFields), func(c *call) {
		p := part(c)
		if g := calls.hold(c, c.method, bytes.Clone(*p)); g.most > manyPlanning {
			*p = g.last.brings
		}
	})
}

// upserts reports whether a batch is an upsert of so many records.
func (b *batch) upserts(records int) bool {
	return b.operation == rpc.OperationUpsert && b.Len() == records
}

// sameKeys is what batches of a sync run have in common that write the same records.
func (b *batch) sameKeys() string {
	keys := fmt.Sprint(b.Plan.SyncRunID)
	for _, r := range b.acknowledged() {
		keys += " " + string(r.identifier)
	}
	return keys
}

// lostUpdates is PAR-003.3: a record is read, changed, and written back whole.
func lostUpdates() seams {
	var batches gathering[string, struct{}]
	var read perCall[map[string][]byte] // the rows by their identifiers
	return seams{
		batch: func(c *call, b *batch) {
			if !b.upserts(3) {
				return
			}
			rows := map[string][]byte{}
			for i, s := range b.allStandings() {
				if s.stored {
					rows[string(b.key(i))] = s.data
				}
			}
			if batches.hold(c, b.sameKeys(), struct{}{}).together() {
				read.set(c, rows)
			}
		},
		rows: func(c *call, r *record, rows store.Rows) store.Rows {
			return changedRows{Rows: rows, put: func(old *store.Row, data []byte) error {
				if was := read.get(c)[string(r.key)]; was != nil {
					data = was
					for i := range r.cells {
						data = withMember(data, r.cells[i].column.quoted, r.cells[i].raw)
					}
				}
				return rows.Put(old, data)
			}}
		},
		answered: read.forget,
	}
}

// torn is PAR-003.2: a record is written in two statements, and the second one takes the
// values of another batch.
func torn() seams {
	type values = []map[string]json.RawMessage // by record and field
	var batches gathering[string, values]
	var others perCall[values] // of another batch
	return seams{
		batch: func(c *call, b *batch) {
			if !b.upserts(3) {
				return
			}
			mine := make(values, b.Len())
			for i := range mine {
				mine[i] = membersOf(b.Record(i).Raw())
			}
			if g := batches.hold(c, b.sameKeys(), mine); g.together() {
				others.set(c, g.before.brings)
			}
		},
		cells: func(c *call, r *record) {
			if other := others.get(c); other != nil {
				r.tear(other[r.index])
			}
		},
		answered: others.forget,
	}
}

// tear takes the second half of the fields that are no identifiers from other
// values.
func (r *record) tear(other map[string]json.RawMessage) {
	var plain []*cell
	for i := range r.cells {
		if !r.cells[i].column.Identifier {
			plain = append(plain, &r.cells[i])
		}
	}
	for _, c := range plain[len(plain)/2:] {
		if raw := other[c.column.APIName]; raw != nil {
			if value, problem := c.column.canonical(raw); problem == "" {
				c.raw = value
			}
		}
	}
}
