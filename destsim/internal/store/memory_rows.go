package store

import (
	"bytes"
	"slices"
)

// memoryRows are the rows of one shard, or of the whole table (-1).
type memoryRows struct {
	m     *memoryStore
	t     *memoryTable
	shard int
	found []*Row // room for the answer of Find
}

// holds reports whether the lock covers a row with that data.
func (r *memoryRows) holds(data []byte) bool {
	if r.shard < 0 {
		return true
	}
	key := r.t.firstKey(data)
	return key != nil && int(r.m.hash(key)%shardCount) == r.shard
}

// Find looks into the index, or through the table for a field without one.
func (r *memoryRows) Find(field, key []byte) ([]*Row, error) {
	if key != nil {
		for j, unique := range r.t.uniques {
			if !bytes.Equal(unique, field) {
				continue
			}
			hash := r.m.hash(key)
			if r.shard >= 0 && int(hash%shardCount) != r.shard {
				return nil, errOutsideLock
			}
			found := r.t.find(j, hash, key, r.found[:0])
			if r.shard >= 0 { // one key only, so one answer is enough
				r.found = found
			}
			return found, nil
		}
	}
	if r.shard >= 0 {
		return nil, errOutsideLock
	}
	all := r.t.all()
	if key == nil {
		return all, nil
	}
	return slices.DeleteFunc(all, func(o *Row) bool {
		v, ok := Member(o.Data, field)
		return !ok || !bytes.Equal(v, key)
	}), nil
}

// find appends the rows with a key in unique field j, in ascending order of id.
func (t *memoryTable) find(j int, hash uint64, key []byte, found []*Row) []*Row {
	index := &t.shards[hash%shardCount].index[j]
	for p := index.probe(hash); ; {
		ref, ok := p.next()
		if !ok {
			break
		}
		if r := t.at(ref); t.hasKey(r, j, key) {
			found = append(found, &r.Row)
		}
	}
	if len(found) > 1 {
		slices.SortFunc(found, func(a, b *Row) int { return int(a.ID - b.ID) })
	}
	return found
}

// hasKey reports whether a row has the key in unique field j.
func (t *memoryTable) hasKey(r *memoryRow, j int, key []byte) bool {
	if j > 0 {
		return bytes.Equal(keyOf(r.Data, t.uniques[j]), key)
	}
	at := int(r.keyAt)
	end := at + len(key)
	// A longer value would go on; in canonical text a value ends here or there.
	return at > 0 && end < len(r.Data) && (r.Data[end] == ',' || r.Data[end] == '}') && string(r.Data[at:end]) == string(key)
}

// Put replaces data as a whole, so that a reader that took it under the lock
// keeps a consistent record.
func (r *memoryRows) Put(old *Row, data []byte) error {
	if !r.holds(data) || old != nil && !r.holds(old.Data) {
		return errOutsideLock
	}
	if old == nil {
		key := r.t.firstKey(data)
		r.t.link(r.m, r.t.append(r.t.home(r.m, key), r.m.ids.Add(1), data, nil))
		r.t.size.Add(1)
		return nil
	}
	have := r.t.at(old.where)
	moved := slices.ContainsFunc(r.t.uniques, func(field []byte) bool {
		return !bytes.Equal(keyOf(old.Data, field), keyOf(data, field))
	})
	if moved {
		r.t.unlink(r.m, have)
	}
	r.t.abandon(r.home(have), have)
	have.Data, have.shape = data, nil
	if moved {
		r.t.link(r.m, have)
		return nil
	}
	have.place(r.t)
	return nil
}

// home is a shard whose lock is held: the one that keeps account of the row.
func (r *memoryRows) home(have *memoryRow) *memoryShard {
	if r.shard >= 0 {
		return &r.t.shards[r.shard]
	}
	return &r.t.shards[have.where/rowsPerShard]
}

func (r *memoryRows) Remove(old *Row) error {
	if !r.holds(old.Data) {
		return errOutsideLock
	}
	have := r.t.at(old.where)
	r.t.unlink(r.m, have)
	s := r.home(have)
	r.t.abandon(s, have)
	have.Data, have.shape, have.keyAt = nil, nil, 0
	r.t.size.Add(-1)
	if s.gone++; s.gone > s.count/2+slabRows {
		r.t.wasteful.Store(true)
	}
	return nil
}

// append adds a row to a shard that is locked.
func (t *memoryTable) append(shard int, id int64, data []byte, shape *Shape) *memoryRow {
	s := &t.shards[shard]
	if s.count == len(s.slabs)*slabRows {
		s.slabs = append(s.slabs, new(slab))
	}
	r := s.row(s.count)
	*r = memoryRow{Row: Row{id, data, rowRef(shard*rowsPerShard + s.count)}, shape: shape}
	s.count++
	return r
}

// link enters a row into every index.
func (t *memoryTable) link(m *memoryStore, r *memoryRow) {
	r.place(t)
	for j, field := range t.uniques {
		if key := keyOf(r.Data, field); key != nil {
			hash := m.hash(key)
			t.shards[hash%shardCount].index[j].add(hash, r.where)
		}
	}
}

// place stores the place of the first key in the data.
func (r *memoryRow) place(t *memoryTable) {
	r.keyAt = 0
	if len(t.uniques) > 0 {
		if start, _, ok := memberAt(r.Data, t.uniques[0]); ok && r.Data[start] != 'n' {
			r.keyAt = uint32(start)
		}
	}
}

// unlink takes a row out of every index.
func (t *memoryTable) unlink(m *memoryStore, r *memoryRow) {
	for j, field := range t.uniques {
		if key := keyOf(r.Data, field); key != nil {
			hash := m.hash(key)
			t.shards[hash%shardCount].index[j].remove(hash, r.where)
		}
	}
}
