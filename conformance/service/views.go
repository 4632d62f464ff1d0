package service

import (
	"fmt"
	"strconv"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/lists"
)

// view is one thing as an answer of the API shows it. The same thing is looked
// at in several ways: all of them have to say the same.
type view struct {
	kind   string // "destination", "source type", …
	way    string // how it was looked at: "creation", "fetch", "list", …
	answer *answer
	node   *wire.Node
	of     *view // what it is a part of
}

// partsOf says which kinds stand in others, and where.
var partsOf = map[string]struct{ kind, path string }{
	"test step":                    {"destination", "last_test_results.steps"},
	"destination object":           {"destination", "objects"},
	"destination field":            {"destination object", "fields"},
	"advanced configuration field": {"destination object", "advanced_configuration_field_definitions"},
	"custom field type":            {"destination object", "supported_custom_field_types"},
	"configuration field":          {"source type", "configuration_fields.fields"},
	"column":                       {"model", "columns"},
}

// shows notes a thing that an answer holds.
func (sc *scenario) shows(kind, way string, a *answer, node *wire.Node) {
	sc.views = append(sc.views, &view{kind: kind, way: way, answer: a, node: node})
}

// anew forgets how things of a kind looked, for they are about to change; the
// last look is kept to compare with.
func (sc *scenario) anew(kind string) {
	var rest []*view
	for _, v := range sc.views {
		if v.kind == kind {
			sc.before[kind] = v
			continue
		}
		rest = append(rest, v)
	}
	sc.views = rest
}

// shown are the things of a kind, also those that stand in others.
func (sc *scenario) shown(kind string) []*view {
	out := lists.Where(sc.views, func(v *view) bool { return v.kind == kind })
	in, is := partsOf[kind]
	if !is {
		return out
	}
	for _, whole := range sc.shown(in.kind) {
		list := whole.member(in.path)
		if !list.Is(wire.Array) {
			continue // whoever looks at the whole says so
		}
		for i, n := range list.Items {
			out = append(out, &view{kind: kind, way: whole.way + ", " + in.path + " " + strconv.Itoa(i), answer: whole.answer, node: n, of: whole})
		}
	}
	return out
}

// looked are the things of a kind; none at all decides nothing.
func (sc *scenario) looked(kind string) ([]*view, error) {
	all := sc.shown(kind)
	if len(all) == 0 {
		return nil, engine.Outcome(conformance.Inconclusive, "", "no %s was shown", kind)
	}
	return all, nil
}

// brokenView adds a finding about one look.
func (sc *scenario) brokenView(v *view, member, expected, actual string) {
	sc.broken(fmt.Sprintf("%s (%s): %s %s", v.kind, v.way, member, expected), actual, v.answer)
}

// member goes down to a member, which is written with dots; "." is the whole.
func (v *view) member(path string) *wire.Node {
	if path == "." {
		return v.node
	}
	return jsonvalue.Down(v.node, path)
}

// name is what tells a thing from others of its kind.
func (v *view) name() string {
	for _, member := range []string{"full_name", "service_name", "id", "name"} {
		if n := v.node.Get(member); n.Is(wire.String) {
			return n.Text
		}
	}
	return ""
}
