package judge

import (
	"slices"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// objectSteps ask for an object under judgement with what a check needs; where
// it has not got it, the check is NOT_APPLICABLE.
func objectSteps() []definition {
	return []definition{
		step(`^an object$`, func(sc *Scenario) any { return sc.anObject }),
		step(`^an object that accepts "([a-z]+)"(?: or "([a-z]+)")?$`, func(sc *Scenario) any { return sc.objectAccepts }),
		step(`^an object that can create records$`, func(sc *Scenario) any { return sc.objectCreates }),
		step(`^an object with (two identifier fields|a field that is no identifier|fields created on write|an integer identifier|an array field|a known bad record|two operations|a witness operation|the most fields)$`,
			func(sc *Scenario) any { return sc.objectWith }),
	}
}

func (sc *Scenario) anObject() error {
	if sc.Object == nil {
		return engine.NotRun("--object", "looks at one object: name it with --object NAME")
	}
	if _, err := sc.Object.Identifier(); err != nil {
		return err
	}
	if len(sc.Object.Writing()) == 0 {
		return line.NotApplicable("%s advertises no operation", sc.Object)
	}
	return nil
}

func (sc *Scenario) objectAccepts(first, second string) error {
	if err := sc.anObject(); err != nil {
		return err
	}
	if sc.Object.Accepts(first) || second != "" && sc.Object.Accepts(second) {
		return nil
	}
	names := first
	if second != "" {
		names += " or " + second
	}
	if first == rpc.OperationDelete {
		names = rpc.OperationMirror
	}
	return line.NotApplicable("%s does not advertise %s", sc.Object, names)
}

func (sc *Scenario) objectCreates() error {
	if err := sc.anObject(); err != nil {
		return err
	}
	if sc.Object.Creating() == "" {
		return line.NotApplicable("%s advertises no operation that creates records", sc.Object)
	}
	return nil
}

func (sc *Scenario) objectWith(what string) error {
	if err := sc.anObject(); err != nil {
		return err
	}
	o := sc.Object
	has := false
	switch what {
	case "two identifier fields":
		has = len(o.Identifiers()) > 1
	case "a field that is no identifier":
		_, has = o.NoIdentifier()
	case "fields created on write":
		has = o.CanCreateFields == rpc.CanCreateOnWrite
	case "an integer identifier":
		has = slices.ContainsFunc(o.Identifiers(), func(f rpc.Field) bool { return f.Type == rpc.TypeInteger })
	case "an array field":
		has = slices.ContainsFunc(o.Fields, func(f rpc.Field) bool { return f.Array && f.Createable && f.Updateable })
	case "two operations":
		has = len(o.Writing()) > 1
	case "a witness operation":
		has = o.Accepts(rpc.OperationUpdate) || o.Accepts(rpc.OperationInsert)
	case "the most fields":
		return sc.mostFields()
	case "a known bad record":
		if _, _, ok := sc.badField(); !ok {
			return engine.NotRun("fixtures", "%s has no required field to leave null: describe a bad record under fixtures: {%s: {bad: {FIELD: VALUE}}}", o, o.APIName)
		}
		return nil
	}
	if !has {
		return line.NotApplicable("%s has not %s", o, what)
	}
	return nil
}

// mostFields is NOT_APPLICABLE where another object of the run has more fields, the
// first of those that accept deletes where there are any.
func (sc *Scenario) mostFields() error {
	rank := func(o *write.Object) int {
		n := len(lists.Where(o.Fields, func(f rpc.Field) bool { return f.Createable }))
		if o.Accepts(rpc.OperationDelete) {
			n += 1 << 20
		}
		return n
	}
	for _, name := range sc.j.Chosen() {
		if o := sc.Catalog.Object(name); len(o.Writing()) > 0 && rank(o) > rank(sc.Object) {
			return line.NotApplicable("%s has more fields or accepts deletes", o)
		}
	}
	return nil
}
