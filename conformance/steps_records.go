package conformance

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// set is the records that one When sends with one operation.
type set struct {
	operation string
	records   []*record
}

const (
	whichOperation = `(operation "[a-z]+"|the creating operation|the changing operation|any operation|each operation|an operation that is not advertised)`
	manner         = `((?:, [^:]+)?)`
)

// recordSteps send ordinary records.
func recordSteps() []definition {
	return []definition{
		step(`^the service sends (\d+) new records? with `+whichOperation+manner+`$`, func(w *world) any { return w.sendsNew }),
		step(`^the service sends the same records( with other values)? with `+whichOperation+`(?: (\d+) times)?`+manner+`$`,
			func(w *world) any { return w.sendsSame }),
		step(`^the service sends the (first|same records and) (\d+) (?:records|new ones) with `+whichOperation+`$`, func(w *world) any { return w.sendsSome }),
		step(`^the service sends no records (?:(to every other object) )?with any operation$`, func(w *world) any { return w.sendsNone }),
		step(`^the service writes (\d+) records into existing fields if it may$`, func(w *world) any { return w.writesIfItMay }),
	}
}

// operations resolves the words of a step.
func (w *world) operations(which string) ([]string, error) {
	o := w.object
	if o == nil {
		return nil, harness("no object is chosen")
	}
	one := func(op, missing string) ([]string, error) {
		if op == "" {
			return nil, notApplicable("%s advertises no operation that %s", o, missing)
		}
		return []string{op}, nil
	}
	switch which {
	case "the creating operation":
		return one(o.creating(), "creates records")
	case "the changing operation":
		op := rpc.OperationUpsert
		if !o.accepts(op) {
			op = o.modifying()
		}
		return one(op, "changes records")
	case "any operation":
		return o.writing()[:1], nil
	case "each operation":
		return o.writing(), nil
	case "an operation that is not advertised":
		for _, op := range []string{rpc.OperationUpdate, rpc.OperationInsert, rpc.OperationUpsert} {
			if !o.accepts(op) {
				return []string{op}, nil
			}
		}
		return nil, notApplicable("%s advertises every operation", o)
	}
	return []string{strings.Trim(strings.TrimPrefix(which, "operation "), `"`)}, nil
}

// sendsNew makes records and sends them, a set of its own for each operation.
func (w *world) sendsNew(n int, which, how string) error {
	ops, err := w.operations(which)
	if err != nil {
		return err
	}
	m, err := w.manner(how)
	if err != nil {
		return err
	}
	w.sets = nil
	for _, op := range ops {
		for _, id := range m.identifiers {
			records, err := w.make(n, op, id, m)
			if err != nil {
				return err
			}
			w.sets = append(w.sets, set{op, records})
		}
	}
	return w.sendSets(m)
}

// sendsSame sends the records of the earlier step again, with their own
// operation ("each operation") or another one.
func (w *world) sendsSame(other, which, times, how string) error {
	ops, err := w.operations(which)
	if err != nil {
		return err
	}
	m, err := w.manner(how)
	if err != nil {
		return err
	}
	if which != "each operation" {
		var all []*record
		for _, s := range w.sets {
			all = append(all, s.records...)
		}
		w.sets = []set{{ops[0], all}}
	}
	for i := range w.sets {
		w.sets[i].records = w.again(w.sets[i].records, other != "", m)
	}
	n, _ := strconv.Atoi(times) // absent: once
	for range max(1, n) {
		if err := w.sendSets(m); err != nil {
			return err
		}
	}
	return nil
}

// again prepares records for another sending.
func (w *world) again(records []*record, other bool, m *sending) []*record {
	out := make([]*record, len(records))
	for i, r := range records {
		if other {
			r = w.changed(r, r.n+50)
		}
		out[i] = m.shape(w, r)
	}
	return out
}

func (w *world) sendsSome(what string, n int, which string) error {
	if what == "first" {
		return w.sendsFirst(n, which)
	}
	return w.sendsSameAndNew(n, which)
}

