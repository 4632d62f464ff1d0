package destination

import (
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// objectSteps ask for an object under judgement with what a check needs; where
// it has not got it, the check is NOT_APPLICABLE.
func objectSteps() []definition {
	return []definition{
		step(`^an object$`, func(sc *scenario) any { return sc.anObject }),
		step(`^an object that accepts "([a-z]+)"(?: or "([a-z]+)")?$`, func(sc *scenario) any { return sc.objectAccepts }),
		step(`^an object that can create records$`, func(sc *scenario) any { return sc.objectCreates }),
		step(`^an object with (two identifier fields|a field that is no identifier|fields created on write|an integer identifier|an array field|a known bad record|two operations|a witness operation|the most fields)$`,
			func(sc *scenario) any { return sc.objectWith }),
	}
}

func (sc *scenario) anObject() error {
	if sc.object == nil {
		return notRun("--object", "looks at one object: name it with --object NAME")
	}
	if _, err := sc.object.identifier(); err != nil {
		return err
	}
	if len(sc.object.writing()) == 0 {
		return notApplicable("%s advertises no operation", sc.object)
	}
	return nil
}

func (sc *scenario) objectAccepts(first, second string) error {
	if err := sc.anObject(); err != nil {
		return err
	}
	if sc.object.accepts(first) || second != "" && sc.object.accepts(second) {
		return nil
	}
	names := first
	if second != "" {
		names += " or " + second
	}
	if first == rpc.OperationDelete {
		names = rpc.OperationMirror
	}
	return notApplicable("%s does not advertise %s", sc.object, names)
}

func (sc *scenario) objectCreates() error {
	if err := sc.anObject(); err != nil {
		return err
	}
	if sc.object.creating() == "" {
		return notApplicable("%s advertises no operation that creates records", sc.object)
	}
	return nil
}

func (sc *scenario) objectWith(what string) error {
	if err := sc.anObject(); err != nil {
		return err
	}
	o := sc.object
	has := false
	switch what {
	case "two identifier fields":
		has = len(o.identifiers()) > 1
	case "a field that is no identifier":
		_, has = o.noIdentifier()
	case "fields created on write":
		has = o.CanCreateFields == rpc.CanCreateOnWrite
	case "an integer identifier":
		has = slices.ContainsFunc(o.identifiers(), func(f rpc.Field) bool { return f.Type == rpc.TypeInteger })
	case "an array field":
		has = slices.ContainsFunc(o.Fields, func(f rpc.Field) bool { return f.Array && f.Createable && f.Updateable })
	case "two operations":
		has = len(o.writing()) > 1
	case "a witness operation":
		has = o.accepts(rpc.OperationUpdate) || o.accepts(rpc.OperationInsert)
	case "the most fields":
		return sc.mostFields()
	case "a known bad record":
		if _, _, ok := sc.badField(); !ok {
			return notRun("fixtures", "%s has no required field to leave null: describe a bad record under fixtures: {%s: {bad: {FIELD: VALUE}}}", o, o.APIName)
		}
		return nil
	}
	if !has {
		return notApplicable("%s has not %s", o, what)
	}
	return nil
}

// mostFields is NOT_APPLICABLE where another object of the run has more fields, the
// first of those that accept deletes where there are any.
func (sc *scenario) mostFields() error {
	rank := func(o *object) int {
		n := len(lists.Where(o.Fields, func(f rpc.Field) bool { return f.Createable }))
		if o.accepts(rpc.OperationDelete) {
			n += 1 << 20
		}
		return n
	}
	for _, name := range sc.chosen() {
		if o := sc.catalog.object(name); len(o.writing()) > 0 && rank(o) > rank(sc.object) {
			return notApplicable("%s has more fields or accepts deletes", o)
		}
	}
	return nil
}

// identifiers are the fields that may be the active identifier.
func (o *object) identifiers() []rpc.Field {
	return slices.DeleteFunc(slices.Clone(o.Fields), func(f rpc.Field) bool {
		return !f.Identifier || f.Array || f.Type != rpc.TypeString && f.Type != rpc.TypeInteger
	})
}

// noIdentifier is a writable string field that is not declared an identifier.
func (o *object) noIdentifier() (rpc.Field, bool) {
	for _, f := range o.Fields {
		if !f.Identifier && f.Type == rpc.TypeString && !f.Array && f.Createable && f.Updateable {
			return f, true
		}
	}
	return rpc.Field{}, false
}
