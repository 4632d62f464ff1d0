package destsim

import (
	"bytes"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
)

// shardCount is how many locks a table has, so that parallel batches meet
// rarely (spec 4.2, statelessness rule 3).
const shardCount = 64

var errOutsideLock = errors.New("row key lies outside of the locked shard")

// memoryStore keeps records in maps. Its units cannot be rolled back: a record
// is there once it is put, which is as durable as memory gets.
type memoryStore struct {
	seed maphash.Seed
	ids  atomic.Int64
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
	gate    sync.RWMutex
	uniques [][]byte
	shards  [shardCount]memoryShard
	loose   []*row // rows without a value in the first unique field
	size    atomic.Int64
}

type memoryShard struct {
	mu sync.Mutex
	// index has one map per unique field: canonical value to the first row,
	// and copies the further rows with the same value.
	index  []map[string]*row
	copies []map[string][]*row
}

func newMemoryStore() *memoryStore {
	return &memoryStore{seed: maphash.MakeSeed(), tables: map[string]*memoryTable{}}
}

// Begin keeps snapshots away; the unit carries what its records reuse.
func (m *memoryStore) Begin() (unit, error) {
	m.cut.RLock()
	return &memoryUnit{m: m}, nil
}

// Drop forgets tables. A batch on its way keeps writing into the old one,
// which nobody sees any more.
func (m *memoryStore) Drop(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "" {
		m.tables = map[string]*memoryTable{}
	}
	delete(m.tables, name)
	return nil
}

// Scan sorts the whole table for one page: it serves people and tests, and
// keeping an order would cost every write.
func (m *memoryStore) Scan(name string, after int64, limit int) ([]row, int, error) {
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
	var found []row
	for _, r := range t.all() {
		if r.id > after {
			found = append(found, *r)
		}
	}
	if len(found) > limit {
		found = found[:limit]
	}
	return found, int(t.size.Load()), nil
}

// table finds or makes a table, and indexes it anew when its unique fields
// have changed.
func (m *memoryStore) table(want *table) *memoryTable {
	m.mu.RLock()
	t := m.tables[want.name]
	m.mu.RUnlock()
	if t == nil {
		m.mu.Lock()
		if t = m.tables[want.name]; t == nil {
			t = &memoryTable{}
			t.reindex(m, want.uniques, nil)
			m.tables[want.name] = t
		}
		m.mu.Unlock()
	}
	return t
}

// reindex builds the index over rows; gate is held.
func (t *memoryTable) reindex(m *memoryStore, uniques [][]byte, all []*row) {
	t.uniques, t.loose = uniques, nil
	for i := range t.shards {
		s := &t.shards[i]
		s.index = make([]map[string]*row, len(uniques))
		s.copies = make([]map[string][]*row, len(uniques))
		for j := range uniques {
			s.index[j] = map[string]*row{}
		}
	}
	for _, r := range all {
		t.link(m, r)
	}
}

// all gives every row in ascending order of id; gate is held.
func (t *memoryTable) all() []*row {
	list := slices.Clone(t.loose)
	if len(t.uniques) > 0 {
		for i := range t.shards {
			for _, r := range t.shards[i].index[0] {
				list = append(list, r)
			}
			for _, copies := range t.shards[i].copies[0] {
				list = append(list, copies...)
			}
		}
	}
	slices.SortFunc(list, func(a, b *row) int { return int(a.id - b.id) })
	return list
}

// shard spreads keys; the seed differs per process, so no client can aim.
func (m *memoryStore) shard(key []byte) uint64 {
	return maphash.Bytes(m.seed, key) % shardCount
}

var jsonNull = []byte("null")

// keyOf is the value of a unique field, nil when it is absent or null.
func keyOf(data, field []byte) []byte {
	key, ok := member(data, field)
	if !ok || bytes.Equal(key, jsonNull) {
		return nil
	}
	return key
}

// link enters a row into every index.
func (t *memoryTable) link(m *memoryStore, r *row) {
	for j, field := range t.uniques {
		key := keyOf(r.data, field)
		if key == nil {
			continue
		}
		s := &t.shards[m.shard(key)]
		if _, taken := s.index[j][string(key)]; !taken {
			s.index[j][string(key)] = r
			continue
		}
		if s.copies[j] == nil {
			s.copies[j] = map[string][]*row{}
		}
		s.copies[j][string(key)] = append(s.copies[j][string(key)], r)
	}
	if len(t.uniques) == 0 || keyOf(r.data, t.uniques[0]) == nil {
		t.loose = append(t.loose, r)
	}
}

