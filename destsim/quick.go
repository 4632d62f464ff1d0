package destsim

import (
	"bytes"

	"github.com/destkit/destkit/destsim/rpc"
)

// quickBatch is how most batches are applied: with nothing armed, every record
// that is canonical as it was sent is checked in place and handed to the store
// as text, and its result is written straight into the reply. A record that is
// not goes the long way by itself, so the effect is the same.
type quickBatch struct {
	columns []*column // of the members of the record before
	ready   bool      // columns are those of a record that may take this way
	active  int       // the index of the identifier among them
	upsert  upsert
	store   upserter

	reply             []byte // the reply as far as it is written
	succeeded, failed int
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
	q.store, q.ready, q.succeeded, q.failed = store, false, 0, 0
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
		if !q.ready || !record.Same() {
			q.learn(b, record)
		}
		if q.ready && record.Tight() && q.check(record) {
			q.upsert.data = record.Raw()
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

// learn looks at the names of a record that differ from those before.
func (q *quickBatch) learn(b *batch, record rpc.RawRecord) {
	q.columns, q.ready, q.active = q.columns[:0], false, -1
	for j := range record.Len() {
		name, _ := record.At(j)
		col := b.plan.columns[string(name)]
		if col == nil || !bytes.Equal(record.Name(j), col.quoted) {
			return
		}
		for _, other := range q.columns {
			if other == col {
				return
			}
		}
		if col == b.identifier {
			q.active = j
		}
		q.columns = append(q.columns, col)
	}
	for _, f := range b.object.required {
		if !q.has(f) {
			return
		}
	}
	q.upsert.shape = q.store.Shape(q.columns)
	q.ready = q.active >= 0 && q.upsert.shape != nil
}

func (q *quickBatch) has(f *field) bool {
	for _, col := range q.columns {
		if col.field == f {
			return true
		}
	}
	return false
}

// check tells whether every value is good and stands as it would be stored, and
// finds the key.
func (q *quickBatch) check(record rpc.RawRecord) bool {
	for j, col := range q.columns {
		if !col.verbatim(record.Value(j)) {
			return false
		}
	}
	q.upsert.key = record.Value(q.active)
	q.upsert.keyAt = record.Offset(q.active)
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
