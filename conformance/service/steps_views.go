package service

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// viewSteps look at the things that answers show, of any kind.
var viewSteps = []step{
	// The rows are | member | type | or | member | JSON |.
	{`^(data of each answer|every [a-z ]+ shown) has the (members|values):$`, func(sc *scenario, which, what string, t *engine.Table) error {
		has := map[string]func(*view, *engine.Table){"members": sc.hasShapes, "values": sc.hasValues}[what]
		all := sc.data
		if kind, is := strings.CutPrefix(strings.TrimSuffix(which, " shown"), "every "); is {
			all = func() []*view { return sc.looked(kind) }
		}
		return each(sc, "look", all(), func(v *view) { has(v, t) })
	}},
	{`^(\d+) ([a-z ]+)s are shown$`, func(sc *scenario, want int, kind string) error {
		all := sc.looked(kind)
		names := different(lists.Of(all, (*view).name))
		sc.expect(names == want, quantity.Count(want, kind), quantity.Count(names, kind), all[0].answer)
		return sc.heldBy(len(all), "look")
	}},
	{`^the ([a-z ]+) "([^"]+)" is shown with the values:$`, func(sc *scenario, kind, name string, t *engine.Table) error {
		all := sc.looked(kind)
		named := lists.Where(all, func(v *view) bool { return v.name() == name })
		sc.expectView(len(named) > 0, all[0], fmt.Sprintf("%q", name), "is shown", "it is not")
		return each(sc, "look", named, func(v *view) { sc.hasValues(v, t) })
	}},
	// What an update did to a moment, or to a text.
	{`^"([a-z_]+)" of every ([a-z ]+) shown is (later than|the same as) before$`, func(sc *scenario, member, kind, how string) error {
		before := sc.before[kind]
		if before == nil || before.member(member) == nil {
			undecided("%s of the %s was not shown before", member, kind)
		}
		was := before.member(member)
		return each(sc, "look", sc.looked(kind), func(v *view) {
			now := v.member(member)
			same := now != nil && string(now.Raw) == string(was.Raw)
			if how == "later than" {
				same = momentOf(now).After(momentOf(was))
			}
			sc.expectView(same, v, member, "is "+how+" "+jsonvalue.Raw(was), jsonvalue.Raw(now))
		})
	}},
	{`^"([a-z_=]+)" of every ([a-z ]+) shown is its "([a-z_]+)"$`, func(sc *scenario, member, kind, other string) error {
		return each(sc, "look", sc.looked(kind), func(v *view) {
			a, b := v.node.Get(member), v.node.Get(other)
			sc.expectView(a != nil && jsonvalue.Raw(a) == jsonvalue.Raw(b), v, member, "is "+jsonvalue.Raw(b), jsonvalue.Raw(a))
		})
	}},
	// A secret is looked for in all answers of the scenario, in every encoding.
	{`^no answer shows "(\{secret[a-z_]*\})"(, but for the URL among the connection details)?$`, func(sc *scenario, word, butURL string) error {
		look := wire.NewRedactor()
		look.Add(sc.filled(word), word)
		mustSee(len(sc.answers), "the API was not called")
		return each(sc, "answer", sc.answers, func(a *answer) {
			body := a.Body
			if butURL != "" {
				body = withoutURL(body)
			}
			sc.expect(len(look.Leaks(body)) == 0, "an answer without "+word, a.short(), a)
		})
	}},
}

// view is one thing as an answer of the API shows it. All ways to look at it must agree.
type view struct {
	kind   string // "destination", "source type", …
	way    string // how it was looked at: "creation", "fetch", "list", …
	answer *answer
	node   *wire.Node
	of     *view // the whole that contains it
}

// partsOf holds which kinds are parts of others, and where.
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

// anew forgets how things of a kind looked, for they are about to change, and keeps the last look to compare with.
func (sc *scenario) anew(kind string) {
	sc.views = slices.DeleteFunc(sc.views, func(v *view) bool {
		if v.kind == kind {
			sc.before[kind] = v
		}
		return v.kind == kind
	})
}

