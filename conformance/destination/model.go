package destination

import (
	"encoding/json"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/destsim/rpc"
)

// place names one record of the destination: object, identifier field, key.
type place struct{ object, field, key string }

func (r *record) place() place {
	return place{r.object.APIName, r.id.APIName, exchange.KeyText(r.key)}
}

// expected is what the destination must hold for a key after what it has
// acknowledged, by the meaning of the operations in spec 4.2.
type expected struct {
	// known is false when a batch had no answer, or two results disagree:
	// nothing can then be demanded.
	known  bool
	exists bool
	// written is true when the latest acknowledgement wrote values: a reported
	// skip writes none.
	written bool
	// operation is the last one that named the record, refused whether it was.
	operation string
	refused   bool
	changes   int // how often it was sent with other values than before
	// created is true once the destination has acknowledged the record.
	created bool
	values  map[string]json.RawMessage
	record  *record
}

// model follows the acknowledgements of one scenario.
type model struct {
	at    map[place]*expected
	order []place
}

func newModel() *model { return &model{at: map[place]*expected{}} }

// get returns the expectation for a record; a key that was never acknowledged
// is known to be absent, since keys are made for one run.
func (m *model) get(r *record) *expected {
	p := r.place()
	if e := m.at[p]; e != nil {
		return e
	}
	e := &expected{known: true, record: r, values: map[string]json.RawMessage{}}
	m.at[p] = e
	m.order = append(m.order, p)
	return e
}

// apply takes the results of one batch into account, in the order of records.
func (m *model) apply(b *batch) {
	for _, r := range b.records {
		e := m.get(r)
		for name, raw := range r.values {
			if was, sent := e.record.values[name]; e.operation != "" && sent && string(was) != string(raw) {
				e.changes++
				break
			}
		}
		e.record, e.operation, e.refused = r, b.operation, b.refused(r)
		switch {
		case b.succeeded(r):
			e.acknowledge(b.operation, r)
		case b.failed(r), len(b.records) == 1 && b.reply.IsError():
			e.written = false // a refusal leaves things as they were
		default:
			e.known = false
		}
	}
}

// acknowledge: a success of insert on an existing record and of update on an
// absent one may be a reported skip, which changes nothing.
func (e *expected) acknowledge(operation string, r *record) {
	switch operation {
	case rpc.OperationDelete:
		e.known, e.exists, e.written, e.values = true, false, false, map[string]json.RawMessage{}
		return
	case rpc.OperationInsert:
		if e.exists || !e.known {
			e.written = false
			return
		}
	case rpc.OperationUpdate:
		if !e.exists {
			e.written = false
			return
		}
	}
	existed := e.exists
	e.known, e.exists, e.written, e.created = true, true, true, true
	for name, raw := range r.values {
		if f, ok := r.object.field(name); existed && ok && !f.Updateable && name != r.id.APIName {
			continue // an existing record keeps what may not be updated
		}
		e.values[name] = raw
	}
}

// all returns the expectations in the order in which their keys were first sent.
func (m *model) all() []*expected {
	out := make([]*expected, len(m.order))
	for i, p := range m.order {
		out[i] = m.at[p]
	}
	return out
}
