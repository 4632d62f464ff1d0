package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// planningSteps judge list_objects, list_fields and supported_operations.
func planningSteps() []definition {
	return []definition{
		step(`^the service calls "(list_fields|supported_operations)" for (every object|an object that does not exist)(?: (\d+) times in parallel)?$`,
			func(w *world) any { return w.asksAboutObjects }),
		step(`^every listed object has (a name and a label|a unique name|an identifier field|the same fields each time)$`,
			func(w *world) any { return func(claim string) error { return objectClaims[claim](w) } }),
		step(`^the (objects stay the same|declared speed stays the same|rate limit header is the same on every reply)$`,
			func(w *world) any { return func(claim string) error { return sameClaims[claim](w) } }),
		step(`^every (?:listed|identifier) field (has its eight properties|has a unique name|has a known type|is required|is a string or an integer and no array|that a new record needs is createable|is writable)$`,
			func(w *world) any { return func(claim string) error { return w.everyField(claim) } }),
		step(`^the (list of objects is not empty|supported operations are known words|supported operations are not empty and unique)$`,
			func(w *world) any { return w.listsAre }),
	}
}

// unknownObject is a name that no endpoint lists.
var unknownObject = rpc.Object{APIName: "zz_no_such_object", Label: "No such object"}

func (w *world) asksAboutObjects(method, which, times string) error {
	if times != "" {
		return w.callsInParallel(method, times)
	}
	if which == "every object" {
		return w.sendAll(w.methodCalls(method))
	}
	_, err := w.send(request{method: method, params: objectParams(unknownObject), object: unknownObject.APIName})
	return err
}

// of returns the replies of a method.
func (w *world) of(method string) []*reply {
	var out []*reply
	for _, r := range w.replies {
		if r.method == method {
			out = append(out, r)
		}
	}
	return out
}

// listing returns the items of a list result; without one there is nothing to
// judge, and a finding says so once.
func (w *world) listing(r *reply, key string) ([]*wire.Node, bool) {
	res := r.result()
	if !r.OK() {
		w.unheard = r // the time and HTTP checks judge that
		return nil, false
	}
	if res == nil {
		w.broken("a result with the array "+string(quote(key)), r.what()+": "+r.short(), r)
		return nil, false
	}
	n := res.Get(key)
	if !n.Is(wire.Array) {
		w.broken("a result with the array "+string(quote(key)), r.what()+": "+r.short(), r)
		return nil, false
	}
	return n.Items, true
}

// heldOver is held, and INCONCLUSIVE when a list that had to be judged did not
// arrive.
func (w *world) heldOver() error {
	if err := w.held(); err != nil || w.unheard == nil {
		return err
	}
	return inconclusive("", "%s did not arrive: %s", w.unheard.what(), w.unheard.trouble())
}

func (w *world) listsObjects() error {
	for _, r := range w.of(rpc.MethodListObjects) {
		if items, ok := w.listing(r, "objects"); ok && len(items) == 0 {
			w.broken("at least one object", "the list is empty", r)
		}
	}
	return w.heldOver()
}

// sameClaims are about what must not change within a run.
var sameClaims = map[string]func(*world) error{
	"objects stay the same":                        (*world).sameObjects,
	"declared speed stays the same":                (*world).speedStable,
	"rate limit header is the same on every reply": func(w *world) error { return w.rateLimitHeader("is the same on every reply") },
}

func (w *world) listsAre(claim string) error {
	if claim == "list of objects is not empty" {
		return w.listsObjects()
	}
	return w.operationsAre(strings.TrimPrefix(claim, "supported operations are "))
}

var objectClaims = map[string]func(*world) error{
	"a name and a label":        (*world).objectsNamed,
	"a unique name":             (*world).objectsUnique,
	"an identifier field":       (*world).objectsIdentifiable,
	"the same fields each time": (*world).sameFields,
}

func (w *world) objectsNamed() error {
	for _, r := range w.of(rpc.MethodListObjects) {
		items, _ := w.listing(r, "objects")
		for i, n := range items {
			for _, key := range []string{"object_api_name", "label"} {
				if v := n.Get(key); !v.Is(wire.String) || v.Text == "" {
					w.broken(fmt.Sprintf("a non-empty string %q in every object", key),
						fmt.Sprintf("object %d is %s", i+1, clip(string(n.Raw), 200)), r)
				}
			}
		}
	}
	return w.heldOver()
}

