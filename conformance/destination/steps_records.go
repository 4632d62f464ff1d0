package destination

import (
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
)

// set is the records that one When sends with one operation.
type set struct {
	operation string
	records   []*record
}

const (
	whichOperation = `(operation "[a-z]+"(?: if there is one)?|the creating operation|the changing operation|every changing operation|any operation|each operation|an operation that is not advertised)`
	sendingWays    = `((?:, [^:]+)?)`
	otherValues    = " with other values"
)

// recordSteps send ordinary records.
func recordSteps() []definition {
	return []definition{
		step(`^the service sends (\d+) new records? with `+whichOperation+sendingWays+`$`, func(sc *scenario) any { return sc.sendsNew }),
		step(`^the service sends the same records( with other values| with the opposite values)? with `+whichOperation+`(?: (\d+) times)?`+sendingWays+`$`,
			func(sc *scenario) any { return sc.sendsSame }),
		step(`^the service sends the (first|same records and) (\d+) (?:records|new ones)( with other values)? with `+whichOperation+sendingWays+`$`, func(sc *scenario) any { return sc.sendsSome }),
		step(`^the service sends (\d+) records? that (?:it|each operation) is for with (each operation|every operation of a mirror)`+sendingWays+`$`, func(sc *scenario) any { return sc.sendsQualifying }),
		step(`^the service sends 2 new records and their look-alikes with `+whichOperation+`$`, func(sc *scenario) any { return sc.sendsLookAlikes }),
		step(`^the service sends no records (?:(to every other object) )?with any operation$`, func(sc *scenario) any { return sc.sendsNone }),
		step(`^the service (plans every other object|sends new records to the named objects in turn)$`, func(sc *scenario) any { return sc.amongObjects }),
		step(`^a good new record is accepted as the control$`, func(sc *scenario) any { return sc.acceptsControl }),
		step(`^the service writes (\d+) records into existing fields if it may$`, func(sc *scenario) any { return sc.writesIfItMay }),
	}
}

// operations resolves the words of a step.
func (sc *scenario) operations(which string) ([]string, error) {
	o := sc.object
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
	case "every changing operation": // none where none is advertised
		return lists.Where([]string{rpc.OperationUpsert, rpc.OperationUpdate}, o.accepts), nil
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
	name, optional := strings.CutSuffix(strings.TrimPrefix(which, "operation "), " if there is one")
	if name = strings.Trim(name, `"`); optional && !o.accepts(name) {
		return nil, nil
	}
	return []string{name}, nil
}

// sendsNew makes records and sends them, a set of its own for each operation.
func (sc *scenario) sendsNew(n int, which, how string) error {
	ops, err := sc.operations(which)
	if err != nil {
		return err
	}
	m, err := sc.manner(how)
	if err != nil {
		return err
	}
	sc.sets = nil
	for _, op := range ops {
		for _, id := range m.identifiers {
			records, err := sc.make(n, op, id, m)
			if err != nil {
				return err
			}
			sc.sets = append(sc.sets, set{op, records})
		}
	}
	return sc.sendSets(m)
}

// sendsSame sends the records of the earlier step again, with their own
// operation ("each operation") or another one.
func (sc *scenario) sendsSame(other, which, times, how string) error {
	ops, err := sc.operations(which)
	if err != nil {
		return err
	}
	m, err := sc.manner(how)
	if err != nil {
		return err
	}
	if len(ops) == 0 {
		return nil // no operation changes records, and none has to
	}
	if which != "each operation" {
		var all []*record
		for _, s := range sc.sets {
			all = append(all, s.records...)
		}
		sc.sets = spread(ops, all)
	}
	sc.purposes = nil // what is sent again is for no purpose of its own
	for i, s := range sc.sets {
		sc.sets[i].records = forOperation(s.operation, sc.again(s.records, other, m))
		if which == "every changing operation" { // whatever it is called, it is an update
			sc.sets[i].records = forOperation(rpc.OperationUpdate, sc.sets[i].records)
		}
	}
	n, _ := strconv.Atoi(times) // absent: once
	for range max(1, n) {
		if err := sc.sendSets(m); err != nil {
			return err
		}
	}
	return nil
}

// again prepares records for another sending.
func (sc *scenario) again(records []*record, other string, m *sending) []*record {
	out := make([]*record, len(records))
	for i, r := range records {
		switch other {
		case otherValues:
			r = sc.changed(r, 1)
		case " with the opposite values":
			r = sc.opposed(r)
		}
		out[i] = m.shape(sc, r)
	}
	return out
}

func (sc *scenario) sendsSome(what string, n int, other, which, how string) error {
	m, err := sc.manner(how)
	if err != nil {
		return err
	}
	if what == "first" {
		return sc.sendsFirst(n, other, which, m)
	}
	return sc.sendsSameAndNew(n, which, m)
}

