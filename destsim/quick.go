package destsim

import (
	"bytes"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
)

// quickBatch is how most batches are applied: with nothing armed, every record
// that is canonical as it was sent is checked in place and handed to the store
// as text, and its result is written straight into the reply. A record that is
// not goes the long way by itself, so the effect is the same.
type quickBatch struct {
	form   *form // of the record before, nil: it cannot take this way
	upsert upsert
	store  upserter

	reply             []byte // the reply as far as it is written
	succeeded, failed int
}

// form is what records with the same names in the same order have in common.
type form struct {
	columns []*column
	active  int // the index of the identifier among them
	shape   *shape
}

// formsKept is how many forms a plan remembers.
const formsKept = 8

// is tells whether a record has this form.
func (f *form) is(record rpc.RawRecord) bool {
	if record.Len() != len(f.columns) {
		return false
	}
	for j, col := range f.columns {
		if !bytes.Equal(record.Name(j), col.quoted) {
			return false
		}
	}
	return true
}

// quick tells whether the batch may be applied in this way.
func (b *batch) quick() bool {
	c, p := b.call, b.plan
	s := c.sim
	if !p.quick || s.seams.filled != s.base || c.touch != nil || s.broken.Load() {
		return false
	}
	store, ok := b.unit.(upserter)
	q := &b.fast
	q.store, q.form, q.succeeded, q.failed = store, nil, 0, 0
	q.upsert.create = b.operation != rpc.OperationUpdate
	q.upsert.change = b.operation != rpc.OperationInsert
	return ok
}

// canBeQuick tells whether every good record of a plan is created and changed
// without looking at other rows or at the field that it sets.
func (p *plan) canBeQuick() bool {
	o := p.object
	if p.operation == rpc.OperationDelete || o.table.wide || len(o.table.uniques) != 1 || !bytes.Equal(o.table.uniques[0], p.identifier.quoted) {
		return false
	}
	for _, col := range p.columns {
		if col.pending || col.problem != "" || !col.Createable || !col.Updateable && col != p.identifier {
			return false
		}
	}
	return true
}

// runQuick applies the records in order and writes the whole reply.
func (b *batch) runQuick() error {
	q := &b.fast
	q.reply = rpc.AppendResponseHead(q.reply[:0], b.call.id)
	from := len(q.reply)
	q.reply = append(q.reply, `{"record_results":[`...)
	effect, n := b.effect(), b.Len()
	for i := range n {
		record := b.Record(i)
		if i > 0 {
			q.reply = append(q.reply, ',')
		}
		if q.form == nil || !record.Same() {
			q.form = q.formOf(b.plan, record)
		}
		if q.form != nil && record.Tight() && q.check(record) {
			q.upsert.shape, q.upsert.data = q.form.shape, record.Raw()
			if v := q.store.Upsert(b.object.table, &q.upsert); v != verdictOther {
				q.answer(b, i, v)
				continue
			}
		}
		b.record.reset(b, i, effect)
		r := b.record.apply()
		if b.failed != nil {
			return b.failed
		}
		q.append(&r)
	}
	q.reply = append(q.reply, "]}}"...)
	b.call.result = q.reply[from : len(q.reply)-1]
	b.call.encoded = q.reply
	return b.unit.Commit()
}

// formOf finds or makes the form of a record.
func (q *quickBatch) formOf(p *plan, record rpc.RawRecord) *form {
	known := p.forms.Load()
	if known != nil {
		for _, f := range *known {
			if f.is(record) {
				return f
			}
		}
	}
	f := q.newForm(p, record)
	if f != nil {
		next := []*form{f} // two batches may forget what the other has learnt
		if known != nil {
			next = append(next, (*known)[:min(len(*known), formsKept-1)]...)
		}
		p.forms.Store(&next)
	}
	return f
}

// newForm gives nil for records that cannot take this way: with names that are
// not canonical, not in the plan or repeated, or without a required field.
func (q *quickBatch) newForm(p *plan, record rpc.RawRecord) *form {
	f := &form{active: -1}
	for j := range record.Len() {
		name, _ := record.At(j)
		col := p.columns[string(name)]
		if col == nil || !bytes.Equal(record.Name(j), col.quoted) || slices.Contains(f.columns, col) {
			return nil
		}
		if col == p.identifier {
			f.active = j
		}
		f.columns = append(f.columns, col)
	}
	for _, required := range p.object.required {
		if !slices.ContainsFunc(f.columns, func(col *column) bool { return col.field == required }) {
			return nil
		}
	}
	if f.shape = q.store.Shape(f.columns); f.shape == nil || f.active < 0 {
		return nil
	}
	return f
}

// check tells whether every value is good and stands as it would be stored, and
// finds the key.
func (q *quickBatch) check(record rpc.RawRecord) bool {
	for j, col := range q.form.columns {
		if !col.verbatim(record.Value(j)) {
			return false
		}
	}
	q.upsert.key = record.Value(q.form.active)
	q.upsert.keyAt = record.Offset(q.form.active)
	return q.upsert.key[0] != 'n'
}

// answer writes the result of a record that the store has seen.
func (q *quickBatch) answer(b *batch, i int, v verdict) {
	if v == verdictStored {
		q.succeeded++
		q.reply = append(append(append(q.reply, `{"identifier":`...), q.upsert.key...), `,"success":true}`...)
		return
	}
	why := alreadyPresent
	if v == verdictAbsent {
		why = notPresent
	}
	b.record.reset(b, i, nil)
	r := b.record.skip(why)
	q.append(&r)
}

func (q *quickBatch) append(r *result) {
	if r.success {
		q.succeeded++
	} else {
		q.failed++
	}
	q.reply = rpc.AppendRecordResult(q.reply, r.identifier, r.success, r.message)
}
