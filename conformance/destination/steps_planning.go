package destination

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// planningSteps judge list_objects, list_fields and supported_operations.
func planningSteps() []definition {
	return []definition{
		step(`^the service calls "(list_fields|supported_operations)" for (every object|every object under another label|an object that does not exist)(?: (\d+) times in parallel)?$`,
			func(sc *scenario) any { return sc.asksAboutObjects }),
		step(`^every listed object has (a name and a label|a unique name|an identifier field|the same fields each time)$`,
			func(sc *scenario) any { return func(claim string) error { return objectClaims[claim](sc) } }),
		step(`^the (objects stay the same|declared speed stays the same|rate limit header is the same on every reply)$`,
			func(sc *scenario) any { return func(claim string) error { return sameClaims[claim](sc) } }),
		step(`^every (?:listed|identifier) field (has its eight properties|has a unique name|has a known type|is required|is a string or an integer and no array|that a new record needs is createable|is writable)$`,
			func(sc *scenario) any { return func(claim string) error { return sc.everyField(claim) } }),
		step(`^the (list of objects is not empty|supported operations are known words|supported operations are not empty and unique)$`,
			func(sc *scenario) any { return sc.listsAre }),
	}
}

// unknownObject is a name that no endpoint lists.
var unknownObject = rpc.Object{APIName: "zz_no_such_object", Label: "No such object"}

func (sc *scenario) asksAboutObjects(method, which, times string) error {
	if times != "" {
		return sc.callsInParallel(method, times)
	}
	switch which {
	case "every object":
		return sc.sendAll(sc.methodCalls(method))
	case "every object under another label":
		return sc.sendAll(sc.relabelled(sc.methodCalls(method)))
	}
	_, err := sc.send(request{method: method, params: objectParams(unknownObject), object: unknownObject.APIName})
	return err
}

// relabelled are calls about objects with the label of another object, where one has
// another, else with a label that no object has.
func (sc *scenario) relabelled(calls []request) []request {
	objects := sc.catalog.objects
	for i := range calls {
		o := rpc.Object{APIName: calls[i].object, Label: unknownObject.Label}
		at := slices.IndexFunc(objects, func(other *object) bool { return other.APIName == o.APIName })
		if next := objects[(at+1)%len(objects)]; next.Label != objects[at].Label {
			o.Label = next.Label
		}
		calls[i].params = objectParams(o)
	}
	return calls
}

// of returns the replies of a method.
func (sc *scenario) of(method string) []*reply {
	return lists.Where(sc.replies, func(r *reply) bool { return r.Method == method })
}

// listing returns the items of a list result; without one there is nothing to
// judge, and a finding says so once.
func (sc *scenario) listing(r *reply, key string) ([]*wire.Node, bool) {
	res := r.Result()
	if !r.OK() {
		sc.notArrived = r // the time and HTTP checks judge that
		return nil, false
	}
	if res == nil {
		sc.broken("a result with the array "+string(values.Quote(key)), r.What()+": "+r.Short(), r)
		return nil, false
	}
	n := res.Get(key)
	if !n.Is(wire.Array) {
		sc.broken("a result with the array "+string(values.Quote(key)), r.What()+": "+r.Short(), r)
		return nil, false
	}
	return n.Items, true
}

// heldOver is held, and INCONCLUSIVE when a list that had to be judged did not
// arrive.
func (sc *scenario) heldOver() error {
	if err := sc.held(); err != nil || sc.notArrived == nil {
		return err
	}
	return inconclusive("", "%s did not arrive: %s", sc.notArrived.What(), sc.notArrived.Failure())
}

func (sc *scenario) listsObjects() error {
	for _, r := range sc.of(rpc.MethodListObjects) {
		if items, ok := sc.listing(r, "objects"); ok && len(items) == 0 {
			sc.broken("at least one object", "the list is empty", r)
		}
	}
	return sc.heldOver()
}

// sameClaims are about what must not change within a run.
var sameClaims = map[string]func(*scenario) error{
	"objects stay the same":                        (*scenario).sameObjects,
	"declared speed stays the same":                (*scenario).speedStable,
	"rate limit header is the same on every reply": func(sc *scenario) error { return sc.rateLimitHeader("is the same on every reply") },
}

func (sc *scenario) listsAre(claim string) error {
	if claim == "list of objects is not empty" {
		return sc.listsObjects()
	}
	return sc.operationsAre(strings.TrimPrefix(claim, "supported operations are "))
}

var objectClaims = map[string]func(*scenario) error{
	"a name and a label":        (*scenario).objectsNamed,
	"a unique name":             (*scenario).objectsUnique,
	"an identifier field":       (*scenario).objectsIdentifiable,
	"the same fields each time": (*scenario).sameFields,
}