// shown are the things of a kind, also those that are parts of others.
func (sc *scenario) shown(kind string) []*view {
	out := lists.Where(sc.views, func(v *view) bool { return v.kind == kind })
	in, is := partsOf[kind]
	if !is {
		return out
	}
	for _, whole := range sc.shown(in.kind) {
		// A claim about the whole reports when it has no such list.
		for i, n := range jsonvalue.Items(whole.member(in.path)) {
			out = append(out, &view{kind: kind, way: whole.way + ", " + in.path + " " + strconv.Itoa(i), answer: whole.answer, node: n, of: whole})
		}
	}
	return out
}

// looked are the things of a kind; none at all decides nothing.
func (sc *scenario) looked(kind string) []*view {
	all := sc.shown(kind)
	mustSee(len(all), "no %s was shown", kind)
	return all
}

// expectView adds a finding about one look unless something is so.
func (sc *scenario) expectView(is bool, v *view, member, expected, actual string) {
	sc.expect(is, fmt.Sprintf("%s (%s): %s %s", v.kind, v.way, member, expected), actual, v.answer)
}

// member goes down to a member, which is written with dots; "." is the whole.
func (v *view) member(path string) *wire.Node {
	if path == "." {
		return v.node
	}
	return jsonvalue.Down(v.node, path)
}

// name is what distinguishes a thing from others of its kind.
func (v *view) name() string {
	for _, member := range []string{"full_name", "service_name", "id", "name"} {
		if n := v.node.Get(member); n.Is(wire.String) {
			return n.Text
		}
	}
	return ""
}

// data are the things of the latest calls, which have to be answered well.
func (sc *scenario) data() []*view {
	var out []*view
	for _, a := range sc.batch {
		if !accepted(a) || a.at("data") == nil {
			sc.broken(a.request.String()+" is answered with data", a.short(), a)
			continue
		}
		things := []*wire.Node{a.at("data")}
		if things[0].Is(wire.Array) {
			things = things[0].Items
		}
		for _, one := range things {
			out = append(out, &view{kind: "data", way: a.request.String(), answer: a, node: one})
		}
	}
	stop(sc.Held())
	mustSee(len(out), "no answer has data")
	return out
}

func (sc *scenario) hasShapes(v *view, t *engine.Table) {
	for _, row := range engine.Rows(t) {
		n := v.member(row[0])
		ok, err := jsonvalue.Fits(row[1], n)
		stop(err)
		sc.expectView(ok, v, row[0], "is "+row[1], jsonvalue.Raw(n))
	}
}

// hasValues compares with a table. Lists may have another order, their objects more members, types a capital letter.
func (sc *scenario) hasValues(v *view, t *engine.Table) {
	for _, row := range engine.Rows(t) {
		want := sc.value(row[1])
		n := v.member(row[0])
		got := jsonvalue.Decode(n)
		same := n != nil && reflect.DeepEqual(want, got)
		if _, list := want.([]any); list {
			same = jsonvalue.Missing(want, got, row[0]) == ""
		}
		same = same || row[0] == "type" && strings.EqualFold(fmt.Sprint(want), fmt.Sprint(got))
		sc.expectView(same, v, row[0]+" of "+v.name(), "is "+jsonvalue.Brief(want), jsonvalue.Raw(n))
	}
}

// momentOf is the zero time for a value that is no time stamp.
func momentOf(n *wire.Node) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, jsonvalue.Text(n))
	return t
}

// withoutURL leaves out the places where the URL of a connection is published.
func withoutURL(body []byte) []byte {
	whole, err := jsonvalue.DecodeAny(body)
	if err != nil {
		return body
	}
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if details, is := v["connection_details"].(map[string]any); is {
				delete(details, "webhook_url")
			}
			for _, member := range v {
				strip(member)
			}
		case []any:
			for _, one := range v {
				strip(one)
			}
		}
	}
	strip(whole)
	return jsonvalue.Encode(whole)
}
