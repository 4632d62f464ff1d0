package destsim

import "bytes"

// upserter is a unit that can take a record by its text alone. Stores that
// cannot are given rows by With.
type upserter interface {
	// Shape gives the shape of records with these columns in this order; nil:
	// they have to go by With.
	Shape(columns []*column) *shape
	// Upsert does to a table with one unique field what q says. It keeps nothing
	// of q.
	Upsert(t *table, q *upsert) verdict
}

// upsert is one record that was checked and found to be canonical as it was
// sent.
type upsert struct {
	shape *shape
	data  []byte // the whole record
	keyAt int    // where the value of the unique field begins in data
	key   []byte
	// Whether a record may be created, and one that is there be changed.
	create, change bool
}

// verdict is what became of an upsert.
type verdict uint8

const (
	verdictStored  verdict = iota
	verdictPresent         // and must not be changed
	verdictAbsent          // and must not be created
	verdictOther           // it has to go by With
)

// Shape implements upserter.
func (u *memoryUnit) Shape(columns []*column) *shape { return u.m.shapes.of(columns) }

// Upsert implements upserter.
func (u *memoryUnit) Upsert(want *table, q *upsert) verdict {
	t := u.table(want)
	t.gate.RLock()
	defer t.gate.RUnlock()
	if len(t.uniques) != 1 || !bytes.Equal(t.uniques[0], want.uniques[0]) {
		return verdictOther // which indexes the table anew
	}
	hash := u.m.hash(q.key)
	s := &t.shards[hash%shardCount]
	s.mu.Lock()
	defer s.mu.Unlock()
	var have *memoryRow
	for p := s.index[0].probe(hash); ; {
		ref, ok := p.next()
		if !ok {
			break
		}
		if r := t.at(ref); t.hasKey(r, 0, q.key) {
			if have != nil {
				return verdictOther // several rows with one key
			}
			have = r
		}
	}
	switch {
	case have == nil && !q.create:
		return verdictAbsent
	case have == nil:
		r := t.append(int(hash%shardCount), u.m.ids.Add(1), s.room.keep(q.data), q.shape)
		r.owned, r.keyAt = true, uint32(q.keyAt)
		s.index[0].add(hash, r.where)
		t.size.Add(1)
		return verdictStored
	case !q.change:
		return verdictPresent
	case have.shape != q.shape && !q.shape.fits(have.data):
		return verdictOther // what q does not name has to stay
	}
	have.replace(t, s, q, u.m.dumps.Load() == 0)
	return verdictStored
}

// replace puts the data of q into the place of that of a row, if it fits in and
// nobody reads there.
func (r *memoryRow) replace(t *memoryTable, s *memoryShard, q *upsert, place bool) {
	r.shape, r.keyAt = q.shape, uint32(q.keyAt)
	if place && r.owned && len(q.data) <= cap(r.data) {
		r.data = r.data[:len(q.data)]
		copy(r.data, q.data)
		return
	}
	t.abandon(s, r)
	r.data, r.owned = s.room.keep(q.data), true
}
