package conformance

import (
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// set is the records that one When sends with one operation.
type set struct {
	operation string
	records   []*record
}

const (
	whichOperation = `(operation "[a-z]+"|the creating operation|the changing operation|the changing operation if there is one|any operation|each operation|an operation that is not advertised)`
	manner         = `((?:, [^:]+)?)`
)

// recordSteps send ordinary records.
func recordSteps() []definition {
	return []definition{
		step(`^the service sends (\d+) new records? with `+whichOperation+manner+`$`, func(w *world) any { return w.sendsNew }),
		step(`^the service sends the same records( with other values)? with `+whichOperation+`(?: (\d+) times)?`+manner+`$`,
			func(w *world) any { return w.sendsSame }),
		step(`^the service sends the (first|same records and) (\d+) (?:records|new ones)( with other values)? with `+whichOperation+manner+`$`, func(w *world) any { return w.sendsSome }),
		step(`^the service sends (\d+) records? that (?:it|each operation) is for with (each operation|every operation of a mirror)`+manner+`$`, func(w *world) any { return w.sendsQualifying }),
		step(`^the service sends 2 new records and their look-alikes with `+whichOperation+`$`, func(w *world) any { return w.sendsLookAlikes }),
		step(`^the service sends no records (?:(to every other object) )?with any operation$`, func(w *world) any { return w.sendsNone }),
		step(`^the service (plans every other object|sends new records to the named objects in turn)$`, func(w *world) any { return w.amongObjects }),
		step(`^a good new record is accepted as the control$`, func(w *world) any { return w.acceptsControl }),
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
	case "the changing operation if there is one":
		if op := o.modifying(); op != "" {
			return []string{op}, nil
		}
		return nil, nil
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
	if len(ops) == 0 {
		return nil // no operation changes records, and none has to
	}
	if which != "each operation" {
		var all []*record
		for _, s := range w.sets {
			all = append(all, s.records...)
		}
		w.sets = []set{{ops[0], all}}
	}
	for i := range w.sets {
		w.sets[i].records = forOperation(w.sets[i].operation, w.again(w.sets[i].records, other != "", m))
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
			r = w.changed(r, 1)
		}
		out[i] = m.shape(w, r)
	}
	return out
}

func (w *world) sendsSome(what string, n int, other, which, how string) error {
	m, err := w.manner(how)
	if err != nil {
		return err
	}
	if what == "first" {
		return w.sendsFirst(n, other != "", which, m)
	}
	return w.sendsSameAndNew(n, which, m)
}

func (w *world) sendsSameAndNew(n int, which string, m *sending) error {
	ops, err := w.operations(which)
	if err != nil {
		return err
	}
	old := w.sets[0].records
	fresh, err := w.make(n, ops[0], old[0].id, m)
	if err != nil {
		return err
	}
	// The existing ones carry other values, so that an overwrite shows.
	w.sets = []set{{ops[0], append(w.again(old, true, m), fresh...)}}
	return w.sendSets(m)
}

func (w *world) sendsFirst(n int, other bool, which string, m *sending) error {
	ops, err := w.operations(which)
	if err != nil {
		return err
	}
	first := w.history[0].records
	first = first[:min(n, len(first))]
	if other {
		first = w.again(first, true, m)
	}
	w.sets = []set{{ops[0], forOperation(ops[0], first)}}
	return w.sendSets(m)
}

// forOperation leaves out of the records what an operation may not write.
func forOperation(operation string, records []*record) []*record {
	if operation != rpc.OperationUpdate {
		return records
	}
	out := make([]*record, len(records))
	for i, r := range records {
		out[i] = r.updateable()
	}
	return out
}

// make builds n new records for an operation, by an identifier field.
func (w *world) make(n int, op string, id rpc.Field, m *sending) ([]*record, error) {
	if id.APIName == "" {
		var err error
		if id, err = w.object.identifier(); err != nil {
			return nil, err
		}
	}
	fields := w.object.ordinary(id)
	if m.every {
		fields = w.object.every(id, false)
	}
	out := make([]*record, 0, n)
	for range n {
		r, err := w.recordWith(w.object, id, fields)
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

// sendSets sends every set in the wanted manner and follows the results.
func (w *world) sendSets(m *sending) error {
	if w.model == nil {
		w.model = newModel()
	}
	if err := w.lookBefore(); err != nil {
		return err
	}
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
			w.keepRefusal(b)
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

// lookBefore reads back what the scenario has written so far, so that the next
// batch can be judged by what it changes.
func (w *world) lookBefore() error {
	w.before = map[place]observed{}
	for _, e := range w.model.all() {
		if e.operation == rpc.OperationDelete && e.refused {
			return inconclusive("", "the delete of %s was refused (OPS-007), so that what follows shows nothing", e.record.key)
		}
	}
	if w.readback == nil || len(w.model.order) == 0 {
		return nil
	}
	records := recordsOf(w.model.all())
	seen, err := w.observe(records)
	if err != nil {
		return err
	}
	for _, e := range w.model.all() {
		was := seen[keyText(e.record.key)]
		w.before[e.record.place()] = was
		if e.known && e.created && !e.exists && was.count > 0 {
			return inconclusive("", "%s is still there after its delete was acknowledged (SEM-009), so that what follows shows nothing", e.record.key)
		}
	}
	return nil
}

// keepRefusal notes what the endpoint first says about a record that it refuses.
func (w *world) keepRefusal(b *batch) {
	if w.refusal != "" {
		return
	}
	for _, r := range b.records {
		if text := b.refusalOf(r); text != "" {
			w.refusal = clip(text, 200)
			return
		}
	}
}

// writesIfItMay writes into the first named object that takes new records.
func (w *world) writesIfItMay(n int) error {
	return w.whereItMayWrite(func(o *object) error {
		records, err := w.newRecords(n)
		if err != nil {
			w.note("%s: %v", o, err)
			return nil
		}
		_, err = w.write(o.creating(), records, plan{})
		return err
	})
}

// whereItMayWrite does one thing with the first named object that takes new records;
// a run without writes judges by reading alone.
func (w *world) whereItMayWrite(do func(*object) error) error {
	if !w.opts.Write {
		w.note("judged without writes: --write sees more")
		return nil
	}
	defer func() { w.object = nil }()
	for _, name := range w.opts.Objects {
		if o := w.catalog.object(name); o != nil && o.creating() != "" {
			w.object = o
			return do(o)
		}
	}
	return nil
}
