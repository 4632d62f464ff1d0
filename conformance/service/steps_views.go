package service

import (
	"fmt"
	"reflect"
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
func viewSteps() []engine.Step {
	return []engine.Step{
		step(`^(data of each answer|every [a-z ]+ shown) has the (members|values):$`, (*scenario).viewsHave),
		step(`^(\d+) ([a-z ]+)s are shown$`, (*scenario).soManyShown),
		step(`^the ([a-z ]+) "([^"]+)" is shown with the values:$`, (*scenario).namedHasValues),
		step(`^"([a-z_]+)" of every ([a-z ]+) shown is (later than|the same as) before$`, (*scenario).comparesBefore),
		step(`^no answer shows "(\{secret[a-z_]*\})"(, but for the URL among the connection details)?$`, (*scenario).hidesSecret),
	}
}

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
func (sc *scenario) looked(kind string) []*view {
	all := sc.shown(kind)
	if len(all) == 0 {
		undecided("no %s was shown", kind)
	}
	return all
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

// data are the things of the latest calls, which have to be answered well.
func (sc *scenario) data() []*view {
	var out []*view
	for _, a := range sc.batch {
		if !accepted(a) || a.at("data") == nil {
			sc.broken(fmt.Sprintf("%s %s is answered with data", a.request.method, a.request.path), a.short(), a)
			continue
		}
		things := []*wire.Node{a.at("data")}
		if things[0].Is(wire.Array) {
			things = things[0].Items
		}
		for _, one := range things {
			out = append(out, &view{kind: "data", way: a.request.method + " " + a.request.path, answer: a, node: one})
		}
	}
	stop(sc.Held())
	if len(out) == 0 {
		undecided("no answer has data")
	}
	return out
}

// viewsHave holds things against a table, | member | type | or | member | JSON |.
func (sc *scenario) viewsHave(which, what string, t *engine.Table) error {
	kind, _ := strings.CutPrefix(strings.TrimSuffix(which, " shown"), "every ")
	see, has := func() []*view { return sc.looked(kind) }, sc.hasShapes
	if kind == which {
		see = sc.data
	}
	if what == "values" {
		has = sc.hasValues
	}
	all := see()
	for _, v := range all {
		has(v, t)
	}
	return sc.heldBy(len(all), "look")
}

func (sc *scenario) hasShapes(v *view, t *engine.Table) {
	for _, row := range engine.Rows(t) {
		n := v.member(row[0])
		ok, err := jsonvalue.Fits(row[1], n)
		stop(err)
		if !ok {
			sc.brokenView(v, row[0], "is "+row[1], jsonvalue.Raw(n))
		}
	}
}

// hasValues compares with a table. Lists may have another order, and what they hold more
// members; the names of types have been seen with a capital letter.
func (sc *scenario) hasValues(v *view, t *engine.Table) {
	for _, row := range engine.Rows(t) {
		want := sc.value(row[1])
		n := v.member(row[0])
		got := jsonvalue.Decode(n)
		same := n != nil && reflect.DeepEqual(want, got)
		if _, list := want.([]any); list {
			same = jsonvalue.Missing(want, got, row[0]) == ""
		}
		if !same && (row[0] != "type" || !strings.EqualFold(fmt.Sprint(want), fmt.Sprint(got))) {
			sc.brokenView(v, row[0]+" of "+v.name(), "is "+jsonvalue.Brief(want), jsonvalue.Raw(n))
		}
	}
}

// soManyShown counts the names of the things of a kind.
func (sc *scenario) soManyShown(want int, kind string) error {
	all := sc.looked(kind)
	names := map[string]bool{}
	for _, v := range all {
		names[v.name()] = true
	}
	if len(names) != want {
		sc.broken(quantity.Count(want, kind), quantity.Count(len(names), kind), all[0].answer)
	}
	return sc.heldBy(len(all), "look")
}

// namedHasValues is for the things of one name; they must be there.
func (sc *scenario) namedHasValues(kind, name string, t *engine.Table) error {
	all := sc.looked(kind)
	found := 0
	for _, v := range all {
		if v.name() != name {
			continue
		}
		found++
		sc.hasValues(v, t)
	}
	if found == 0 {
		sc.brokenView(all[0], fmt.Sprintf("%q", name), "is shown", "it is not")
	}
	return sc.heldBy(found, "look")
}

// comparesBefore looks at what an update did to a moment, or to a text.
func (sc *scenario) comparesBefore(member, kind, how string) error {
	before := sc.before[kind]
	if before == nil || before.member(member) == nil {
		undecided("%s of the %s was not shown before", member, kind)
	}
	was := before.member(member)
	all := sc.looked(kind)
	for _, v := range all {
		now := v.member(member)
		same := now != nil && string(now.Raw) == string(was.Raw)
		if how == "later than" {
			same = momentOf(now).After(momentOf(was))
		}
		if !same {
			sc.brokenView(v, member, "is "+how+" "+jsonvalue.Raw(was), jsonvalue.Raw(now))
		}
	}
	return sc.heldBy(len(all), "look")
}

// momentOf is the zero time for what is no time stamp.
func momentOf(n *wire.Node) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, jsonvalue.Text(n))
	return t
}

// hidesSecret looks through all answers of the scenario, in every encoding.
func (sc *scenario) hidesSecret(word, butURL string) error {
	text := sc.filled(word)
	look := wire.NewRedactor()
	look.Add(text, word)
	for _, a := range sc.answers {
		body := a.Body
		if butURL != "" {
			body = withoutURL(body)
		}
		if len(look.Leaks(body)) > 0 {
			sc.broken("an answer without "+word, a.short(), a)
		}
	}
	if len(sc.answers) == 0 {
		undecided("the API was not called")
	}
	return sc.heldBy(len(sc.answers), "answer")
}

// withoutURL leaves out where the URL of a connection is published to stand.
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
