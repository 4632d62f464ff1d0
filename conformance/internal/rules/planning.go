package rules

import (
	"encoding/json"
	"fmt"
	"iter"
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

// planningGroup judges test_connection, list_objects, list_fields and supported_operations.
func planningGroup(g ruleset) map[string]Claim {
	objects := func(look listClaim) Claim { return listed(rpc.MethodListObjects, "objects", look) }
	fields := func(look listClaim) Claim { return listed(rpc.MethodListFields, "fields", look) }
	operations := func(look listClaim) Claim { return listed(rpc.MethodSupportedOperations, "operations", look) }
	g.on(resultOf(rpc.MethodTestConnection), "CON-001")
	g.on(resultOf(rpc.MethodListObjects), "OBJ-001", "OBJ-002", "OBJ-003")
	g.on(resultOf(rpc.MethodListFields), "FLD-001", "FLD-002", "FLD-003", "FLD-004", "FLD-005", "FLD-006", "FLD-008")
	g.on(resultOf(rpc.MethodSupportedOperations), "OPS-001", "OPS-002")
	for id, method := range map[string]string{"CON-004": rpc.MethodTestConnection, "CON-005": rpc.MethodListObjects, "SPD-002": rpc.MethodGetSyncSpeed} {
		g.late(func(t *Traffic, j *judge) []Verdict { return t.processed(j, "empty "+method) }, id)
	}
	g.pair("OBJ-004", rpc.MethodListObjects, func(t *Traffic, _ *Call) *Call { return t.objects })
	for id, fits := range map[string]func(t *Traffic, c, before *Call) bool{
		"FLD-010": func(_ *Traffic, c, before *Call) bool { return before.label() == c.label() },
		"FLD-015": func(_ *Traffic, c, before *Call) bool { return before.label() != c.label() },
		"PAR-001": func(t *Traffic, c, _ *Call) bool { return t.beside(c) },
	} {
		g.pair(id, rpc.MethodListFields, func(t *Traffic, c *Call) *Call {
			if before := t.fields[c.Object]; before != nil && fits(t, c, before) {
				return before
			}
			return nil
		})
	}
	g["FLD-007"] = &rule{
		takes: func(t *Traffic, c *Call) bool {
			return resultOf(rpc.MethodListFields)(c) && t.operations[c.Object] != nil
		},
		with: func(t *Traffic, c *Call, l *Look) {
			l.Replies = []*reply{t.operations[c.Object].reply, c.reply}
		},
	}
	for id, method := range map[string]string{"FLD-009": rpc.MethodListFields, "OPS-003": rpc.MethodSupportedOperations} {
		g.onTraffic(func(t *Traffic, c *Call) bool { // what was not listed
			return c.form == goodForm && c.Method == method && t.objects != nil && c.near(t.objects) && c.Doc() != nil && !c.refusedOutside() &&
				!slices.Contains(Texts(t.objects.Items("objects"), "object_api_name"), c.Object)
		}, id)
	}
	g.onTraffic(func(t *Traffic, c *Call) bool {
		ops := t.operations[c.Object]
		return c.Batch != nil && c.Records > 0 && ops != nil && c.near(ops) && c.Batch.Operation != "" && !Accepts(ops.Operations(), c.Batch.Operation)
	}, "OPS-005")
	g.onTraffic(func(t *Traffic, c *Call) bool {
		fields := t.fields[c.Object]
		return c.Batch != nil && c.Records > 0 && c.active != "" && fields != nil && c.near(fields) &&
			slices.ContainsFunc(fields.Fields(), func(f rpc.Field) bool { return f.APIName == c.active && !f.Identifier })
	}, "FLD-013")
	return map[string]Claim{
		`every result of test_connection has a boolean "success"`: healthIsBoolean,
		"the list of objects is not empty": objects(func(l *Look, r *reply, items []*wire.Node) {
			if len(items) == 0 {
				l.broken("at least one object", "the list is empty", r)
			}
		}),
		"every listed object has a name and a label":        objects(objectsNamed),
		"every listed object has a unique name":             objects(objectsUnique),
		"every listed object has an identifier field":       fields(objectsIdentifiable),
		"every listed object has the same fields each time": sameFields,
		"the objects stay the same":                         sameObjects,
		"every listed field has its eight properties":       fields(eightProperties),
		"every listed field has a unique name":              fields(fieldNames),
		"every listed field has a known type": eachField("one of the types "+strings.Join(rpc.FieldTypes(), ", "),
			func(f rpc.Field) bool { return slices.Contains(rpc.FieldTypes(), f.Type) }),
		"every identifier field is required": eachField("required true for a field that may be the identifier",
			func(f rpc.Field) bool { return f.Required || !f.Identifier }),
		"every identifier field is a string or an integer and no array": eachField("a string or an integer, and no array, for a field that may be the identifier",
			func(f rpc.Field) bool {
				return !f.Identifier || (f.Type == rpc.TypeString || f.Type == rpc.TypeInteger) && !f.Array
			}),
		"every listed field that a new record needs is createable": fields(createableWhereNeeded),
		"every listed field is writable": eachField("a field that is createable or updateable",
			func(f rpc.Field) bool { return f.Createable || f.Updateable }),
		"the supported operations are known words":          operations(knownWords),
		"the supported operations are not empty and unique": operations(someAndUnique),
	}
}

// pair puts two answers to the same question to the claims of a check.
func (g ruleset) pair(id, method string, before func(t *Traffic, c *Call) *Call) {
	g[id] = &rule{
		takes: func(t *Traffic, c *Call) bool {
			if !resultOf(method)(c) {
				return false
			}
			b := before(t, c)
			return b != nil && c.near(b)
		},
		with: func(t *Traffic, c *Call, l *Look) { l.Replies = []*reply{before(t, c).reply, c.reply} },
	}
}

func healthIsBoolean(l *Look) error {
	judged := lists.Where(l.of(rpc.MethodTestConnection), func(r *reply) bool { return r.Result() != nil })
	for _, r := range judged {
		if !r.Result().Get("success").Is(wire.Bool) {
			l.broken(`"success" as true or false`, r.Short(), r)
		}
	}
	return l.heldBy(len(judged) > 0, "test_connection gave no result")
}

// listClaim looks at the items of a list in a result.
type listClaim func(l *Look, r *reply, items []*wire.Node)

// listed is the claim about the items of a list in each result of a method. One that did not
// arrive is left to the time and HTTP checks.
func listed(method, key string, look listClaim) Claim {
	return func(l *Look) error {
		var missing *reply
		for _, r := range l.of(method) {
			switch n := r.Result().Get(key); {
			case !r.OK():
				missing = r
			case !n.Is(wire.Array):
				l.broken("a result with the array "+string(values.Quote(key)), r.What()+": "+r.Short(), r)
			default:
				look(l, r, n.Items)
			}
		}
		if missing == nil {
			return l.held()
		}
		return l.heldBy(false, "%s did not arrive: %s", missing.What(), missing.Failure())
	}
}

func objectsNamed(l *Look, r *reply, items []*wire.Node) {
	for i, n := range items {
		for _, key := range []string{"object_api_name", "label"} {
			if text(n.Get(key)) == "" {
				l.broken(fmt.Sprintf("a non-empty string %q in every object", key), fmt.Sprintf("object %d is %s", i+1, foreign.Clip(string(n.Raw), 200)), r)
			}
		}
	}
}

// repeats are the texts that occur in a list more than once.
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

// Texts collects a string member of the items.
func Texts(items []*wire.Node, key string) []string {
	with := lists.Where(items, func(n *wire.Node) bool { return n.Get(key).Is(wire.String) })
	return lists.Of(with, func(n *wire.Node) string { return n.Get(key).Text })
}

func objectsUnique(l *Look, r *reply, items []*wire.Node) {
	if twice := repeats(Texts(items, "object_api_name")); len(twice) > 0 {
		l.broken("each object_api_name once", quantity.List(twice)+" occurs twice", r)
	}
}

func objectsIdentifiable(l *Look, r *reply, items []*wire.Node) {
	// An empty list is FLD-010's.
	if len(items) > 0 && !slices.ContainsFunc(items, func(n *wire.Node) bool { v, is := n.Get("identifier").Bool(); return is && v }) {
		l.broken("at least one field with identifier true, or the object cannot be the target of a sync", r.What()+" has none", r)
	}
}

// sameFields compares the fields of each object over all list_fields calls.
func sameFields(l *Look) error {
	first := map[string]*reply{}
	return listed(rpc.MethodListFields, "fields", func(l *Look, r *reply, items []*wire.Node) {
		if len(items) == 0 {
			l.broken("the fields of the object, whether it holds records or not", r.What()+" is empty", r)
		}
		before := first[r.Object]
		if before == nil {
			first[r.Object] = r
			return
		}
		const expected, symptom = "the same fields on every call: ", "fields that differ" // of any object: one list may be that of another
		was, now := sorted(Texts(before.Items("fields"), "field_api_name")), sorted(Texts(items, "field_api_name"))
		if !slices.Equal(was, now) {
			l.broken(expected+quantity.List(was), r.What()+" now lists "+quantity.List(now), before, r).Symptom = symptom
			return
		}
		kinds := fieldKinds(before.Items("fields"))
		for name, kind := range fieldKinds(items) {
			if kinds[name] != kind {
				l.broken(expected+foreign.Clip(kinds[name], 160), r.What()+": "+name+" has other types or flags: "+foreign.Clip(kind, 160), before, r).Symptom = symptom
			}
		}
	})(l)
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }

// fieldKinds are type and flags of the fields by name; labels may change.
func fieldKinds(items []*wire.Node) map[string]string {
	out := map[string]string{}
	for f := range readable(items) {
		f.Label = ""
		out[f.APIName] = fmt.Sprintf("%+v", f)
	}
	return out
}

func sameObjects(l *Look) error {
	var first *reply
	var names []string
	return listed(rpc.MethodListObjects, "objects", func(l *Look, r *reply, items []*wire.Node) {
		now := Texts(items, "object_api_name")
		switch {
		case first == nil || slices.Equal(now, names):
			first, names = r, now
		case slices.Equal(sorted(now), sorted(names)):
			l.note("the order of the objects changes from call to call")
		default:
			l.broken("the same objects on every call: "+quantity.List(names), "then "+quantity.List(now), first, r)
		}
	})(l)
}

// fieldKeys are the eight properties of a field with the type of each.
var fieldKeys = []struct {
	name string
	kind wire.NodeKind
}{
	{"field_api_name", wire.String}, {"label", wire.String}, {"identifier", wire.Bool}, {"required", wire.Bool},
	{"createable", wire.Bool}, {"updateable", wire.Bool}, {"type", wire.String}, {"array", wire.Bool},
}

// readable are the fields that can be read, with what came of each; FLD-001 judges the others.
func readable(items []*wire.Node) iter.Seq2[rpc.Field, *wire.Node] {
	return func(yield func(rpc.Field, *wire.Node) bool) {
		for _, n := range items {
			var f rpc.Field
			if json.Unmarshal(n.Raw, &f) == nil && !yield(f, n) {
				return
			}
		}
	}
}

// eachField is the claim about each field that can be read.
func eachField(expected string, holds func(f rpc.Field) bool) Claim {
	return listed(rpc.MethodListFields, "fields", func(l *Look, r *reply, items []*wire.Node) {
		for f, n := range readable(items) {
			if !holds(f) {
				l.broken(expected, r.What()+": "+string(n.Raw), r)
			}
		}
	})
}

func eightProperties(l *Look, r *reply, items []*wire.Node) {
	for i, n := range items {
		for _, key := range fieldKeys {
			v := n.Get(key.name)
			switch {
			case v == nil:
				l.broken(fmt.Sprintf("%q in every field", key.name), fmt.Sprintf("%s: field %d lacks it: %s", r.What(), i+1, foreign.Clip(string(n.Raw), 240)), r)
			case v.Kind != key.kind:
				l.broken(fmt.Sprintf("%q as a %s", key.name, key.kind), fmt.Sprintf("%s: field %d has %s", r.What(), i+1, foreign.Clip(string(v.Raw), 120)), r)
			}
		}
	}
}

func fieldNames(l *Look, r *reply, items []*wire.Node) {
	names := Texts(items, "field_api_name")
	if twice := repeats(names); len(twice) > 0 {
		l.broken("each field_api_name once", r.What()+": "+quantity.List(twice)+" occurs twice", r)
	}
	if slices.Contains(names, "") {
		l.broken("a non-empty field_api_name", r.What()+": a field has an empty name", r)
	}
}

// createableWhereNeeded is about objects that take new records.
func createableWhereNeeded(l *Look, r *reply, items []*wire.Node) {
	if !slices.ContainsFunc(l.of(rpc.MethodSupportedOperations), func(o *reply) bool {
		return o.Object == r.Object && (Accepts(o.Operations(), rpc.OperationUpsert) || Accepts(o.Operations(), rpc.OperationInsert))
	}) {
		return
	}
	keyed := false
	for f := range readable(items) {
		keyed = keyed || f.Identifier && f.Createable
	}
	for f, n := range readable(items) {
		if !f.Createable && (f.Required && !f.Identifier || f.Identifier && !keyed) {
			l.broken("createable true for an identifier and for each required field of an object that takes new records", r.What()+": "+string(n.Raw), r)
		}
	}
}

func knownWords(l *Look, r *reply, items []*wire.Node) {
	for _, n := range items {
		switch word := text(n); {
		case word == rpc.OperationDelete:
			l.note(`%s lists "delete", which is the operation of batches and is never chosen by a sync`, r.What())
		case !slices.Contains([]string{rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationUpsert, rpc.OperationMirror}, word):
			l.broken("insert, update, upsert or mirror", r.What()+": "+string(n.Raw), r)
		}
	}
}

func someAndUnique(l *Look, r *reply, items []*wire.Node) {
	if len(items) == 0 {
		l.broken("at least one operation", r.What()+" is empty", r)
	}
	if twice := repeats(lists.Of(items, exchange.NodeText)); len(twice) > 0 {
		l.broken("each operation once", r.What()+": "+quantity.List(twice)+" occurs twice", r)
	}
}
