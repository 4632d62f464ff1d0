package destsim

import (
	"bytes"
	"math"
	"slices"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
)

// quickBatch is how most batches are applied: with nothing armed, every record
// that is canonical as it was sent is checked in place and handed to the store
// as text, and its result is written straight into the reply. A record that is
// not goes the long way by itself, so the effect is the same.
type quickBatch struct {
	form  *form // of the record before, nil: it cannot take this way
	store store.Upserter
	// wait holds records for the store; all before sent have been there.
	wait []store.Upsert
	sent int
	// outcomes has an entry for each record: a number in wait, or one in the
	// results of the batch, counted down from -1.
	outcomes []int32

	reply             []byte // the reply as far as it is written
	succeeded, failed int
}

// quick reports whether the batch may be applied in this way.
func (b *batch) quick() bool {
	c, p := b.call, b.plan
	s := c.sim
	if !p.quick || s.chain().filled != s.base || c.touch != nil || s.broken.Load() {
		return false
	}
	unit, ok := b.unit.(store.Upserter)
	q := &b.fast
	q.store, q.form, q.succeeded, q.failed = unit, nil, 0, 0
	q.wait, q.sent, q.outcomes = q.wait[:0], 0, q.outcomes[:0]
	return ok
}

// canBeQuick reports whether every good record of a plan is created and changed
// without looking at other rows or at the field that it sets.
func (p *plan) canBeQuick() bool {
	o := p.object
	if p.operation == rpc.OperationDelete || o.table.Wide || len(o.table.Uniques) != 1 || !bytes.Equal(o.table.Uniques[0], p.identifier.quoted) {
		return false
	}
	for _, col := range p.columns {
		if col.pending || col.problem != "" || !col.Createable || !col.Updateable && col != p.identifier {
			return false
		}
	}
	return true
}

// runQuick applies the records and writes the whole reply. The store is given
// many at once, and records of one key get there in their order.
func (b *batch) runQuick() error {
	q := &b.fast
	create, change := b.operation != rpc.OperationUpdate, b.operation != rpc.OperationInsert
	q.wait = slices.Grow(q.wait, b.Len())
	var members codec.Members
	for i := range b.Len() {
		record := b.Record(i)
		record.Members(&members)
		if q.form == nil || !record.Same() {
			q.form = q.formOf(b.plan, record, &members)
		}
		n := len(q.wait)
		q.wait = q.wait[:n+1]
		if u := &q.wait[n]; q.form != nil && q.form.take(record, &members, u) {
			u.Create, u.Change = create, change
			u.Data, u.Record = record.Raw(), int32(i)
			q.outcomes = append(q.outcomes, int32(n))
			continue
		}
		q.wait = q.wait[:n]
		q.outcomes = append(q.outcomes, 0)
		b.record.reset(b, i, nil)
		if problem := b.record.parse(); problem != "" {
			b.note(i, b.record.fail("%s", problem)) // the store need not know
			continue
		}
		if err := b.flush(); err != nil {
			return err
		}
		if err := b.long(i); err != nil {
			return err
		}
	}
	if err := b.flush(); err != nil {
		return err
	}
	if q.form != nil {
		b.Expect(&q.form.expected)
	}
	b.answerQuick()
	return b.unit.Commit()
}

// flush hands what waits to the store, and what that does not take the long way.
func (b *batch) flush() error {
	q := &b.fast
	list := q.wait[q.sent:]
	q.sent = len(q.wait)
	if len(list) == 0 {
		return nil
	}
	q.store.Upsert(b.object.table, list)
	for i := range list {
		if list[i].Verdict != store.Other {
			continue
		}
		if err := b.long(int(list[i].Record)); err != nil {
			return err
		}
	}
	return nil
}

// long applies one record as a batch that is not quick does.
func (b *batch) long(i int) error {
	b.record.reset(b, i, b.effect())
	b.note(i, b.record.apply())
	return b.failed
}

// note keeps the result of a record that did not take this way.
func (b *batch) note(i int, r result) {
	b.fast.outcomes[i] = -1 - int32(len(b.results))
	b.results = append(b.results, r)
}