// unlink takes a row out of every index.
func (t *memoryTable) unlink(m *memoryStore, r *row) {
	if len(t.uniques) == 0 || keyOf(r.data, t.uniques[0]) == nil {
		t.loose = slices.DeleteFunc(t.loose, func(o *row) bool { return o == r })
	}
	for j, field := range t.uniques {
		key := keyOf(r.data, field)
		if key == nil {
			continue
		}
		s := &t.shards[m.shard(key)]
		copies := s.copies[j][string(key)]
		if s.index[j][string(key)] == r {
			if len(copies) == 0 {
				delete(s.index[j], string(key))
				continue
			}
			s.index[j][string(key)], copies = copies[0], copies[1:]
		} else {
			copies = slices.DeleteFunc(slices.Clone(copies), func(o *row) bool { return o == r })
		}
		if s.copies[j][string(key)] = copies; len(copies) == 0 {
			delete(s.copies[j], string(key))
		}
	}
}

type memoryUnit struct {
	m    *memoryStore
	rows memoryRows // of the shard that is locked, reused
	done bool
}

func (u *memoryUnit) Commit() error {
	u.Rollback()
	return nil
}

// Rollback undoes nothing, it only lets snapshots in.
func (u *memoryUnit) Rollback() {
	if !u.done {
		u.done = true
		u.m.cut.RUnlock()
	}
}

// With takes the narrow lock when one shard holds all rows of the key, and the
// whole table otherwise.
func (u *memoryUnit) With(want *table, field, key []byte, fn func(rows) error) error {
	t := u.m.table(want)
	narrow := !want.wide && key != nil && len(want.uniques) == 1 && bytes.Equal(want.uniques[0], field)
	if narrow {
		t.gate.RLock()
		if slices.EqualFunc(t.uniques, want.uniques, bytes.Equal) {
			defer t.gate.RUnlock()
			at := u.m.shard(key)
			t.shards[at].mu.Lock()
			defer t.shards[at].mu.Unlock()
			u.rows = memoryRows{m: u.m, t: t, shard: int(at), found: u.rows.found}
			return fn(&u.rows)
		}
		t.gate.RUnlock()
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	if !slices.EqualFunc(t.uniques, want.uniques, bytes.Equal) {
		t.reindex(u.m, want.uniques, t.all())
	}
	return fn(&memoryRows{m: u.m, t: t, shard: -1})
}

// memoryRows are the rows of one shard, or of the whole table (-1).
type memoryRows struct {
	m     *memoryStore
	t     *memoryTable
	shard int
	found []*row // room for the answer of Find
}

// holds tells whether the lock covers a row with that data.
func (r *memoryRows) holds(data []byte) bool {
	if r.shard < 0 {
		return true
	}
	key := keyOf(data, r.t.uniques[0])
	return key != nil && int(r.m.shard(key)) == r.shard
}

// Find looks into the index, or through the table for a field without one.
func (r *memoryRows) Find(field, key []byte) ([]*row, error) {
	if key != nil {
		for j, unique := range r.t.uniques {
			if !bytes.Equal(unique, field) {
				continue
			}
			at := r.m.shard(key)
			if r.shard >= 0 && int(at) != r.shard {
				return nil, errOutsideLock
			}
			s := &r.t.shards[at]
			first := s.index[j][string(key)]
			if first == nil {
				return nil, nil
			}
			if r.shard >= 0 { // one key only, so one answer is enough
				r.found = append(append(r.found[:0], first), s.copies[j][string(key)]...)
				return r.found, nil
			}
			return append([]*row{first}, s.copies[j][string(key)]...), nil
		}
	}
	if r.shard >= 0 {
		return nil, errOutsideLock
	}
	all := r.t.all()
	if key == nil {
		return all, nil
	}
	return slices.DeleteFunc(all, func(o *row) bool {
		v, ok := member(o.data, field)
		return !ok || !bytes.Equal(v, key)
	}), nil
}

// Put replaces data as a whole, so that a reader that took it under the lock
// keeps a consistent record.
func (r *memoryRows) Put(old *row, data []byte) error {
	if !r.holds(data) || old != nil && !r.holds(old.data) {
		return errOutsideLock
	}
	if old == nil {
		r.t.link(r.m, &row{id: r.m.ids.Add(1), data: data})
		r.t.size.Add(1)
		return nil
	}
	for _, field := range r.t.uniques {
		if !bytes.Equal(keyOf(old.data, field), keyOf(data, field)) {
			r.t.unlink(r.m, old)
			old.data = data
			r.t.link(r.m, old)
			return nil
		}
	}
	old.data = data
	return nil
}

func (r *memoryRows) Remove(old *row) error {
	if !r.holds(old.data) {
		return errOutsideLock
	}
	r.t.unlink(r.m, old)
	r.t.size.Add(-1)
	return nil
}