func (sc *scenario) sendsSameAndNew(n int, which string, m *sending) error {
	ops, err := sc.operations(which)
	if err != nil {
		return err
	}
	old := sc.sets[0].records
	fresh, err := sc.make(n, ops[0], old[0].id, m)
	if err != nil {
		return err
	}
	// The existing ones carry other values, so that an overwrite shows, and stand between
	// the new ones, so that what they break shows before and behind them.
	half := len(fresh) / 2
	sc.sets = []set{{ops[0], slices.Concat(fresh[:half], sc.again(old, otherValues, m), fresh[half:])}}
	return sc.sendSets(m)
}

func (sc *scenario) sendsFirst(n int, other, which string, m *sending) error {
	ops, err := sc.operations(which)
	if err != nil {
		return err
	}
	first := sc.history[0].records
	first = first[:min(n, len(first))]
	if other != "" {
		first = sc.again(first, other, m)
	}
	sc.sets = []set{{ops[0], forOperation(ops[0], first)}}
	return sc.sendSets(m)
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
func (sc *scenario) make(n int, op string, id rpc.Field, m *sending) ([]*record, error) {
	if id.APIName == "" {
		var err error
		if id, err = sc.object.identifier(); err != nil {
			return nil, err
		}
	}
	fields := sc.object.ordinary(id)
	if m.every {
		fields = sc.object.every(id, false)
		sc.leavesOut()
	}
	out := make([]*record, 0, n)
	for range n {
		r, err := sc.recordWith(sc.object, id, fields)
		if err != nil {
			return nil, err
		}
		if op == rpc.OperationUpdate {
			r = r.updateable()
		}
		out = append(out, m.shape(sc, r))
	}
	if m.twice {
		out = append(out, out...)
	}
	return out, nil
}

// sendSets sends every set in the wanted way and follows the results.
func (sc *scenario) sendSets(m *sending) error {
	if sc.model == nil {
		sc.model = sc.newView()
	}
	if err := sc.lookBefore(); err != nil {
		return err
	}
	sc.latest = nil
	for _, s := range sc.sets {
		sc.history = append(sc.history, s)
		sent, err := m.send(sc, s)
		if err == nil && m.alone {
			sent, err = sc.sendAlone(s.operation, sent)
		}
		sc.latest = append(sc.latest, sent...)
		for _, b := range sent {
			sc.model.follow(b)
			sc.keepRefusal(b)
		}
		if err != nil {
			return err
		}
		if slices.ContainsFunc(sent, func(b *batch) bool { return b.reply.Kind == wire.KindTimeout }) {
			break // one lost deadline is enough to judge
		}
	}
	sc.waves = append(sc.waves, sc.latest)
	return nil
}

// lookBefore reads back what the scenario has written so far, so that the next
// batch can be judged by what it changes.
func (sc *scenario) lookBefore() error {
	sc.before = map[place]observed{}
	for _, e := range sc.model.all() {
		if e.Operation == rpc.OperationDelete && e.Refused {
			return inconclusive("", "the delete of %s was refused (OPS-007), so that what follows shows nothing", e.record.key)
		}
	}
	if sc.readback == nil || len(sc.model.order) == 0 {
		return nil
	}
	records := recordsOf(sc.model.all())
	seen, err := sc.observe(records)
	if err != nil {
		return err
	}
	for _, e := range sc.model.all() {
		was := seen[exchange.KeyText(e.record.key)]
		sc.before[e.record.place()] = was
		if e.Known && e.Created && !e.Exists && was.count > 0 {
			return inconclusive("", "%s is still there after its delete was acknowledged (SEM-009), so that what follows shows nothing", e.record.key)
		}
	}
	return nil
}

// keepRefusal notes what the endpoint first says about a record that it refuses.
func (sc *scenario) keepRefusal(b *batch) {
	if sc.Refusal() != "" {
		return
	}
	for _, r := range b.records {
		if text := b.refusalOf(r); text != "" {
			sc.Refused(foreign.Clip(text, 200))
			return
		}
	}
}

// writesIfItMay writes into the first named object that takes new records.
func (sc *scenario) writesIfItMay(n int) error {
	return sc.whereItMayWrite(func(o *object) error {
		records, err := sc.newRecords(n)
		if err != nil {
			sc.Note("%s: %v", o, err)
			return nil
		}
		_, err = sc.write(o.creating(), records, plan{})
		return err
	})
}

// whereItMayWrite does one thing with the first named object that takes new records;
// a run without writes judges by reading alone.
func (sc *scenario) whereItMayWrite(do func(*object) error) error {
	if !sc.opts.Write {
		if sc.unwritten == nil {
			sc.Note("judged without writes: --write sees more")
		}
		return nil
	}
	defer func() { sc.object = nil }()
	for _, name := range sc.opts.Objects {
		if o := sc.catalog.object(name); o != nil && o.creating() != "" {
			sc.object = o
			return do(o)
		}
	}
	return nil
}