// answerQuick writes the reply.
func (b *batch) answerQuick() {
	q := &b.fast
	q.reply = rpc.AppendResponseHead(q.reply[:0], b.call.id)
	from := len(q.reply)
	q.reply = append(q.reply, `{"record_results":[`...)
	for i, outcome := range q.outcomes {
		if i > 0 {
			q.reply = append(q.reply, ',')
		}
		if outcome < 0 {
			q.append(&b.results[-1-outcome])
			continue
		}
		switch u := &q.wait[outcome]; u.Verdict {
		case store.Stored:
			q.succeeded++
			q.reply = append(append(append(q.reply, `{"identifier":`...), u.Key...), `,"success":true}`...)
		case store.Present:
			b.skipQuick(i, alreadyPresent)
		default:
			b.skipQuick(i, notPresent)
		}
	}
	q.reply = append(q.reply, "]}}"...)
	b.call.result, b.call.encoded = q.reply[from:len(q.reply)-1], q.reply
}

// skipQuick writes the result of a record that does not qualify.
func (b *batch) skipQuick(i int, why string) {
	b.record.reset(b, i, nil)
	r := b.record.skip(why)
	b.fast.append(&r)
}

func (q *quickBatch) append(r *result) {
	if r.success {
		q.succeeded++
	} else {
		q.failed++
	}
	q.reply = codec.AppendRecordResult(q.reply, r.identifier, r.success, r.message)
}

// form is what records with the same names in the same order have in common.
type form struct {
	columns []*column
	// expected is what the values of the columns have to be, so that they are
	// in stored form.
	expected codec.Expectation
	active   int // the index of the identifier among them
	shape    *store.Shape
}

// want describes the values of the column: canonical would return an accepted
// one unchanged, without a problem. It may refuse others of that kind.
func (c *column) want() codec.Want {
	return codec.Want{Kind: codec.KindOf(c.Type), Array: c.Array, Null: !c.Required, Longest: uint32(min(c.maxLength, math.MaxInt32))}
}

// formsKept is how many forms a plan remembers.
const formsKept = 8

// is reports whether a record has this form.
func (f *form) is(members *codec.Members) bool {
	if members.Len() != len(f.columns) {
		return false
	}
	for j, col := range f.columns {
		if !bytes.Equal(members.Name(j), col.quoted) {
			return false
		}
	}
	return true
}

// take reports whether every value is good and in stored form, and finds the
// key. As a rule the scan has seen that already.
func (f *form) take(record codec.RawRecord, members *codec.Members, u *store.Upsert) bool {
	if !record.As(&f.expected) {
		if !record.Tight() {
			return false
		}
		for j := range f.expected.Wants {
			if !members.Plain(j, &f.expected.Wants[j]) {
				return false
			}
		}
	}
	u.Shape, u.Key, u.KeyAt = f.shape, members.Value(f.active), members.Offset(f.active)
	return u.Key[0] != 'n'
}

// formOf finds or makes the form of a record.
func (q *quickBatch) formOf(p *plan, record codec.RawRecord, members *codec.Members) *form {
	known := p.forms.Load()
	if known != nil {
		for _, f := range *known {
			if record.As(&f.expected) || f.is(members) {
				return f
			}
		}
	}
	f := q.newForm(p, members)
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
func (q *quickBatch) newForm(p *plan, members *codec.Members) *form {
	f := &form{active: -1}
	names := make([][]byte, 0, members.Len())
	for j := range members.Len() {
		name := members.Name(j)
		col := p.columns[string(name[1:len(name)-1])] // one with an escape is none
		if col == nil || !bytes.Equal(name, col.quoted) || slices.Contains(f.columns, col) {
			return nil
		}
		if col == p.identifier {
			f.active = j
		}
		f.columns, f.expected.Wants = append(f.columns, col), append(f.expected.Wants, col.want())
		names = append(names, col.quoted)
	}
	for _, required := range p.object.required {
		if !slices.ContainsFunc(f.columns, func(col *column) bool { return col.field == required }) {
			return nil
		}
	}
	if f.shape = q.store.Shape(names); f.shape == nil || f.active < 0 {
		return nil
	}
	return f
}
