package rules

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

// planningGroup judges test_connection, list_objects, list_fields and supported_operations.
func planningGroup() group {
	g := group{claims: map[string]Claim{
		`every result of test_connection has a boolean "success"`:       healthIsBoolean,
		"the list of objects is not empty":                              listed(rpc.MethodListObjects, "objects", notEmpty),
		"every listed object has a name and a label":                    listed(rpc.MethodListObjects, "objects", objectsNamed),
		"every listed object has a unique name":                         listed(rpc.MethodListObjects, "objects", objectsUnique),
		"every listed object has an identifier field":                   listed(rpc.MethodListFields, "fields", objectsIdentifiable),
		"every listed object has the same fields each time":             sameFields,
		"the objects stay the same":                                     sameObjects,
		"every listed field has its eight properties":                   listed(rpc.MethodListFields, "fields", eightProperties),
		"every listed field has a unique name":                          listed(rpc.MethodListFields, "fields", fieldNames),
		"every listed field has a known type":                           eachField(knownType),
		"every identifier field is required":                            eachField(required),
		"every identifier field is a string or an integer and no array": eachField(fitForKeys),
		"every listed field that a new record needs is createable":      eachField(createableWhereNeeded),
		"every listed field is writable":                                eachField(writable),
		"the supported operations are known words":                      listed(rpc.MethodSupportedOperations, "operations", knownWords),
		"the supported operations are not empty and unique":             listed(rpc.MethodSupportedOperations, "operations", someAndUnique),
	}, rules: map[string]*rule{}}
	g.on(resultOf(rpc.MethodTestConnection), "CON-001")
	g.on(resultOf(rpc.MethodListObjects), "OBJ-001", "OBJ-002", "OBJ-003")
	g.on(resultOf(rpc.MethodListFields), "FLD-001", "FLD-002", "FLD-003", "FLD-004", "FLD-005", "FLD-006", "FLD-008")
	g.on(resultOf(rpc.MethodSupportedOperations), "OPS-001", "OPS-002")
	g.on(emptyOf(rpc.MethodTestConnection), "CON-004")
	g.on(emptyOf(rpc.MethodListObjects), "CON-005")
	g.pair("OBJ-004", func(t *Traffic, c *Call) *Call { return earlier(c, rpc.MethodListObjects, t.objects) })
	labelled := func(same bool) func(t *Traffic, c *Call) *Call {
		return func(t *Traffic, c *Call) *Call {
			if b := earlier(c, rpc.MethodListFields, t.fields[c.Object]); b != nil && (b.label() == c.label()) == same {
				return b
			}
			return nil
		}
	}
	g.pair("FLD-010", labelled(true))
	g.pair("FLD-015", labelled(false))
	g.pair("PAR-001", func(t *Traffic, c *Call) *Call {
		if !t.beside(c) {
			return nil
		}
		return earlier(c, rpc.MethodListFields, t.fields[c.Object])
	})
	g.rules["FLD-007"] = &rule{
		takes: func(t *Traffic, c *Call) bool {
			return resultOf(rpc.MethodListFields)(c) && t.operations[c.Object] != nil
		},
		with: func(t *Traffic, c *Call, l *Look) {
			l.Replies = []*reply{t.operations[c.Object].reply, c.reply}
		},
	}
	unlisted := func(method string) func(t *Traffic, c *Call) bool {
		return func(t *Traffic, c *Call) bool {
			listed := t.objects
			return c.form == goodForm && c.Method == method && listed != nil && c.near(listed) && c.Doc() != nil && !c.refusedOutside() &&
				!slices.Contains(Texts(listed.Items("objects"), "object_api_name"), c.Object)
		}
	}
	g.onTraffic(unlisted(rpc.MethodListFields), "FLD-009")
	g.onTraffic(unlisted(rpc.MethodSupportedOperations), "OPS-003")
	g.onTraffic(func(t *Traffic, c *Call) bool {
		ops := t.operations[c.Object]
		return c.Batch != nil && c.Records > 0 && ops != nil && c.near(ops) && c.Batch.Operation != "" && !Accepts(ops.Operations(), c.Batch.Operation)
	}, "OPS-005")
	g.onTraffic(func(t *Traffic, c *Call) bool {
		fields := t.fields[c.Object]
		return c.Batch != nil && c.Records > 0 && c.active != "" && fields != nil && c.near(fields) &&
			slices.ContainsFunc(fields.Fields(), func(f rpc.Field) bool { return f.APIName == c.active && !f.Identifier })
	}, "FLD-013")
	return g
}