// repeats returns the texts that stand in a list more than once.
func repeats(names []string) []string {
	var out []string
	seen := map[string]int{}
	for _, n := range names {
		if seen[n]++; seen[n] == 2 {
			out = append(out, string(quote(n)))
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

func (w *world) objectsUnique() error {
	for _, r := range w.of(rpc.MethodListObjects) {
		items, _ := w.listing(r, "objects")
		if twice := repeats(texts(items, "object_api_name")); len(twice) > 0 {
			w.broken("each object_api_name once", list(twice)+" stands twice", r)
		}
	}
	return w.heldOver()
}

func (w *world) objectsIdentifiable() error {
	for _, r := range w.of(rpc.MethodListFields) {
		items, ok := w.listing(r, "fields")
		// An empty list is FLD-010's.
		if ok && len(items) > 0 && !slices.ContainsFunc(items, func(n *wire.Node) bool { v, is := n.Get("identifier").Bool(); return is && v }) {
			w.broken("at least one field with identifier true, or the object cannot be the target of a sync", r.what()+" has none", r)
		}
	}
	return w.heldOver()
}

// sameFields compares the fields of each object over all list_fields calls.
func (w *world) sameFields() error {
	first := map[string]*reply{}
	for _, r := range w.of(rpc.MethodListFields) {
		items, ok := w.listing(r, "fields")
		if !ok {
			continue
		}
		if len(items) == 0 {
			w.broken("the fields of the object, whether it holds records or not", r.what()+" is empty", r)
		}
		before := first[r.object]
		if before == nil {
			first[r.object] = r
			continue
		}
		was, now := texts(before.items("fields"), "field_api_name"), texts(items, "field_api_name")
		slices.Sort(was)
		slices.Sort(now)
		if !slices.Equal(was, now) {
			w.broken("the same fields on every call: "+list(was), r.what()+" now lists "+list(now), before, r)
			continue
		}
		kinds := fieldKinds(before.items("fields"))
		for name, kind := range fieldKinds(items) {
			if kinds[name] != kind {
				w.broken("the same fields on every call: "+clip(kinds[name], 160), r.what()+": "+name+" has other types or flags: "+clip(kind, 160), before, r)
			}
		}
	}
	return w.heldOver()
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

func (w *world) sameObjects() error {
	var first *reply
	var names []string
	for _, r := range w.of(rpc.MethodListObjects) {
		items, ok := w.listing(r, "objects")
		if !ok {
			continue
		}
		now := texts(items, "object_api_name")
		if first != nil && !slices.Equal(now, names) {
			sorted := func(s []string) []string { return slices.Sorted(slices.Values(s)) }
			if slices.Equal(sorted(now), sorted(names)) {
				w.note("the order of the objects changes from call to call")
				continue
			}
			w.broken("the same objects on every call: "+list(names), "then "+list(now), first, r)
			continue
		}
		first, names = r, now
	}
	return w.heldOver()
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

func (w *world) everyField(claim string) error {
	for _, r := range w.of(rpc.MethodListFields) {
		items, ok := w.listing(r, "fields")
		if !ok {
			continue
		}
		switch claim {
		case "has its eight properties":
			w.eightProperties(r, items)
			continue
		case "has a unique name":
			w.fieldNames(r, items)
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
				expected, holds = w.createableWhereNeeded(r.object, f, items)
			} else {
				expected, holds = fieldClaims[claim](f)
			}
			if !holds {
				w.broken(expected, r.what()+": "+string(n.Raw), r)
			}
		}
	}
	return w.heldOver()
}

func (w *world) eightProperties(r *reply, items []*wire.Node) {
	for i, n := range items {
		for _, key := range fieldKeys {
			v := n.Get(key.name)
			switch {
			case v == nil:
				w.broken(fmt.Sprintf("%q in every field", key.name), fmt.Sprintf("%s: field %d lacks it: %s", r.what(), i+1, clip(string(n.Raw), 240)), r)
			case v.Kind != key.kind:
				w.broken(fmt.Sprintf("%q as a %s", key.name, key.kind), fmt.Sprintf("%s: field %d has %s", r.what(), i+1, clip(string(v.Raw), 120)), r)
			}
		}
	}
}

func (w *world) fieldNames(r *reply, items []*wire.Node) {
	names := texts(items, "field_api_name")
	if twice := repeats(names); len(twice) > 0 {
		w.broken("each field_api_name once", r.what()+": "+list(twice)+" stands twice", r)
	}
	if slices.Contains(names, "") {
		w.broken("a non-empty field_api_name", r.what()+": a field has an empty name", r)
	}
}

// createableWhereNeeded: an object that takes new records needs an identifier
// and its required fields createable.
func (w *world) createableWhereNeeded(name string, f rpc.Field, items []*wire.Node) (string, bool) {
	creates := false
	for _, r := range w.of(rpc.MethodSupportedOperations) {
		if r.object == name {
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

func (w *world) operationsAre(claim string) error {
	for _, r := range w.of(rpc.MethodSupportedOperations) {
		items, ok := w.listing(r, "operations")
		if !ok {
			continue
		}
		var names []string
		for _, n := range items {
			switch {
			case n.Kind == wire.String && n.Text == rpc.OperationDelete && claim == "known words":
				w.note(`%s lists "delete", which is the operation of batches and is never chosen by a sync`, r.what())
			case claim == "known words" && (n.Kind != wire.String || !slices.Contains(knownOperations, n.Text)):
				w.broken("insert, update, upsert or mirror", r.what()+": "+string(n.Raw), r)
			}
			names = append(names, nodeText(n))
		}
		if claim == "known words" {
			continue
		}
		if len(items) == 0 {
			w.broken("at least one operation", r.what()+" is empty", r)
		}
		if twice := repeats(names); len(twice) > 0 {
			w.broken("each operation once", r.what()+": "+list(twice)+" stands twice", r)
		}
	}
	return w.heldOver()
}
