package destsim

// Shape implements upserter.
func (u *postgresUnit) Shape(columns []*column) *shape { return u.s.shapes.of(columns) }

// Upsert implements upserter, on rows that are read all at once. A store that
// fails sends every record by With, which tells why.
func (u *postgresUnit) Upsert(want *table, list []upsert) {
	keys := make([][]byte, len(list))
	for i := range list {
		keys[i] = list[i].key
	}
	other := u.Preload(want, want.uniques[0], keys) != nil
	for i := range list {
		q := &list[i]
		if q.verdict = verdictOther; !other {
			q.verdict = u.upsert(u.tables[want.name], q)
			other = q.verdict == verdictOther
		}
	}
}

// upsert does one record, whose key was looked for.
func (u *postgresUnit) upsert(t *postgresTable, q *upsert) verdict {
	b := t.buckets[digestOf(t.number, t.uniques[0], q.key)]
	switch {
	case len(b.rows) > 1:
		return verdictOther
	case len(b.rows) == 0 && !q.create:
		return verdictAbsent
	case len(b.rows) == 0:
		u.create(t, q.data)
		return verdictStored
	case !q.change:
		return verdictPresent
	}
	have := b.rows[0]
	if !q.shape.fits(have.data) {
		return verdictOther // what q does not name has to stay
	}
	have.data, have.touched = q.data, true
	return verdictStored
}