// pair puts the answers to the same question to the claims of a check.
func (g *group) pair(id string, before func(t *Traffic, c *Call) *Call) {
	g.rules[id] = &rule{
		takes: func(t *Traffic, c *Call) bool {
			b := before(t, c)
			return c.form == goodForm && c.Result() != nil && b != nil && c.near(b)
		},
		with: func(t *Traffic, c *Call, l *Look) { l.Replies = []*reply{before(t, c).reply, c.reply} },
	}
}

// earlier is an earlier answer, where the call is of the method.
func earlier(c *Call, method string, known *Call) *Call {
	if c.Method != method {
		return nil
	}
	return known
}

func healthIsBoolean(l *Look) error {
	judged := false
	for _, r := range l.of(rpc.MethodTestConnection) {
		res := r.Result()
		if res == nil {
			continue
		}
		judged = true
		if _, is := res.Get("success").Bool(); !is {
			l.broken(`"success" as true or false`, r.Short(), r)
		}
	}
	if err := l.held(); err != nil || judged {
		return err
	}
	return inconclusive("", "test_connection gave no result")
}

// listing returns the items of a list result; without one there is nothing to
// judge, and a finding says so once.
func (l *Look) listing(r *reply, key string) ([]*wire.Node, bool) {
	res := r.Result()
	if !r.OK() {
		l.missing = r // the time and HTTP checks judge that
		return nil, false
	}
	if res == nil {
		l.broken("a result with the array "+string(values.Quote(key)), r.What()+": "+r.Short(), r)
		return nil, false
	}
	n := res.Get(key)
	if !n.Is(wire.Array) {
		l.broken("a result with the array "+string(values.Quote(key)), r.What()+": "+r.Short(), r)
		return nil, false
	}
	return n.Items, true
}

// heldOver is held, and INCONCLUSIVE when a list that had to be judged did not
// arrive.
func (l *Look) heldOver() error {
	if err := l.held(); err != nil || l.missing == nil {
		return err
	}
	return inconclusive("", "%s did not arrive: %s", l.missing.What(), l.missing.Failure())
}

