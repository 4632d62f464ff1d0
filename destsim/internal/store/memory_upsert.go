package store

import "bytes"

// Upserter is a unit that can take records by their text alone. Stores that
// cannot are given rows by With.
type Upserter interface {
	// Shape gives the shape of records with these quoted names in this order; nil:
	// they have to go by With.
	Shape(names [][]byte) *Shape
	// Upsert applies the list to a table with one unique field and fills the
	// verdicts. Records of one key are taken in their order, and so are ids
	// given. After a Other no later record of its key has been stored, and none
	// at all was created. Nothing of the list is kept.
	Upsert(t *Table, list []Upsert)
}

// Upsert is one record that was checked and found to be canonical as it was
// sent.
type Upsert struct {
	Shape *Shape
	Data  []byte // the whole record
	Key   []byte // the value of the unique field, at data[keyAt]
	KeyAt int
	// Whether a record may be created, and one that is there be changed.
	Create, Change bool
	Verdict        Verdict
	Record         int32 // its number in the batch

	// Notes of the store: the hash of the key, the next record of the same shard,
	// how many rows may be meant, and the first of them.
	hash uint64
	next int32
	rows int32
	row  *memoryRow
}

// Verdict is what became of an upsert.
type Verdict uint8

const (
	Stored  Verdict = iota
	Present         // and must not be changed
	Absent          // and must not be created
	Other           // it has to go by With
)

// Shape implements upserter.
func (u *memoryUnit) Shape(names [][]byte) *Shape { return u.m.shapes.of(names) }

// Upsert implements upserter. It goes shard by shard: that costs one lock for
// many records, and the memory of all of them is fetched at once.
func (u *memoryUnit) Upsert(want *Table, list []Upsert) {
	t := u.table(want)
	t.gate.RLock()
	defer t.gate.RUnlock()
	if len(t.uniques) != 1 || !bytes.Equal(t.uniques[0], want.Uniques[0]) {
		for i := range list {
			list[i].Verdict = Other // which indexes the table again
		}
		return
	}
	var heads [shardCount]int32 // the first record of each shard, from 1
	for i := len(list) - 1; i >= 0; i-- {
		hash := u.m.hash(list[i].Key)
		list[i].hash, list[i].next, heads[hash%shardCount] = hash, heads[hash%shardCount], int32(i+1)
	}
	place := u.m.dumps.Load() == 0
	missing := false
	for i, head := range heads {
		if head > 0 {
			missing = t.changeAll(&t.shards[i], list, head, place) || missing
		}
	}
	if !missing {
		return
	}
	// New records are created in the order of the batch, which determines ids;
	// so nothing is created before a record that goes the other way.
	other := false
	for i := range list {
		q := &list[i]
		if q.Verdict == Absent && q.Create {
			if q.Verdict = Other; !other {
				q.Verdict = u.create(t, q, place)
			}
		}
		other = other || q.Verdict == Other
	}
}

// changeAll changes the rows of one shard that are there. It reports whether some
// are not.
func (t *memoryTable) changeAll(s *memoryShard, list []Upsert, head int32, place bool) (missing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.fetch(s, list, head)
	other := false
	for at := head; at > 0; {
		q := &list[at-1]
		at = q.next
		if other {
			q.Verdict = Other
			continue
		}
		q.Verdict = t.change(s, q, place)
		other = q.Verdict == Other
		missing = missing || q.Verdict == Absent
	}
	return missing
}

// fetch finds the rows that the records may mean and brings into reach what
// change looks at: the words of the index, the rows, their data. Each walk is of
// loads that do not wait for each other, nor for a store before them; on a large
// table this waiting is what storing costs.
func (t *memoryTable) fetch(s *memoryShard, list []Upsert, head int32) {
	words := s.index[0].words
	mask, sum := uint64(len(words)-1), uint64(0)
	for at := head; at > 0 && len(words) > 0; {
		q := &list[at-1]
		at = q.next
		sum += words[q.hash>>32&mask]
	}
	for at := head; at > 0; {
		q := &list[at-1]
		at = q.next
		var ref rowRef
		if ref, q.rows = s.index[0].look(q.hash); q.rows > 0 {
			q.row = t.at(ref)
			sum += uint64(q.row.keyAt)
		}
	}
	for at := head; at > 0; {
		q := &list[at-1]
		at = q.next
		if q.rows == 0 {
			continue
		}
		data := q.row.Data
		for i := 0; i < len(data); i += cacheLine {
			sum += uint64(data[i])
		}
	}
	s.touched = sum // or the compiler would leave the loads out
}

// cacheLine is what a processor fetches at once, on most of them.
const cacheLine = 64

// change changes the row of a key that fetch has looked for; the lock of the
// shard is held.
func (t *memoryTable) change(s *memoryShard, q *Upsert, place bool) Verdict {
	have := q.row
	switch q.rows {
	case 0:
		return Absent
	case 1:
		if !t.hasKey(have, 0, q.Key) {
			return Absent
		}
	default:
		found := t.find(0, q.hash, q.Key, nil)
		if len(found) == 0 {
			return Absent
		}
		if len(found) > 1 {
			return Other // several rows with one key
		}
		have = t.at(found[0].where)
	}
	switch {
	case !q.Change:
		return Present
	case have.shape != q.Shape && !q.Shape.fits(have.Data):
		return Other // members that q does not name have to stay
	}
	have.replace(t, s, q, place)
	return Stored
}

// create adds a row, unless the batch has brought its key before.
func (u *memoryUnit) create(t *memoryTable, q *Upsert, place bool) Verdict {
	shard := int(q.hash % shardCount)
	s := &t.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	var ref rowRef
	if ref, q.rows = s.index[0].look(q.hash); q.rows > 0 {
		q.row = t.at(ref)
	}
	if v := t.change(s, q, place); v != Absent {
		return v
	}
	r := t.append(shard, u.m.ids.Add(1), s.room.keep(q.Data), q.Shape)
	r.owned, r.keyAt = true, uint32(q.KeyAt)
	s.index[0].add(q.hash, r.where)
	t.size.Add(1)
	return Stored
}

// replace puts the data of q into the place of that of a row, if it fits in and
// nothing is read there.
func (r *memoryRow) replace(t *memoryTable, s *memoryShard, q *Upsert, place bool) {
	r.shape, r.keyAt = q.Shape, uint32(q.KeyAt)
	if place && r.owned && len(q.Data) <= cap(r.Data) {
		r.Data = r.Data[:len(q.Data)]
		copy(r.Data, q.Data)
		return
	}
	t.abandon(s, r)
	r.Data, r.owned = s.room.keep(q.Data), true
}
