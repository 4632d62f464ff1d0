package service

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// viewSteps look at answers and at the things that they show, of any kind.
func viewSteps() []engine.Step {
	return []engine.Step{
		step(`^a client calls, one after the other:$`, func(sc *scenario) any { return sc.callsAll }),
		step(`^(?:the|every) answer has the HTTP status (\d+)(?: or (\d+))?$`, func(sc *scenario) any { return sc.answersHaveStatus }),
		step(`^(?:the|every) answer has the status word "([a-z_]+)"$`, func(sc *scenario) any { return sc.answersHaveWord }),
		step(`^every ([a-z ]+) shown has the members:$`, func(sc *scenario) any { return sc.viewsHaveMembers }),
		step(`^every ([a-z ]+) shown has the values:$`, func(sc *scenario) any { return sc.viewsHaveValues }),
		step(`^the ([a-z ]+) "([^"]+)" is shown with the values:$`, func(sc *scenario) any { return sc.namedHasValues }),
		step(`^"([a-z_]+)" of every ([a-z ]+) shown is (later than|the same as) before$`, func(sc *scenario) any { return sc.comparesBefore }),
		step(`^no answer shows "(\{secret[a-z-]*\})"(, but for the URL among the connection details)?$`, func(sc *scenario) any { return sc.hidesSecret }),
	}
}

// callsAll makes the calls of a table, | method | path | body |. What one of
// them makes is deleted at the end.
func (sc *scenario) callsAll(t *engine.Table) error {
	var all []*answer
	for _, row := range engine.Rows(t) {
		var cells []string
		for _, c := range row {
			text, err := sc.spoken(c)
			if err != nil {
				return err
			}
			cells = append(cells, text)
		}
		q := request{method: cells[0], path: cells[1]}
		if len(cells) > 2 && cells[2] != "" {
			q.body = json.RawMessage(cells[2])
		}
		a, err := sc.api(q)
		if err != nil {
			return err
		}
		if q.method == "POST" {
			sc.tidies(a)
		}
		all = append(all, a)
	}
	sc.answered.latest = all
	return nil
}

// tidies has what a POST has made deleted at the end, also where it should have
// made nothing.
func (sc *scenario) tidies(a *answer) {
	id := a.id("data", "id")
	if !a.OK() || a.Status >= 300 || id == 0 {
		return
	}
	path := a.request.path
	sc.words["made"] = strconv.FormatInt(id, 10)
	sc.made(thing{kind: path[strings.LastIndexByte(path, '/')+1:], id: id, name: a.text("data", "name"), path: path + "/" + strconv.FormatInt(id, 10)})
}

// latestOnes are the answers that claims without a kind speak of.
func (sc *scenario) latestOnes() ([]*answer, error) {
	all := sc.answered.latest
	if len(all) == 0 && sc.last != nil {
		all = []*answer{sc.last}
	}
	if len(all) == 0 {
		return nil, engine.Outcome(conformance.Inconclusive, "", "the API was not called")
	}
	return all, nil
}

func (sc *scenario) answersHaveStatus(first, second string) error {
	all, err := sc.latestOnes()
	if err != nil {
		return err
	}
	want := []string{first}
	if second != "" {
		want = append(want, second)
	}
	for _, a := range all {
		if !a.OK() || !slices.Contains(want, strconv.Itoa(a.Status)) {
			sc.broken("HTTP "+strings.Join(want, " or "), a.short(), a)
		}
	}
	return sc.heldBy(len(all), "answer")
}

// spec 4: every answer has a field status.
func (sc *scenario) answersHaveWord(want string) error {
	all, err := sc.latestOnes()
	if err != nil {
		return err
	}
	for _, a := range all {
		if a.text("status") != want {
			sc.broken(`"status":"`+want+`"`, a.short(), a)
		}
	}
	return sc.heldBy(len(all), "answer")
}

// viewsHaveMembers holds every thing of a kind against a table, | member | type |.
func (sc *scenario) viewsHaveMembers(kind string, t *engine.Table) error {
	return sc.eachView(kind, func(v *view) error {
		for _, row := range engine.Rows(t) {
			member, what := row[0], row[1]
			n := v.member(member)
			ok, err := jsonvalue.Fits(what, n)
			if err != nil {
				return err
			}
			if !ok {
				sc.brokenView(v, member, "is "+what, jsonvalue.Raw(n))
			}
		}
		return nil
	})
}

// viewsHaveValues compares with a table, | member | JSON |.
func (sc *scenario) viewsHaveValues(kind string, t *engine.Table) error {
	return sc.eachView(kind, func(v *view) error {
		if err := sc.hasValues(v, t); err != nil {
			return err
		}
		return nil
	})
}

// namedHasValues is the same for the things of one name; they must be there.
func (sc *scenario) namedHasValues(kind, name string, t *engine.Table) error {
	found := 0
	for _, v := range sc.shown(kind) {
		if v.name() != name {
			continue
		}
		found++
		if err := sc.hasValues(v, t); err != nil {
			return err
		}
	}
	if found == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "no %s %q was shown", kind, name)
	}
	return sc.heldBy(found, "look")
}

func (sc *scenario) hasValues(v *view, t *engine.Table) error {
	for _, row := range engine.Rows(t) {
		member := row[0]
		want, err := sc.spoken(row[1])
		if err != nil {
			return err
		}
		if n := v.member(member); !jsonvalue.SameJSON([]byte(jsonvalue.Raw(n)), []byte(want)) {
			sc.brokenView(v, member, "is "+want, jsonvalue.Raw(n))
		}
	}
	return nil
}

// comparesBefore looks at what an update did to a moment, or to a text.
func (sc *scenario) comparesBefore(member, kind, how string) error {
	before := sc.before[kind]
	if before == nil || before.member(member) == nil {
		return engine.Outcome(conformance.Inconclusive, "", "%s of the %s was not shown before", member, kind)
	}
	was := before.member(member)
	return sc.eachView(kind, func(v *view) error {
		now := v.member(member)
		same := now != nil && string(now.Raw) == string(was.Raw)
		if how == "later than" {
			same = momentOf(now).After(momentOf(was))
		}
		if !same {
			sc.brokenView(v, member, "is "+how+" "+jsonvalue.Raw(was), jsonvalue.Raw(now))
		}
		return nil
	})
}

// momentOf is the zero time for what is no time stamp.
func momentOf(n *wire.Node) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, jsonvalue.Text(n))
	return t
}

// hidesSecret looks through all answers of the scenario, in every encoding.
func (sc *scenario) hidesSecret(word, butURL string) error {
	text, err := sc.spoken(word)
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