func objectsNamed(l *Look, r *reply, items []*wire.Node) {
	for i, n := range items {
		for _, key := range []string{"object_api_name", "label"} {
			if v := n.Get(key); !v.Is(wire.String) || v.Text == "" {
				l.broken(fmt.Sprintf("a non-empty string %q in every object", key),
					fmt.Sprintf("object %d is %s", i+1, foreign.Clip(string(n.Raw), 200)), r)
			}
		}
	}
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

// Texts collects a string member of the items.
func Texts(items []*wire.Node, key string) []string {
	var out []string
	for _, n := range items {
		if v := n.Get(key); v.Is(wire.String) {
			out = append(out, v.Text)
		}
	}
	return out
}

func objectsUnique(l *Look, r *reply, items []*wire.Node) {
	if twice := repeats(Texts(items, "object_api_name")); len(twice) > 0 {
		l.broken("each object_api_name once", quantity.List(twice)+" stands twice", r)
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
	for _, r := range l.of(rpc.MethodListFields) {
		items, ok := l.listing(r, "fields")
		if !ok {
			continue
		}
		if len(items) == 0 {
			l.broken("the fields of the object, whether it holds records or not", r.What()+" is empty", r)
		}
		before := first[r.Object]
		if before == nil {
			first[r.Object] = r
			continue
		}
		was, now := Texts(before.Items("fields"), "field_api_name"), Texts(items, "field_api_name")
		slices.Sort(was)
		slices.Sort(now)
		if !slices.Equal(was, now) {
			l.broken("the same fields on every call: "+quantity.List(was), r.What()+" now lists "+quantity.List(now), before, r)
			continue
		}
		kinds := fieldKinds(before.Items("fields"))
		for name, kind := range fieldKinds(items) {
			if kinds[name] != kind {
				l.broken("the same fields on every call: "+foreign.Clip(kinds[name], 160), r.What()+": "+name+" has other types or flags: "+foreign.Clip(kind, 160), before, r)
			}
		}
	}
	return l.heldOver()
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

func sameObjects(l *Look) error {
	var first *reply
	var names []string
	for _, r := range l.of(rpc.MethodListObjects) {
		items, ok := l.listing(r, "objects")
		if !ok {
			continue
		}
		now := Texts(items, "object_api_name")
		if first != nil && !slices.Equal(now, names) {
			sorted := func(s []string) []string { return slices.Sorted(slices.Values(s)) }
			if slices.Equal(sorted(now), sorted(names)) {
				l.note("the order of the objects changes from call to call")
				continue
			}
			l.broken("the same objects on every call: "+quantity.List(names), "then "+quantity.List(now), first, r)
			continue
		}
		first, names = r, now
	}
	return l.heldOver()
}

// fieldKeys are the eight properties of a field with the type of each.
var fieldKeys = []struct {
	name string
	kind wire.NodeKind
}{
	{"field_api_name", wire.String}, {"label", wire.String}, {"identifier", wire.Bool}, {"required", wire.Bool},
	{"createable", wire.Bool}, {"updateable", wire.Bool}, {"type", wire.String}, {"array", wire.Bool},
}

// listed is the claim about the items of a list in each result of a method.
func listed(method, key string, look func(l *Look, r *reply, items []*wire.Node)) Claim {
	return func(l *Look) error {
		for _, r := range l.of(method) {
			if items, ok := l.listing(r, key); ok {
				look(l, r, items)
			}
		}
		return l.heldOver()
	}
}

// eachField is the claim about each field that can be read; FLD-001 judges the others.
func eachField(claim func(l *Look, r *reply, f rpc.Field, items []*wire.Node) (expected string, holds bool)) Claim {
	return listed(rpc.MethodListFields, "fields", func(l *Look, r *reply, items []*wire.Node) {
		for _, n := range items {
			var f rpc.Field
			if json.Unmarshal(n.Raw, &f) != nil {
				continue
			}
			if expected, holds := claim(l, r, f, items); !holds {
				l.broken(expected, r.What()+": "+string(n.Raw), r)
			}
		}
	})
}

func knownType(_ *Look, _ *reply, f rpc.Field, _ []*wire.Node) (string, bool) {
	return "one of the types " + strings.Join(rpc.FieldTypes(), ", "), slices.Contains(rpc.FieldTypes(), f.Type)
}

func required(_ *Look, _ *reply, f rpc.Field, _ []*wire.Node) (string, bool) {
	return "required true for a field that may be the identifier", !f.Identifier || f.Required
}

func fitForKeys(_ *Look, _ *reply, f rpc.Field, _ []*wire.Node) (string, bool) {
	ok := (f.Type == rpc.TypeString || f.Type == rpc.TypeInteger) && !f.Array
	return "a string or an integer, and no array, for a field that may be the identifier", !f.Identifier || ok
}

func writable(_ *Look, _ *reply, f rpc.Field, _ []*wire.Node) (string, bool) {
	return "a field that is createable or updateable", f.Createable || f.Updateable
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
		l.broken("each field_api_name once", r.What()+": "+quantity.List(twice)+" stands twice", r)
	}
	if slices.Contains(names, "") {
		l.broken("a non-empty field_api_name", r.What()+": a field has an empty name", r)
	}
}

// createableWhereNeeded: an object that takes new records needs an identifier
// and its required fields createable.
func createableWhereNeeded(l *Look, of *reply, f rpc.Field, items []*wire.Node) (string, bool) {
	creates := false
	for _, r := range l.of(rpc.MethodSupportedOperations) {
		if r.Object == of.Object {
			listed := r.Operations()
			creates = creates || Accepts(listed, rpc.OperationUpsert) || Accepts(listed, rpc.OperationInsert)
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

func knownWords(l *Look, r *reply, items []*wire.Node) {
	for _, n := range items {
		switch {
		case n.Kind == wire.String && n.Text == rpc.OperationDelete:
			l.note(`%s lists "delete", which is the operation of batches and is never chosen by a sync`, r.What())
		case n.Kind != wire.String || !slices.Contains(knownOperations, n.Text):
			l.broken("insert, update, upsert or mirror", r.What()+": "+string(n.Raw), r)
		}
	}
}

func someAndUnique(l *Look, r *reply, items []*wire.Node) {
	if len(items) == 0 {
		l.broken("at least one operation", r.What()+" is empty", r)
	}
	if twice := repeats(lists.Of(items, exchange.NodeText)); len(twice) > 0 {
		l.broken("each operation once", r.What()+": "+quantity.List(twice)+" stands twice", r)
	}
}

func notEmpty(l *Look, r *reply, items []*wire.Node) {
	if len(items) == 0 {
		l.broken("at least one object", "the list is empty", r)
	}
}
