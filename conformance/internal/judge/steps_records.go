package judge

import (
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

const (
	whichOperation = `(operation "[a-z]+"(?: if there is one)?|the creating operation|the changing operation|every changing operation|any operation|each operation|an operation that is not advertised)`
	sendingWays    = `((?:, [^:]+)?)`
	otherValues    = " with other values"
)

// recordSteps send ordinary records.
func recordSteps() []definition {
	return []definition{
		step(`^the service sends (\d+) new records? with `+whichOperation+sendingWays+`$`, func(sc *Scenario) any { return sc.sendsNew }),
		step(`^the service sends the same records( with other values| with the opposite values)? with `+whichOperation+`(?: (\d+) times)?`+sendingWays+`$`,
			func(sc *Scenario) any { return sc.sendsSame }),
		step(`^the service sends the (first|same records and) (\d+) (?:records|new ones)( with other values)? with `+whichOperation+sendingWays+`$`, func(sc *Scenario) any { return sc.sendsSome }),
		step(`^the service sends (\d+) records? that (?:it|each operation) is for with (each operation|every operation of a mirror)`+sendingWays+`$`, func(sc *Scenario) any { return sc.sendsQualifying }),
		step(`^the service sends 2 new records and their look-alikes with `+whichOperation+`$`, func(sc *Scenario) any { return sc.sendsLookAlikes }),
		step(`^the service sends no records (?:(to every other object) )?with any operation$`, func(sc *Scenario) any { return sc.sendsNone }),
		step(`^the service (plans every other object|sends new records to the named objects in turn)$`, func(sc *Scenario) any { return sc.amongObjects }),
		step(`^a good new record is accepted as the control$`, func(sc *Scenario) any { return sc.acceptsControl }),
		step(`^the service writes (\d+) records into existing fields if it may$`, func(sc *Scenario) any { return sc.writesIfItMay }),
	}
}

// operations resolves the words of a step.
func (sc *Scenario) operations(which string) ([]string, error) {
	o := sc.Object
	if o == nil {
		return nil, line.Harness("no object is chosen")
	}
	one := func(op, missing string) ([]string, error) {
		if op == "" {
			return nil, line.NotApplicable("%s advertises no operation that %s", o, missing)
		}
		return []string{op}, nil
	}
	switch which {
	case "the creating operation":
		return one(o.Creating(), "creates records")
	case "the changing operation":
		op := rpc.OperationUpsert
		if !o.Accepts(op) {
			op = o.Modifying()
		}
		return one(op, "changes records")
	case "every changing operation": // none where none is advertised
		return lists.Where([]string{rpc.OperationUpsert, rpc.OperationUpdate}, o.Accepts), nil
	case "any operation":
		return o.Writing()[:1], nil
	case "each operation":
		return o.Writing(), nil
	case "an operation that is not advertised":
		for _, op := range []string{rpc.OperationUpdate, rpc.OperationInsert, rpc.OperationUpsert} {
			if !o.Accepts(op) {
				return []string{op}, nil
			}
		}
		return nil, line.NotApplicable("%s advertises every operation", o)
	}
	name, optional := strings.CutSuffix(strings.TrimPrefix(which, "operation "), " if there is one")
	if name = strings.Trim(name, `"`); optional && !o.Accepts(name) {
		return nil, nil
	}
	return []string{name}, nil
}

// sendsNew makes records and sends them, a set of its own for each operation.
func (sc *Scenario) sendsNew(n int, which, how string) error {
	ops, err := sc.operations(which)
	if err != nil {
		return err
	}
	m, err := sc.Manner(how)
	if err != nil {
		return err
	}
	sc.Sets = nil
	for _, op := range ops {
		for _, id := range m.Identifiers {
			records, err := sc.Make(n, op, id, m)
			if err != nil {
				return err
			}
			sc.Sets = append(sc.Sets, write.Set{Operation: op, Records: records})
		}
	}
	return sc.SendSets(m)
}

// sendsSame sends the records of the earlier step again, with their own
// operation ("each operation") or another one.
func (sc *Scenario) sendsSame(other, which, times, how string) error {
	ops, err := sc.operations(which)
	if err != nil {
		return err
	}
	m, err := sc.Manner(how)
	if err != nil {
		return err
	}
	if len(ops) == 0 {
		return nil // no operation changes records, and none has to
	}
	if which != "each operation" {
		var all []*write.Record
		for _, s := range sc.Sets {
			all = append(all, s.Records...)
		}
		sc.Sets = spread(ops, all)
	}
	sc.Purposes = nil // what is sent again is for no purpose of its own
	for i, s := range sc.Sets {
		sc.Sets[i].Records = write.ForOperation(s.Operation, sc.again(s.Records, other, m))
		if which == "every changing operation" { // whatever it is called, it is an update
			sc.Sets[i].Records = write.ForOperation(rpc.OperationUpdate, sc.Sets[i].Records)
		}
	}
	n, _ := strconv.Atoi(times) // absent: once
	for range max(1, n) {
		if err := sc.SendSets(m); err != nil {
			return err
		}
	}
	return nil
}

// again prepares records for another sending.
func (sc *Scenario) again(records []*write.Record, other string, m *write.Sending) []*write.Record {
	out := make([]*write.Record, len(records))
	for i, r := range records {
		switch other {
		case otherValues:
			r = sc.Changed(r, 1)
		case " with the opposite values":
			r = sc.opposed(r)
		}
		out[i] = m.Shape(sc.Scenario.Scenario, r)
	}
	return out
}

func (sc *Scenario) sendsSome(what string, n int, other, which, how string) error {
	m, err := sc.Manner(how)
	if err != nil {
		return err
	}
	if what == "first" {
		return sc.sendsFirst(n, other, which, m)
	}
	return sc.sendsSameAndNew(n, which, m)
}

func (sc *Scenario) sendsSameAndNew(n int, which string, m *write.Sending) error {
	ops, err := sc.operations(which)
	if err != nil {
		return err
	}
	old := sc.Sets[0].Records
	fresh, err := sc.Make(n, ops[0], old[0].ID, m)
	if err != nil {
		return err
	}
	// The existing ones carry other values, so that an overwrite shows, and stand between
	// the new ones, so that what they break shows before and behind them.
	half := len(fresh) / 2
	sc.Sets = []write.Set{{Operation: ops[0], Records: slices.Concat(fresh[:half], sc.again(old, otherValues, m), fresh[half:])}}
	return sc.SendSets(m)
}

func (sc *Scenario) sendsFirst(n int, other, which string, m *write.Sending) error {
	ops, err := sc.operations(which)
	if err != nil {
		return err
	}
	first := sc.History[0].Records
	first = first[:min(n, len(first))]
	if other != "" {
		first = sc.again(first, other, m)
	}
	sc.Sets = []write.Set{{Operation: ops[0], Records: write.ForOperation(ops[0], first)}}
	return sc.SendSets(m)
}

// writesIfItMay writes into the first named object that takes new records.
func (sc *Scenario) writesIfItMay(n int) error {
	return sc.whereItMayWrite(func(o *write.Object) error {
		records, err := sc.NewRecords(n)
		if err != nil {
			sc.Note("%s: %v", o, err)
			return nil
		}
		_, err = sc.Write(o.Creating(), records, write.Plan{})
		return err
	})
}

// whereItMayWrite does one thing with the first named object that takes new records;
// a run without writes judges by reading alone.
func (sc *Scenario) whereItMayWrite(do func(*write.Object) error) error {
	if !sc.Opts.Write {
		if sc.j.Unwritten == nil {
			sc.Note("judged without writes: --write sees more")
		}
		return nil
	}
	defer func() { sc.Object = nil }()
	for _, name := range sc.Opts.Objects {
		if o := sc.Catalog.Object(name); o != nil && o.Creating() != "" {
			sc.Object = o
			return do(o)
		}
	}
	return nil
}
