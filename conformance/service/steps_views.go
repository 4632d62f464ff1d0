package service

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
)

// viewSteps look at the things that answers show, of any kind.
func viewSteps() []engine.Step {
	return []engine.Step{
		step(`^(data of each answer|every [a-z ]+ shown) has the (members|values):$`, func(sc *scenario) any { return sc.viewsHave }),
		step(`^(\d+) ([a-z ]+)s are shown$`, func(sc *scenario) any { return sc.soManyShown }),
		step(`^the ([a-z ]+) "([^"]+)" is shown with the values:$`, func(sc *scenario) any { return sc.namedHasValues }),
		step(`^"([a-z_]+)" of every ([a-z ]+) shown is (later than|the same as) before$`, func(sc *scenario) any { return sc.comparesBefore }),
		step(`^no answer shows "(\{secret[a-z_]*\})"(, but for the URL among the connection details)?$`, func(sc *scenario) any { return sc.hidesSecret }),
	}
}

// data are the things of the latest calls, which have to be answered well.
func (sc *scenario) data() ([]*view, error) {
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
	if err := sc.Held(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, engine.Outcome(conformance.Inconclusive, "", "no answer has data")
	}
	return out, nil
}

// viewsHave holds things against a table, | member | type | or | member | JSON |.
func (sc *scenario) viewsHave(which, what string, t *engine.Table) error {
	kind, _ := strings.CutPrefix(strings.TrimSuffix(which, " shown"), "every ")
	all, err := sc.looked(kind)
	if kind == which {
		all, err = sc.data()
	}
	if err != nil {
		return err
	}
	for _, v := range all {
		if what == "values" {
			err = sc.hasValues(v, t)
		} else {
			err = sc.hasShapes(v, t)
		}
		if err != nil {
			return err
		}
	}
	return sc.heldBy(len(all), "look")
}

func (sc *scenario) hasShapes(v *view, t *engine.Table) error {
	for _, row := range engine.Rows(t) {
		n := v.member(row[0])
		ok, err := jsonvalue.Fits(row[1], n)
		if err != nil {
			return err
		}
		if !ok {
			sc.brokenView(v, row[0], "is "+row[1], jsonvalue.Raw(n))
		}
	}
	return nil
}

// hasValues compares with a table. Lists may have another order, and what they hold more
// members; the names of types have been seen with a capital letter.
func (sc *scenario) hasValues(v *view, t *engine.Table) error {
	for _, row := range engine.Rows(t) {
		want, err := sc.value(row[1])
		if err != nil {
			return err
		}
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
	return nil
}

// soManyShown counts the names of the things of a kind.
func (sc *scenario) soManyShown(want int, kind string) error {
	all, err := sc.looked(kind)
	if err != nil {
		return err
	}
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
	all, err := sc.looked(kind)
	if err != nil {
		return err
	}
	found := 0
	for _, v := range all {
		if v.name() != name {
			continue
		}
		found++
		if err := sc.hasValues(v, t); err != nil {
			return err
		}
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
		return engine.Outcome(conformance.Inconclusive, "", "%s of the %s was not shown before", member, kind)
	}
	was := before.member(member)
	all, err := sc.looked(kind)
	if err != nil {
		return err
	}
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
	text, err := sc.filled(word)
	if err != nil {
		return err
	}
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
		return engine.Outcome(conformance.Inconclusive, "", "the API was not called")
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
