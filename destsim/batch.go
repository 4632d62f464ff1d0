package destsim

import (
	"fmt"
	"unsafe"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
)

// batch is one sync_batch call on its way into the store. It is reused for
// later calls: nothing of it may be kept beyond the call.
type batch struct {
	codec.Batch
	request rpc.Request
	call    *call
	plan    *plan
	// A violation may change these before the records are applied.
	object     *object
	operation  string
	identifier *column
	from, to   int // records from..to-1 are applied

	order   []*column // of the members of the record before
	unit    store.Unit
	results []result
	record  record
	outcome result
	failed  error // the store has failed: the batch fails as a whole
	fast    quickBatch
}

// result is the answer for one record (spec 7.2.4).
type result struct {
	identifier []byte // the raw value as it was sent, nil is null
	success    bool
	message    string
	skipped    bool   // nothing was done because the record does not qualify
	raw        []byte // when set, this JSON replaces the first three
}

// syncBatch applies a batch and sets the answer.
func (c *call) syncBatch() {
	b, err := c.open()
	if err != nil {
		c.fail(err.Code, err.Message)
		return
	}
	if c.sim.config.EnforceLimits {
		release, ok := c.sim.limits.Load().enter(c, b)
		defer release()
		if !ok {
			return
		}
	}
	for _, f := range c.sim.chain().batch {
		if f(c, b); c.done {
			return
		}
	}
	if err := b.run(); err != nil {
		c.fail(rpc.CodeInternalError, "the batch could not be stored: "+err.Error())
		return
	}
	for _, f := range c.sim.chain().results {
		b.results = f(c, b.results)
	}
	if c.done = true; c.encoded != nil {
		return
	}
	c.result = appendResults(make([]byte, 0, 24+72*len(b.results)), b.results)
}

// open decodes the params, unless that has happened with the envelope, and
// resolves the plan.
func (c *call) open() (*batch, *rpc.Error) {
	b := c.batch
	if len(c.decodedParams) != len(c.params) || unsafe.SliceData(c.decodedParams) != unsafe.SliceData(c.params) {
		c.paramsErr = nil
		if err := codec.DecodeBatch(c.params, &b.Batch); err != nil {
			return nil, &rpc.Error{Code: rpc.CodeInvalidParams, Message: err.Error()}
		}
	}
	if c.paramsErr != nil {
		return nil, c.paramsErr
	}
	c.object = b.Plan.Object.APIName
	p, err := c.sim.compile(&b.Batch)
	if len(c.sim.chain().accept) > 0 {
		p = p.editable()
		for _, f := range c.sim.chain().accept {
			err = f(c, p, err)
		}
	}
	if err != nil {
		return nil, err
	}
	b.call, b.plan, b.object, b.operation, b.identifier = c, p, p.object, p.operation, p.identifier
	b.from, b.to, b.results, b.failed, b.order = 0, b.Len(), b.results[:0], nil, b.order[:0]
	return b, nil
}

// column finds the column of member number at of a record. Records of a batch
// have their members in the same order as a rule, so the record before is
// checked first.
func (b *batch) column(at int, name []byte) *column {
	if at < len(b.order) && b.order[at].APIName == string(name) {
		return b.order[at]
	}
	col := b.plan.columns[string(name)]
	switch {
	case col == nil:
	case at < len(b.order):
		b.order[at] = col
	case at == len(b.order):
		b.order = append(b.order, col)
	}
	return col
}

// run applies the records in order, so that the same identifier twice in one
// batch gets two results, and commits before anything is acknowledged
// (spec 4.2, statelessness rule 2).
func (b *batch) run() error {
	s := b.call.sim
	if u, ok := b.unit.(renewable); !ok || !u.Again(s.store) {
		var err error
		if b.unit, err = s.store.Begin(); err != nil {
			return err
		}
	}
	defer b.unit.Rollback()
	if b.quick() {
		return b.runQuick()
	}
	apply, effect := b.chain(), b.effect()
	for i := b.from; i < b.to; i++ {
		b.record.reset(b, i, effect)
		b.results = append(b.results, apply(&b.record))
		if b.failed != nil {
			return b.failed
		}
	}
	return b.unit.Commit()
}

// renewable is a unit that can serve the next batch after its end.
type renewable interface {
	// Again is Begin of the store that the unit is of; false for another one.
	Again(in store.Store) bool
}

// effect is what happens to the record under the lock of its key.
func (b *batch) effect() func(store.Rows) error {
	return func(rows store.Rows) error {
		for _, f := range b.call.sim.chain().rows {
			rows = f(b.call, &b.record, rows)
		}
		var err error
		b.outcome, err = b.record.effect(rows)
		return err
	}
}

// chain puts the apply seams around the clean effect, the first outermost.
func (b *batch) chain() next {
	apply := next((*record).apply)
	seams := b.call.sim.chain().apply
	for i := len(seams) - 1; i >= 0; i-- {
		f, inner := seams[i], apply
		apply = func(r *record) result { return f(b.call, r, inner) }
	}
	return apply
}

// appendResults encodes the result of sync_batch.
func appendResults(dst []byte, results []result) []byte {
	dst = append(dst, `{"record_results":[`...)
	for i := range results {
		if i > 0 {
			dst = append(dst, ',')
		}
		if r := &results[i]; r.raw != nil {
			dst = append(dst, r.raw...)
		} else {
			dst = codec.AppendRecordResult(dst, r.identifier, r.success, r.message)
		}
	}
	return append(dst, ']', '}')
}

// Texts of record results that are the same for every record.
const (
	alreadyPresent = "record already present"
	notPresent     = "record not present"
	takenValue     = " has a value that belongs to another record"
)

// skip reports a record that does not qualify, in the declared convention: the
// protocol has no separate result for that.
func (r *record) skip(why string) result {
	switch r.batch.call.sim.config.SkipConvention {
	case "success":
		return result{identifier: r.identifier, success: true, skipped: true}
	case "success-with-message":
		return result{identifier: r.identifier, success: true, message: why, skipped: true}
	}
	return result{identifier: r.identifier, message: why, skipped: true}
}

func (r *record) ok() result { return result{identifier: r.identifier, success: true} }

func (r *record) fail(format string, args ...any) result {
	return result{identifier: r.identifier, message: fmt.Sprintf(format, args...)}
}
