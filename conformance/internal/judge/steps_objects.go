package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// These steps select an object with what a check needs; without one, the check is NOT_APPLICABLE.

var objectSentences = sentences{
	`^an object$`:                         (*Scenario).anObject,
	`^an object that can create records$`: (*Scenario).objectCreates,
	`^an object with the most fields$`:    (*Scenario).mostFields,
	`^an object with a known bad record$`: (*Scenario).badRecordKnown,
}

func objectSteps() []engine.Step {
	return []engine.Step{
		engine.NewStep(`^an object that accepts "([a-z]+)"(?: or "([a-z]+)")?$`, func(sc *Scenario) any { return sc.objectAccepts }),
		engine.NewStep(`^an object with (two identifier fields|a field that is no identifier|fields created on write|an integer identifier|an array field|two operations|a witness operation)$`,
			func(sc *Scenario) any { return sc.objectWith }),
	}
}

// traits are what an object can have.
var traits = map[string]func(o *write.Object) bool{
	"two identifier fields":         func(o *write.Object) bool { return len(o.Identifiers()) > 1 },
	"a field that is no identifier": func(o *write.Object) bool { return len(o.NoIdentifier()) > 0 },
	"fields created on write":       func(o *write.Object) bool { return o.CanCreateFields == rpc.CanCreateOnWrite },
	"an integer identifier": func(o *write.Object) bool {
		return slices.ContainsFunc(o.Identifiers(), func(f rpc.Field) bool { return f.Type == rpc.TypeInteger })
	},
	"an array field": func(o *write.Object) bool {
		return slices.ContainsFunc(o.Fields, func(f rpc.Field) bool { return f.Array && f.Createable && f.Updateable })
	},
	"two operations":      func(o *write.Object) bool { return len(o.Writing()) > 1 },
	"a witness operation": func(o *write.Object) bool { return o.FirstOf(rpc.OperationUpdate, rpc.OperationInsert) != "" },
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
	if err := sc.anObject(); err != nil || sc.Object.Accepts(first) || second != "" && sc.Object.Accepts(second) {
		return err
	}
	names := strings.TrimSuffix(first+" or "+second, " or ")
	if first == rpc.OperationDelete {
		names = rpc.OperationMirror
	}
	return line.NotApplicable("%s does not advertise %s", sc.Object, names)
}

func (sc *Scenario) objectCreates() error {
	if err := sc.anObject(); err != nil || sc.Object.Creating() != "" {
		return err
	}
	return line.NotApplicable("%s advertises no operation that creates records", sc.Object)
}

func (sc *Scenario) objectWith(trait string) error {
	if err := sc.anObject(); err != nil || traits[trait](sc.Object) {
		return err
	}
	return line.NotApplicable("%s has not %s", sc.Object, trait)
}

func (sc *Scenario) badRecordKnown() error {
	if err := sc.anObject(); err != nil {
		return err
	}
	if _, _, known := sc.badField(); known {
		return nil
	}
	return engine.NotRun("fixtures", "%s has no required field to leave null: describe a bad record under fixtures: {%s: {bad: {FIELD: VALUE}}}", sc.Object, sc.Object.APIName)
}

