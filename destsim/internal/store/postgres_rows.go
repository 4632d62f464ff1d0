package store

import (
	"bytes"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// postgresRows are the rows of a table within a unit; narrow: only those of
// keys may be looked for.
type postgresRows struct {
	u      *postgresUnit
	t      *postgresTable
	narrow bool
}

// Find asks the server for what the unit has not read yet.
func (r postgresRows) Find(field, key []byte) ([]*Row, error) {
	indexed := slices.ContainsFunc(r.t.Uniques, func(u []byte) bool { return bytes.Equal(u, field) })
	if key == nil || !indexed {
		return r.findAll(field, key)
	}
	d := digestOf(r.t.number, field, key)
	if err := r.u.look(r.t, d); err != nil {
		return nil, err
	}
	found := make([]*Row, len(r.t.buckets[d].rows))
	for i, have := range r.t.buckets[d].rows {
		found[i] = &have.Row
	}
	return found, nil
}

// look reads the rows of keys unless they are there.
func (u *postgresUnit) look(t *postgresTable, keys ...digest) error {
	if !slices.ContainsFunc(keys, func(d digest) bool { return t.buckets[d] == nil }) {
		return nil
	}
	return u.load(t, keys)
}

// findAll goes through the table.
func (r postgresRows) findAll(field, key []byte) ([]*Row, error) {
	if r.narrow {
		return nil, errOutsideLock
	}
	if err := r.u.loadWhole(r.t); err != nil {
		return nil, err
	}
	var found []*Row
	for _, have := range r.t.rows {
		if have.removed {
			continue
		}
		if v, ok := Member(have.Data, field); key == nil || ok && bytes.Equal(v, key) {
			found = append(found, &have.Row)
		}
	}
	slices.SortFunc(found, func(a, b *Row) int { return int(a.ID - b.ID) })
	return found, nil
}

// Put keeps what is to be written.
func (r postgresRows) Put(old *Row, data []byte) error {
	t := r.t
	if err := r.u.look(t, digestsOf(t.number, t.Uniques, data)...); err != nil {
		return err
	}
	if old == nil {
		r.u.create(t, data)
		return nil
	}
	have := t.rows[old.ID]
	before := digestsOf(t.number, t.Uniques, have.Data)
	if err := r.u.look(t, before...); err != nil {
		return err
	}
	have.Data, have.touched = data, true
	t.relink(have, before, digestsOf(t.number, t.Uniques, data))
	return nil
}

// newRows is above every id that is stored: new rows come last.
const newRows = int64(1) << 60

// create adds a row, whose keys have been looked for.
func (u *postgresUnit) create(t *postgresTable, data []byte) {
	u.fresh++
	have := &postgresRow{Row: Row{ID: newRows + u.fresh, Data: data}, touched: true}
	t.rows[have.ID] = have
	t.relink(have, nil, digestsOf(t.number, t.Uniques, data))
}

func (r postgresRows) Remove(old *Row) error {
	have := r.t.rows[old.ID]
	before := digestsOf(r.t.number, r.t.Uniques, have.Data)
	if err := r.u.look(r.t, before...); err != nil {
		return err
	}
	have.removed, have.touched = true, true
	r.t.relink(have, before, nil)
	return nil
}

// relink moves a row to the keys that it has now.
func (t *postgresTable) relink(r *postgresRow, before, now []digest) {
	if slices.Equal(before, now) {
		return
	}
	for _, d := range before {
		t.bucket(d).drop(r)
	}
	for _, d := range now {
		t.bucket(d).add(r)
	}
}

// changes is what a unit writes into one table, in the form of columns.
type changes struct {
	gone, changed []int64
	data          [][]byte // of the changed rows
	created       [][]byte // in the order of creation, by which ids are given
	unlinked      []digest
	unlinkedID    []int64
	links         []newLink
}

// newLink is a new entry of the index: of a row that is there, or of the
// created row number fresh, from 1.
type newLink struct {
	digest digest
	id     int64
	fresh  int32
}

// flush asks for everything that has changed in a table. New entries of the
// index are made in the order of their digests, so that two batches that create
// the same keys never wait for each other.
func (u *postgresUnit) flush(q *pgx.Batch, t *postgresTable) {
	c := t.changes()
	if len(c.unlinked) > 0 {
		q.Queue("DELETE FROM keys k USING unnest($1::uuid[], $2::bigint[]) AS d(digest, id) WHERE k.digest = d.digest AND k.id = d.id", c.unlinked, c.unlinkedID)
	}
	if len(c.gone) > 0 {
		q.Queue("DELETE FROM records WHERE tbl = $1 AND id = ANY($2)", t.number, c.gone)
	}
	if len(c.changed) > 0 {
		q.Queue("UPDATE records r SET data = c.data FROM unnest($2::bigint[], $3::bytea[]) AS c(id, data) WHERE r.tbl = $1 AND r.id = c.id", t.number, c.changed, c.data)
	}
	digests, copies, ids := make([]digest, len(c.links)), make([]int32, len(c.links)), make([]int64, len(c.links))
	fresh := make([]int32, len(c.links))
	for i, l := range c.links {
		b := t.buckets[l.digest]
		b.last, copies[i] = b.last+1, b.last+1
		digests[i], ids[i], fresh[i] = l.digest, l.id, l.fresh
	}
	if len(c.created) == 0 && len(c.links) > 0 {
		q.Queue("INSERT INTO keys (digest, copy, tbl, id) SELECT d, c, $1, i FROM unnest($2::uuid[], $3::integer[], $4::bigint[]) AS l(d, c, i)", t.number, digests, copies, ids)
	}
	if len(c.created) > 0 {
		q.Queue(`WITH fresh AS MATERIALIZED (SELECT nextval('record_ids') AS id, n, data FROM unnest($2::bytea[]) WITH ORDINALITY AS c(data, n)),
			stored AS (INSERT INTO records (tbl, id, data) SELECT $1, id, data FROM fresh),
			ids AS MATERIALIZED (SELECT array_agg(id ORDER BY n) AS list FROM fresh)
			INSERT INTO keys (digest, copy, tbl, id)
			SELECT d, c, $1, CASE WHEN f > 0 THEN (SELECT list FROM ids)[f] ELSE i END
				FROM unnest($3::uuid[], $4::integer[], $5::bigint[], $6::integer[]) AS l(d, c, i, f)`,
			t.number, c.created, digests, copies, ids, fresh)
	}
}

// changes compares the rows with what is stored.
func (t *postgresTable) changes() *changes {
	c := &changes{}
	ids := slices.Sorted(maps.Keys(t.rows))
	for _, id := range ids {
		r := t.rows[id]
		if !r.touched || r.removed && r.before == nil {
			continue
		}
		var before, now []digest
		if r.before != nil {
			before = digestsOf(t.number, t.Uniques, r.before)
		}
		if !r.removed {
			now = digestsOf(t.number, t.Uniques, r.Data)
		}
		switch {
		case r.removed:
			c.gone = append(c.gone, r.ID)
		case r.before == nil:
			c.created = append(c.created, r.Data)
		default:
			c.changed, c.data = append(c.changed, r.ID), append(c.data, r.Data)
		}
		if !slices.Equal(before, now) {
			t.move(c, r, before, now)
		}
	}
	slices.SortStableFunc(c.links, func(a, b newLink) int { return bytes.Compare(a.digest[:], b.digest[:]) })
	return c
}

// move notes which entries of the index a row loses and gets.
func (t *postgresTable) move(c *changes, r *postgresRow, before, now []digest) {
	for _, d := range before {
		if slices.Contains(now, d) {
			continue
		}
		c.unlinked, c.unlinkedID = append(c.unlinked, d), append(c.unlinkedID, r.ID)
		if b := t.buckets[d]; b.stored > 0 {
			if b.stored--; b.stored == 0 {
				b.last = -1 // the key is free again
			}
		}
	}
	for _, d := range now {
		if slices.Contains(before, d) {
			continue
		}
		l := newLink{digest: d, id: r.ID}
		if r.before == nil {
			l.fresh = int32(len(c.created))
		}
		c.links = append(c.links, l)
	}
}
