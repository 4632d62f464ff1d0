package store

// Shape implements upserter.
func (u *postgresUnit) Shape(names [][]byte) *Shape { return u.s.shapes.of(names) }

// Upsert implements upserter, on rows that are read all at once. A store that
// fails sends every record by With, which tells why.
func (u *postgresUnit) Upsert(want *Table, list []Upsert) {
	keys := make([][]byte, len(list))
	for i := range list {
		keys[i] = list[i].Key
	}
	other := u.Preload(want, want.Uniques[0], keys) != nil
	for i := range list {
		q := &list[i]
		if q.Verdict = Other; !other {
			q.Verdict = u.upsert(u.tables[want.Name], q)
			other = q.Verdict == Other
		}
	}
}

// upsert does one record, whose key was looked for.
func (u *postgresUnit) upsert(t *postgresTable, q *Upsert) Verdict {
	b := t.buckets[digestOf(t.number, t.Uniques[0], q.Key)]
	switch {
	case len(b.rows) > 1:
		return Other
	case len(b.rows) == 0 && !q.Create:
		return Absent
	case len(b.rows) == 0:
		u.create(t, q.Data)
		return Stored
	case !q.Change:
		return Present
	}
	have := b.rows[0]
	if !q.Shape.fits(have.Data) {
		return Other // what q does not name has to stay
	}
	have.Data, have.touched = q.Data, true
	return Stored
}