func (sc *scenario) objectsNamed() error {
	for _, r := range sc.of(rpc.MethodListObjects) {
		items, _ := sc.listing(r, "objects")
		for i, n := range items {
			for _, key := range []string{"object_api_name", "label"} {
				if v := n.Get(key); !v.Is(wire.String) || v.Text == "" {
					sc.broken(fmt.Sprintf("a non-empty string %q in every object", key),
						fmt.Sprintf("object %d is %s", i+1, foreign.Clip(string(n.Raw), 200)), r)
				}
			}
		}
	}
	return sc.heldOver()
}

// repeats returns the texts that stand in a list more than once.
func repeats(names []string) []string {
	var out []string
	seen := map[string]int{}
	for _, n := range names {
		if seen[n]++; seen[n] == 2 {
			out = append(out, string(values.Quote(n)))
		}
	}
	return out
}

// texts collects a string member of the items.
func texts(items []*wire.Node, key string) []string {
	var out []string
	for _, n := range items {
		if v := n.Get(key); v.Is(wire.String) {
			out = append(out, v.Text)
		}
	}
	return out
}

func (sc *scenario) objectsUnique() error {
	for _, r := range sc.of(rpc.MethodListObjects) {
		items, _ := sc.listing(r, "objects")
		if twice := repeats(texts(items, "object_api_name")); len(twice) > 0 {
			sc.broken("each object_api_name once", quantity.List(twice)+" stands twice", r)
		}
	}
	return sc.heldOver()
}

func (sc *scenario) objectsIdentifiable() error {
	for _, r := range sc.of(rpc.MethodListFields) {
		items, ok := sc.listing(r, "fields")
		// An empty list is FLD-010's.
		if ok && len(items) > 0 && !slices.ContainsFunc(items, func(n *wire.Node) bool { v, is := n.Get("identifier").Bool(); return is && v }) {
			sc.broken("at least one field with identifier true, or the object cannot be the target of a sync", r.What()+" has none", r)
		}
	}
	return sc.heldOver()
}

// sameFields compares the fields of each object over all list_fields calls.
func (sc *scenario) sameFields() error {
	first := map[string]*reply{}
	for _, r := range sc.of(rpc.MethodListFields) {
		items, ok := sc.listing(r, "fields")
		if !ok {
			continue
		}
		if len(items) == 0 {
			sc.broken("the fields of the object, whether it holds records or not", r.What()+" is empty", r)
		}
		before := first[r.Object]
		if before == nil {
			first[r.Object] = r
			continue
		}
		was, now := texts(before.Items("fields"), "field_api_name"), texts(items, "field_api_name")
		slices.Sort(was)
		slices.Sort(now)
		if !slices.Equal(was, now) {
			sc.broken("the same fields on every call: "+quantity.List(was), r.What()+" now lists "+quantity.List(now), before, r)
			continue
		}
		kinds := fieldKinds(before.Items("fields"))
		for name, kind := range fieldKinds(items) {
			if kinds[name] != kind {
				sc.broken("the same fields on every call: "+foreign.Clip(kinds[name], 160), r.What()+": "+name+" has other types or flags: "+foreign.Clip(kind, 160), before, r)
			}
		}
	}
	return sc.heldOver()
}

// fieldKinds are type and flags of the fields by name; labels may change.
func fieldKinds(items []*wire.Node) map[string]string {
	out := map[string]string{}
	for _, n := range items {
		var f rpc.Field
		if json.Unmarshal(n.Raw, &f) == nil { // else FLD-001 says so
			f.Label = ""
			out[f.APIName] = fmt.Sprintf("%+v", f)
		}
	}
	return out
}

func (sc *scenario) sameObjects() error {
	var first *reply
	var names []string
	for _, r := range sc.of(rpc.MethodListObjects) {
		items, ok := sc.listing(r, "objects")
		if !ok {
			continue
		}
		now := texts(items, "object_api_name")
		if first != nil && !slices.Equal(now, names) {
			sorted := func(s []string) []string { return slices.Sorted(slices.Values(s)) }
			if slices.Equal(sorted(now), sorted(names)) {
				sc.note("the order of the objects changes from call to call")
				continue
			}
			sc.broken("the same objects on every call: "+quantity.List(names), "then "+quantity.List(now), first, r)
			continue
		}
		first, names = r, now
	}
	return sc.heldOver()
}

// fieldKeys are the eight properties of a field with the type of each.
var fieldKeys = []struct {
	name string
	kind wire.NodeKind
}{
	{"field_api_name", wire.String}, {"label", wire.String}, {"identifier", wire.Bool}, {"required", wire.Bool},
	{"createable", wire.Bool}, {"updateable", wire.Bool}, {"type", wire.String}, {"array", wire.Bool},
}

// fieldClaim returns "" when it holds for a field.
type fieldClaim func(f rpc.Field) (expected string, holds bool)

