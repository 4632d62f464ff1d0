package judge

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

const (
	whichOperation = `(operation "[a-z]+"(?: if there is one)?|the creating operation|the changing operation|every changing operation|any operation|each operation|an operation that is not advertised)`
	sendingWays    = `((?:, [^:]+)?)`
	otherValues    = " with other values"
)

// These steps send ordinary records.

var recordSentences = sentences{
	`^the service sends no records with any operation$`:                       func(sc *Scenario) error { return sc.sendEmpty(sc.Object) },
	`^the service sends no records to every other object with any operation$`: (*Scenario).sendsNoneToOthers,
	`^the service plans every other object$`:                                  (*Scenario).plansOthers,
	`^the service sends new records to the named objects in turn$`:            (*Scenario).sendsInTurn,
	`^a good new record is accepted as the control$`:                          (*Scenario).acceptsControl,
}

func recordSteps() []engine.Step {
	return []engine.Step{
		engine.NewStep(`^the service sends (\d+) new records? with `+whichOperation+sendingWays+`$`, func(sc *Scenario) any { return sc.sendsNew }),
		engine.NewStep(`^the service sends the same records( with other values| with the opposite values| with nearly the same values)? with `+whichOperation+`(?: (\d+) times)?`+sendingWays+`$`,
			func(sc *Scenario) any { return sc.sendsSame }),
		engine.NewStep(`^the service sends the (first|same records and) (\d+) (?:records|new ones)( with other values)? with `+whichOperation+sendingWays+`$`, func(sc *Scenario) any { return sc.sendsSome }),
		engine.NewStep(`^the service sends (\d+) records? that (?:it|each operation) is for with (each operation|every operation of a mirror)`+sendingWays+`$`, func(sc *Scenario) any { return sc.sendsQualifying }),
		engine.NewStep(`^the service sends 2 new records and their look-alikes with `+whichOperation+`$`, func(sc *Scenario) any { return sc.sendsLookAlikes }),
		engine.NewStep(`^the service writes (\d+) records into existing fields if it may$`, func(sc *Scenario) any { return sc.writesIfItMay }),
	}
}

// sendingOf reads the operations and the manner of a step.
func (sc *Scenario) sendingOf(which, how string) (ops []string, m *write.Sending, err error) {
	if ops, err = sc.operations(which); err == nil {
		m, err = sc.Manner(how)
	}
	return ops, m, err
}

// sendsNew creates and sends records, a separate set for each operation.
func (sc *Scenario) sendsNew(n int, which, how string) error {
	ops, m, err := sc.sendingOf(which, how)
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

// sendsSame sends the records of the earlier step again, with their own or another operation.
func (sc *Scenario) sendsSame(other, which, times, how string) error {
	ops, m, err := sc.sendingOf(which, how)
	if err != nil {
		return err
	}
	if len(ops) == 0 {
		return nil // no operation changes records, and none has to
	}
	if which != "each operation" { // which shares all records
		before := sc.Sets // each has one active identifier
		sc.Sets = nil
		for _, s := range before {
			for part := range slices.Chunk(s.Records, (len(s.Records)+len(ops)-1)/len(ops)) {
				sc.Sets = append(sc.Sets, write.Set{Operation: ops[len(sc.Sets)%len(ops)], Records: part})
			}
		}
	}
	sc.Purposes = nil // records that are sent again have no separate purpose
	for i, s := range sc.Sets {
		if s.Records = write.ForOperation(s.Operation, sc.again(s.Records, other, m)); which == "every changing operation" {
			s.Records = write.ForOperation(rpc.OperationUpdate, s.Records) // whatever it is called, it is an update
		}
		sc.Sets[i] = s
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
	return lists.Of(records, func(r *write.Record) *write.Record {
		switch other {
		case otherValues:
			r = sc.Changed(r, 1)
		case " with the opposite values":
			r = sc.opposed(r)
		case " with nearly the same values":
			for i, next := 0, r.Odd.Nearly; next != nil && i < len(r.Odd.Fields); i++ {
				name := r.Odd.Fields[i].APIName
				was := r.Values[name]
				r = r.With(name, next)
				r.Odd.Nearly = was
			}
		}
		return m.Shape(sc.Scenario.Scenario, r)
	})
}

// opposed returns the record with the opposite of each value that can be changed.
func (sc *Scenario) opposed(r *write.Record) *write.Record {
	c := *r
	c.Turn++
	c.Values = make(map[string]json.RawMessage, len(r.Values))
	fixtures := sc.Opts.Fixtures[r.Object.APIName].Fields
	for name, raw := range r.Values {
		f, ok := r.Object.Field(name)
		fixed, is := fixtures[name]
		if c.Values[name] = raw; !ok || !write.BothWays(f) || name == r.ID.APIName {
			continue
		}
		c.Values[name] = values.Opposite(f, r.Seed, c.Turn, raw, func(s values.Seed) json.RawMessage {
			switch {
			case is:
				return sc.Made.Expand(fixed, s, r.Key)
			case s%2 == 1 && f.Type == rpc.TypeString && !f.Array && r.Object.Lessons[name] == nil && values.Guessed(f) == nil:
				return sc.Made.Value(f, s, values.Word) // shorter than what names the field
			}
			return write.Learned(sc.Made, r.Object, f, s)
		})
	}
	return &c
}

// sendsSome sends the first n records again, or the same ones as before and n new ones.
func (sc *Scenario) sendsSome(what string, n int, other, which, how string) error {
	ops, m, err := sc.sendingOf(which, how)
	if err != nil {
		return err
	}
	if what == "first" {
		first := sc.History[0].Records
		first = first[:min(n, len(first))]
		if other != "" {
			first = sc.again(first, other, m)
		}
		return sc.sendsOne(ops[0], write.ForOperation(ops[0], first), m)
	}
	old := sc.Sets[0].Records
	fresh, err := sc.Make(n, ops[0], old[0].ID, m)
	if err != nil {
		return err
	}
	// The existing ones carry other values, so that an overwrite shows, and are placed between the
	// new ones, so that what they break shows before and behind them.
	return sc.sendsOne(ops[0], slices.Concat(fresh[:len(fresh)/2], sc.again(old, otherValues, m), fresh[len(fresh)/2:]), m)
}

// writesIfItMay writes into the first named object that takes new records.
func (sc *Scenario) writesIfItMay(n int) error {
	return sc.whereItMayWrite(func(o *write.Object) error {
		records, err := sc.fresh(n, o.Creating())
		if err != nil {
			sc.Note("%s: %v", o, err)
			return nil
		}
		_, err = sc.Write(o.Creating(), records, write.Plan{})
		return err
	})
}

// whereItMayWrite does one thing with the first named object that takes new records, if the run may write.
func (sc *Scenario) whereItMayWrite(do func(*write.Object) error) error {
	if !sc.Opts.Write {
		if sc.j.Unwritten == nil {
			sc.Note("judged without writes: --write sees more")
		}
		return nil
	}
	defer func() { sc.Object = nil }()
	sc.Object = write.First(sc.Named(), func(o *write.Object) bool { return o.Creating() != "" })
	if sc.Object == nil {
		return nil
	}
	return do(sc.Object)
}