func (w *world) sendsSameAndNew(n int, which string) error {
	ops, err := w.operations(which)
	if err != nil {
		return err
	}
	old := w.sets[0].records
	fresh, err := w.make(n, ops[0], old[0].id, &sending{})
	if err != nil {
		return err
	}
	// The existing ones carry other values, so that an overwrite shows.
	w.sets = []set{{ops[0], append(w.again(old, true, &sending{}), fresh...)}}
	return w.sendSets(&sending{})
}

func (w *world) sendsFirst(n int, which string) error {
	ops, err := w.operations(which)
	if err != nil {
		return err
	}
	first := w.history[0].records
	w.sets = []set{{ops[0], first[:min(n, len(first))]}}
	return w.sendSets(&sending{})
}

// make builds n new records for an operation, by an identifier field.
func (w *world) make(n int, op string, id rpc.Field, m *sending) ([]*record, error) {
	if id.APIName == "" {
		var err error
		if id, err = w.object.identifier(); err != nil {
			return nil, err
		}
	}
	out := make([]*record, 0, n)
	for i := range n {
		r, err := w.newRecord(w.object, id, i+1)
		if err != nil {
			return nil, err
		}
		if op == rpc.OperationUpdate {
			r = r.updateable()
		}
		out = append(out, m.shape(w, r))
	}
	if m.twice {
		out = append(out, out...)
	}
	return out, nil
}

// updateable leaves out what an update may not write.
func (r *record) updateable() *record {
	c := *r
	c.values = map[string]json.RawMessage{}
	for name, raw := range r.values {
		if f, ok := r.object.field(name); !ok || f.Updateable || name == r.id.APIName {
			c.values[name] = raw
		}
	}
	return &c
}

// sendSets sends every set in the wanted manner and follows the results.
func (w *world) sendSets(m *sending) error {
	if w.model == nil {
		w.model = newModel()
	}
	w.modelBefore = w.model.clone()
	w.latest = nil
	for _, s := range w.sets {
		w.history = append(w.history, s)
		sent, err := m.send(w, s)
		if err == nil && m.alone {
			sent, err = w.sendAlone(s.operation, sent)
		}
		w.latest = append(w.latest, sent...)
		for _, b := range sent {
			w.model.apply(b)
		}
		if err != nil {
			return err
		}
		if slices.ContainsFunc(sent, func(b *batch) bool { return b.reply.Kind == wire.KindTimeout }) {
			break // one lost deadline is enough to judge
		}
	}
	w.waves = append(w.waves, w.latest)
	return nil
}

func (w *world) sendsNone(which string) error {
	if which == "" {
		return w.sendEmpty(w.object)
	}
	others := 0
	for _, o := range w.catalog.objects {
		if o.APIName != w.object.APIName && len(o.writing()) > 0 {
			others++
			if err := w.sendEmpty(o); err != nil {
				return err
			}
		}
	}
	if others == 0 {
		return notApplicable("the endpoint lists one object only")
	}
	return nil
}

func (w *world) sendEmpty(o *object) error {
	params, ok := w.emptyBatch(o)
	if !ok {
		return nil
	}
	_, err := w.send(request{method: rpc.MethodSyncBatch, params: params, object: o.APIName})
	return err
}

// writesIfItMay writes into the first named object that takes new records; a
// run without writes judges by reading alone.
func (w *world) writesIfItMay(n int) error {
	if !w.opts.Write {
		w.note("judged without writes: --write sees more")
		return nil
	}
	defer func() { w.object = nil }()
	for _, name := range w.opts.Objects {
		o := w.catalog.object(name)
		if o == nil || o.creating() == "" {
			continue
		}
		w.object = o
		records, err := w.newRecords(n)
		if err != nil {
			w.note("%s: %v", o, err)
			continue
		}
		_, err = w.write(o.creating(), records, plan{})
		return err
	}
	return nil
}