var fieldClaims = map[string]fieldClaim{
	"has a known type": func(f rpc.Field) (string, bool) {
		return "one of the types " + strings.Join(rpc.FieldTypes(), ", "), slices.Contains(rpc.FieldTypes(), f.Type)
	},
	"is required": func(f rpc.Field) (string, bool) {
		return "required true for a field that may be the identifier", !f.Identifier || f.Required
	},
	"is a string or an integer and no array": func(f rpc.Field) (string, bool) {
		ok := (f.Type == rpc.TypeString || f.Type == rpc.TypeInteger) && !f.Array
		return "a string or an integer, and no array, for a field that may be the identifier", !f.Identifier || ok
	},
	"is writable": func(f rpc.Field) (string, bool) {
		return "a field that is createable or updateable", f.Createable || f.Updateable
	},
}

func (sc *scenario) everyField(claim string) error {
	for _, r := range sc.of(rpc.MethodListFields) {
		items, ok := sc.listing(r, "fields")
		if !ok {
			continue
		}
		switch claim {
		case "has its eight properties":
			sc.eightProperties(r, items)
			continue
		case "has a unique name":
			sc.fieldNames(r, items)
			continue
		}
		for _, n := range items {
			var f rpc.Field
			if json.Unmarshal(n.Raw, &f) != nil {
				continue // FLD-001 says so
			}
			var expected string
			var holds bool
			if claim == "that a new record needs is createable" {
				expected, holds = sc.createableWhereNeeded(r.Object, f, items)
			} else {
				expected, holds = fieldClaims[claim](f)
			}
			if !holds {
				sc.broken(expected, r.What()+": "+string(n.Raw), r)
			}
		}
	}
	return sc.heldOver()
}

func (sc *scenario) eightProperties(r *reply, items []*wire.Node) {
	for i, n := range items {
		for _, key := range fieldKeys {
			v := n.Get(key.name)
			switch {
			case v == nil:
				sc.broken(fmt.Sprintf("%q in every field", key.name), fmt.Sprintf("%s: field %d lacks it: %s", r.What(), i+1, foreign.Clip(string(n.Raw), 240)), r)
			case v.Kind != key.kind:
				sc.broken(fmt.Sprintf("%q as a %s", key.name, key.kind), fmt.Sprintf("%s: field %d has %s", r.What(), i+1, foreign.Clip(string(v.Raw), 120)), r)
			}
		}
	}
}

func (sc *scenario) fieldNames(r *reply, items []*wire.Node) {
	names := texts(items, "field_api_name")
	if twice := repeats(names); len(twice) > 0 {
		sc.broken("each field_api_name once", r.What()+": "+quantity.List(twice)+" stands twice", r)
	}
	if slices.Contains(names, "") {
		sc.broken("a non-empty field_api_name", r.What()+": a field has an empty name", r)
	}
}

// createableWhereNeeded: an object that takes new records needs an identifier
// and its required fields createable.
func (sc *scenario) createableWhereNeeded(name string, f rpc.Field, items []*wire.Node) (string, bool) {
	creates := false
	for _, r := range sc.of(rpc.MethodSupportedOperations) {
		if r.Object == name {
			o := &object{Operations: readOperations(r)}
			creates = creates || o.creating() != ""
		}
	}
	keyed := slices.ContainsFunc(items, func(n *wire.Node) bool {
		var o rpc.Field
		return json.Unmarshal(n.Raw, &o) == nil && o.Identifier && o.Createable
	})
	needed := creates && (f.Required && !f.Identifier || f.Identifier && !keyed)
	return "createable true for an identifier and for each required field of an object that takes new records", !needed || f.Createable
}

// knownOperations of spec 4.2.
var knownOperations = []string{rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationUpsert, rpc.OperationMirror}

func (sc *scenario) operationsAre(claim string) error {
	for _, r := range sc.of(rpc.MethodSupportedOperations) {
		items, ok := sc.listing(r, "operations")
		if !ok {
			continue
		}
		var names []string
		for _, n := range items {
			switch {
			case n.Kind == wire.String && n.Text == rpc.OperationDelete && claim == "known words":
				sc.note(`%s lists "delete", which is the operation of batches and is never chosen by a sync`, r.What())
			case claim == "known words" && (n.Kind != wire.String || !slices.Contains(knownOperations, n.Text)):
				sc.broken("insert, update, upsert or mirror", r.What()+": "+string(n.Raw), r)
			}
			names = append(names, exchange.NodeText(n))
		}
		if claim == "known words" {
			continue
		}
		if len(items) == 0 {
			sc.broken("at least one operation", r.What()+" is empty", r)
		}
		if twice := repeats(names); len(twice) > 0 {
			sc.broken("each operation once", r.What()+": "+quantity.List(twice)+" stands twice", r)
		}
	}
	return sc.heldOver()
}
