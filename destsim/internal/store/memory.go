package store

import (
	"bytes"
	"errors"
	"hash/maphash"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// shardCount is how many locks a table has, so that parallel batches meet
// rarely (spec 4.2, statelessness rule 3).
const shardCount = 64

var errOutsideLock = errors.New("row key lies outside of the locked shard")

// memoryStore keeps records in memory. Its units cannot be rolled back: a
// record is there once it is put, which is as durable as memory gets.
type memoryStore struct {
	seed maphash.Seed
	ids  atomic.Int64
	// dumps counts copies that are being taken: no record is overwritten in its
	// place meanwhile.
	dumps  atomic.Int64
	shapes shapes
	// cut is held by every unit from Begin to its end, for reading, and for
	// writing by who wants no batch half done: snapshots.
	cut    sync.RWMutex
	mu     sync.RWMutex
	tables map[string]*memoryTable
}

// memoryTable holds the rows of one object. Records of an object with one
// unique field are reached under the read side of gate and the lock of their
// shard; everything that needs more than one key takes gate as a whole.
type memoryTable struct {
	gate     sync.RWMutex
	uniques  [][]byte
	shards   [shardCount]memoryShard
	size     atomic.Int64
	wasteful atomic.Bool // a shard requests everything to be packed
}

// memoryShard holds the rows that were created under its lock, in ascending
// order of id, and for each unique field the index of the keys that belong to
// it. A row whose key was changed stays where it is.
type memoryShard struct {
	mu    sync.Mutex
	slabs []*slab
	count int // rows in slabs, removed ones too
	index []memoryIndex
	room  arena
	gone  int // removed rows
	// touched makes the loads that fetch rows ahead count for something.
	touched uint64
	_       [64]byte
}

// slab is a piece of a shard; rows never move.
type slab [slabRows]memoryRow

const slabRows = 64

// memoryRow is a row and what the store knows of it. Without data it was
// removed. Rows fill a cache line each.
type memoryRow struct {
	Row
	shape *Shape // the names of its members, nil: not known
	keyAt uint32 // where the key in the first unique field begins, 0: there is none
	owned bool   // data is in an arena
}

// rowRef locates a row: the shard, and its number there.
type rowRef uint32

const rowsPerShard = 1 << 26 // what a rowRef can distinguish

func newMemoryStore() *memoryStore {
	return &memoryStore{seed: maphash.MakeSeed(), tables: map[string]*memoryTable{}}
}

// Begin keeps snapshots away; the unit carries what its records reuse.
func (m *memoryStore) Begin() (Unit, error) {
	m.cut.RLock()
	return &memoryUnit{m: m}, nil
}

// Drop forgets tables. A batch on its way keeps writing into the old one,
// which are not seen any more.
func (m *memoryStore) Drop(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "" {
		m.tables = map[string]*memoryTable{}
	}
	delete(m.tables, name)
	return nil
}

// Scan copies the rows of one page. Rows of a shard are in order, so that a
// page costs no more at the end of a table than at its beginning.
func (m *memoryStore) Scan(name string, after int64, limit int) ([]Row, int, error) {
	m.mu.RLock()
	t := m.tables[name]
	m.mu.RUnlock()
	if t == nil {
		return nil, 0, nil
	}
	if limit == 0 {
		return nil, int(t.size.Load()), nil
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	var found []Row
	t.each(after, func(r *memoryRow) bool {
		found = append(found, Row{ID: r.ID, Data: bytes.Clone(r.Data)})
		return len(found) < limit
	})
	return found, int(t.size.Load()), nil
}

// each gives the rows with an id above after in ascending order of id, until fn
// returns false; gate is held.
func (t *memoryTable) each(after int64, fn func(r *memoryRow) bool) {
	type cursor struct {
		shard *memoryShard
		at    int
		id    int64
	}
	var cursors []cursor
	for i := range t.shards {
		s := &t.shards[i]
		at := sort.Search(s.count, func(i int) bool { return s.row(i).ID > after })
		if at < s.count {
			cursors = append(cursors, cursor{s, at, s.row(at).ID})
		}
	}
	for len(cursors) > 0 {
		least := 0
		for i := range cursors {
			if cursors[i].id < cursors[least].id {
				least = i
			}
		}
		c := &cursors[least]
		if r := c.shard.row(c.at); r.Data != nil && !fn(r) {
			return
		}
		if c.at++; c.at == c.shard.count {
			cursors = slices.Delete(cursors, least, least+1)
			continue
		}
		c.id = c.shard.row(c.at).ID
	}
}

// all gives every row in ascending order of id; gate is held.
func (t *memoryTable) all() []*Row {
	list := make([]*Row, 0, t.size.Load())
	t.each(0, func(r *memoryRow) bool {
		list = append(list, &r.Row)
		return true
	})
	return list
}

// row gives a row by its number in the shard.
func (s *memoryShard) row(i int) *memoryRow { return &s.slabs[i/slabRows][i%slabRows] }

// at gives a row of any shard.
func (t *memoryTable) at(ref rowRef) *memoryRow {
	return t.shards[ref/rowsPerShard].row(int(ref % rowsPerShard))
}

// table finds or makes a table.
func (m *memoryStore) table(want *Table) *memoryTable {
	m.mu.RLock()
	t := m.tables[want.Name]
	m.mu.RUnlock()
	if t == nil {
		m.mu.Lock()
		if t = m.tables[want.Name]; t == nil {
			t = &memoryTable{}
			t.reindex(m, want.Uniques)
			m.tables[want.Name] = t
		}
		m.mu.Unlock()
	}
	return t
}

// reindex rebuilds rows and indexes, which also gives back what removed and
// replaced rows have left; gate is held.
func (t *memoryTable) reindex(m *memoryStore, uniques [][]byte) {
	var all []memoryRow
	t.each(0, func(r *memoryRow) bool {
		all = append(all, *r)
		return true
	})
	t.uniques = uniques
	t.shards = [shardCount]memoryShard{}
	for i := range t.shards {
		t.shards[i].index = make([]memoryIndex, len(uniques))
	}
	for i := range all {
		r := &all[i]
		shard, data := t.home(m, t.firstKey(r.Data)), r.Data
		if r.owned {
			data = t.shards[shard].room.keep(data)
		}
		added := t.append(shard, r.ID, data, r.shape)
		added.owned = r.owned
		t.link(m, added)
	}
	t.wasteful.Store(false)
}

// hash spreads keys; the seed differs per process, so no client can aim.
func (m *memoryStore) hash(key []byte) uint64 { return maphash.Bytes(m.seed, key) }

// home is the shard of rows with that key in the first unique field; those
// without a key live in the first shard.
func (t *memoryTable) home(m *memoryStore, key []byte) int {
	if key == nil {
		return 0
	}
	return int(m.hash(key) % shardCount)
}

var Null = []byte("null")

// keyOf is the value of a unique field, nil when it is absent or null.
func keyOf(data, field []byte) []byte {
	key, ok := Member(data, field)
	if !ok || bytes.Equal(key, Null) {
		return nil
	}
	return key
}

// firstKey is the value of the first unique field.
func (t *memoryTable) firstKey(data []byte) []byte {
	if len(t.uniques) == 0 {
		return nil
	}
	return keyOf(data, t.uniques[0])
}

type memoryUnit struct {
	m    *memoryStore
	rows memoryRows // of the shard that is locked, reused
	done bool

	want *Table // the table of the record before, and its counterpart here
	have *memoryTable
}

func (u *memoryUnit) Commit() error {
	u.Rollback()
	return nil
}

// Again begins the next batch of a store with a unit that has ended, which
// saves making one; false: it is another store's.
func (u *memoryUnit) Again(in Store) bool {
	if m, ok := in.(*memoryStore); !ok || m != u.m || !u.done {
		return false
	}
	u.m.cut.RLock()
	u.done, u.want, u.have = false, nil, nil
	return true
}

// Rollback undoes nothing, it only lets snapshots in.
func (u *memoryUnit) Rollback() {
	if !u.done {
		u.done = true
		u.m.cut.RUnlock()
	}
}

// table is the table in memory. It is packed here, where no lock is held, once
// half of it is waste.
func (u *memoryUnit) table(want *Table) *memoryTable {
	if u.want != want {
		u.want, u.have = want, u.m.table(want)
	}
	if t := u.have; t.wasteful.Load() {
		t.gate.Lock()
		if t.wasteful.Load() {
			t.reindex(u.m, t.uniques)
		}
		t.gate.Unlock()
	}
	return u.have
}

// With takes the narrow lock when one shard holds all rows of the key, and the
// whole table otherwise.
func (u *memoryUnit) With(want *Table, field, key []byte, fn func(Rows) error) error {
	t := u.table(want)
	narrow := !want.Wide && key != nil && len(want.Uniques) == 1 && bytes.Equal(want.Uniques[0], field)
	if narrow {
		t.gate.RLock()
		if slices.EqualFunc(t.uniques, want.Uniques, bytes.Equal) {
			defer t.gate.RUnlock()
			at := u.m.hash(key) % shardCount
			t.shards[at].mu.Lock()
			defer t.shards[at].mu.Unlock()
			u.rows = memoryRows{m: u.m, t: t, shard: int(at), found: u.rows.found}
			return fn(&u.rows)
		}
		t.gate.RUnlock()
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	if !slices.EqualFunc(t.uniques, want.Uniques, bytes.Equal) {
		t.reindex(u.m, want.Uniques)
	}
	return fn(&memoryRows{m: u.m, t: t, shard: -1})
}