// mostFields looks for the object with the most fields, among those that accept deletes where there are any.
func (sc *Scenario) mostFields() error {
	if err := sc.anObject(); err != nil {
		return err
	}
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

// What the service does with several objects.

func (sc *Scenario) plansOthers() error {
	calls := slices.Concat(lists.Of(sc.otherObjects(sc.Object), objectCalls)...)
	if len(calls) == 0 {
		return line.NotApplicable("the endpoint lists one object only")
	}
	return sc.sendAll(append(calls[:min(len(calls), 20)], line.Request{Method: rpc.MethodGetSyncSpeed}))
}

// sendsInTurn sends single records to the named objects in turn, as the service does with several syncs.
func (sc *Scenario) sendsInTurn() error {
	var objects []*write.Object
	for _, o := range sc.Named() {
		if o.Creating() != "" && (o == sc.Object || len(objects) < 4) {
			objects = append(objects, o)
		}
	}
	if len(objects) < 2 || sc.Object.Creating() == "" {
		return nil // the steps before show what one object shows
	}
	if sc.Model == nil {
		sc.Model = sc.NewView()
	}
	for range 3 {
		for _, o := range objects {
			id, err := o.Identifier()
			if err != nil {
				continue
			}
			r, err := sc.NewRecord(o, id)
			if err != nil {
				return err
			}
			b, err := sc.WriteOne(o.Creating(), []*write.Record{r}, write.Plan{})
			if err != nil {
				return err
			}
			sc.Model.Follow(b)
			sc.KeepRefusal(b)
			sc.Latest, sc.Sets = append(sc.Latest, b), append(sc.Sets, write.Set{Operation: b.Operation, Records: b.Records})
		}
	}
	return nil
}

func (sc *Scenario) sendsNoneToOthers() error {
	others := lists.Where(sc.otherObjects(sc.Object), func(o *write.Object) bool { return len(o.Writing()) > 0 })
	for _, o := range others {
		if err := sc.sendEmpty(o); err != nil {
			return err
		}
	}
	if len(others) == 0 {
		return line.NotApplicable("the endpoint lists one object only")
	}
	return nil
}

func (sc *Scenario) sendEmpty(o *write.Object) (err error) {
	if params := sc.EmptyBatch(o); params != nil {
		_, err = sc.Send(line.Request{Method: rpc.MethodSyncBatch, Params: params, Object: o.APIName})
	}
	return err
}

// These steps look at records that one identifier of a batch names, and that are none of
// its records: those of another object with the same keys, and those of another identifier.
var twinSentences = sentences{
	`^the same keys are created in another named object$`:                                  (*Scenario).createsTwins,
	`^the records of the other object are kept$`:                                           (*Scenario).twinsKept,
	`^the service sends records whose identifiers disagree with every changing operation$`: (*Scenario).sendsDisagreeing,
	`^only the record that the active identifier names is changed$`:                        (*Scenario).onlyActiveChanged,
}

// createsTwins creates records under the keys that were sent in the first other named object that takes them.
func (sc *Scenario) createsTwins() error {
	sent := sc.ofSets()
	for _, o := range sc.Named() {
		for _, id := range o.Identifiers() {
			if o.APIName == sc.Object.APIName || o.Creating() == "" || id.Type != sent[0].ID.Type {
				continue
			}
			if err := sc.createsTwinsIn(o, id, sent); err != nil || len(sc.twins) > 0 {
				return err
			}
		}
	}
	return line.NotApplicable("no other named object takes the keys of %s", sc.Object)
}

func (sc *Scenario) createsTwinsIn(o *write.Object, id rpc.Field, sent []*write.Record) error {
	var twins []*write.Record
	for _, r := range sent {
		t, err := sc.NewRecord(o, id)
		if err != nil {
			return err
		}
		twins = append(twins, t.With(id.APIName, r.Key))
	}
	other := sc.j.NewScenario(sc.Ctx, sc.Check(), o)
	if _, err := other.Write(o.Creating(), twins, write.Plan{}); err != nil {
		return err
	}
	seen, err := other.Observe(twins)
	sc.twins = append(sc.twins, lists.Where(twins, func(t *write.Record) bool { return seen[exchange.KeyText(t.Key)].Count > 0 })...)
	return err
}

// twinsKept judges the records of the other object after a delete of their keys in the first one.
func (sc *Scenario) twinsKept() error {
	var due []*write.Record
	for _, t := range sc.twins {
		for b, r := range write.Each(sc.Latest) {
			if exchange.KeyText(r.Key) == exchange.KeyText(t.Key) && b.Succeeded(r) {
				due = append(due, t)
			}
		}
	}
	if len(due) == 0 {
		return sc.noneAccepted()
	}
	seen, err := sc.Observe(due)
	if err != nil {
		return err
	}
	for _, t := range due {
		if seen[exchange.KeyText(t.Key)].Count > 0 {
			sc.Saw(conformance.SeenKept, 1)
			continue
		}
		sc.BrokenAs("gone elsewhere", rpc.OperationDelete, fmt.Sprintf("%s in %q, which no call has deleted", t.Key, t.Object.APIName),
			"it is not there any more", sc.LastBatch().Reply)
	}
	return sc.Held()
}
