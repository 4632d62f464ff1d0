package service

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// viewSteps look at answers and at the things that they show, of any kind.
func viewSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a client calls, one after the other:$`, func(p *play) any { return p.callsAll }),
		step(`^(?:the|every) answer has the HTTP status (\d+)(?: or (\d+))?$`, func(p *play) any { return p.answersHaveStatus }),
		step(`^(?:the|every) answer has the status word "([a-z_]+)"$`, func(p *play) any { return p.answersHaveWord }),
		step(`^every ([a-z ]+) shown has the members:$`, func(p *play) any { return p.viewsHaveMembers }),
		step(`^every ([a-z ]+) shown has the values:$`, func(p *play) any { return p.viewsHaveValues }),
		step(`^the ([a-z ]+) "([^"]+)" is shown with the values:$`, func(p *play) any { return p.namedHasValues }),
		step(`^"([a-z_]+)" of every ([a-z ]+) shown is (later than|the same as) before$`, func(p *play) any { return p.comparesBefore }),
		step(`^no answer shows "(\{secret[a-z-]*\})"(, but for the URL among the connection details)?$`, func(p *play) any { return p.hidesSecret }),
	}
}

// callsAll makes the calls of a table, | method | path | body |. What one of
// them makes is deleted at the end.
func (p *play) callsAll(t *conformance.Table) error {
	var all []*answer
	for _, row := range t.Rows() {
		var cells []string
		for _, c := range row {
			text, err := p.spoken(c)
			if err != nil {
				return err
			}
			cells = append(cells, text)
		}
		q := request{method: cells[0], path: cells[1]}
		if len(cells) > 2 && cells[2] != "" {
			q.body = json.RawMessage(cells[2])
		}
		a, err := p.api(q)
		if err != nil {
			return err
		}
		if q.method == "POST" {
			p.tidies(a)
		}
		all = append(all, a)
	}
	p.answered.latest = all
	return nil
}

// tidies has what a POST has made deleted at the end, also where it should have
// made nothing.
func (p *play) tidies(a *answer) {
	id := a.id("data", "id")
	if !a.OK() || a.Status >= 300 || id == 0 {
		return
	}
	path := a.request.path
	p.words["made"] = strconv.FormatInt(id, 10)
	p.made(thing{kind: path[strings.LastIndexByte(path, '/')+1:], id: id, name: a.text("data", "name"), path: path + "/" + strconv.FormatInt(id, 10)})
}

// latestOnes are the answers that claims without a kind speak of.
func (p *play) latestOnes() ([]*answer, error) {
	all := p.answered.latest
	if len(all) == 0 && p.last != nil {
		all = []*answer{p.last}
	}
	if len(all) == 0 {
		return nil, conformance.Outcome(conformance.Inconclusive, "", "the API was not called")
	}
	return all, nil
}

func (p *play) answersHaveStatus(first, second string) error {
	all, err := p.latestOnes()
	if err != nil {
		return err
	}
	want := []string{first}
	if second != "" {
		want = append(want, second)
	}
	for _, a := range all {
		if !a.OK() || !slices.Contains(want, strconv.Itoa(a.Status)) {
			p.broken("HTTP "+strings.Join(want, " or "), a.short(), a)
		}
	}
	p.Proof("%d answers", len(all))
	return p.Held()
}

// spec 4: every answer has a field status.
func (p *play) answersHaveWord(want string) error {
	all, err := p.latestOnes()
	if err != nil {
		return err
	}
	for _, a := range all {
		if a.text("status") != want {
			p.broken(`"status":"`+want+`"`, a.short(), a)
		}
	}
	p.Proof("%d answers", len(all))
	return p.Held()
}

// viewsHaveMembers holds every thing of a kind against a table, | member | type |.
func (p *play) viewsHaveMembers(kind string, t *conformance.Table) error {
	all, err := p.looked(kind)
	if err != nil {
		return err
	}
	for _, v := range all {
		for _, row := range t.Rows() {
			member, what := row[0], row[1]
			n := v.member(member)
			ok, err := fits(what, n)
			if err != nil {
				return err
			}
			if !ok {
				p.brokenView(v, member, "is "+what, rawOf(n))
			}
		}
	}
	p.Proof("%d looks", len(all))
	return p.Held()
}

// viewsHaveValues compares with a table, | member | JSON |.
func (p *play) viewsHaveValues(kind string, t *conformance.Table) error {
	all, err := p.looked(kind)
	if err != nil {
		return err
	}
	for _, v := range all {
		if err := p.hasValues(v, t); err != nil {
			return err
		}
	}
	p.Proof("%d looks", len(all))
	return p.Held()
}

// namedHasValues is the same for the things of one name; they must be there.
func (p *play) namedHasValues(kind, name string, t *conformance.Table) error {
	found := 0
	for _, v := range p.shown(kind) {
		if v.name() != name {
			continue
		}
		found++
		if err := p.hasValues(v, t); err != nil {
			return err
		}
	}
	if found == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no %s %q was shown", kind, name)
	}
	p.Proof("%d looks", found)
	return p.Held()
}

func (p *play) hasValues(v *view, t *conformance.Table) error {
	for _, row := range t.Rows() {
		member := row[0]
		want, err := p.spoken(row[1])
		if err != nil {
			return err
		}
		if n := v.member(member); !sameJSON([]byte(rawOf(n)), []byte(want)) {
			p.brokenView(v, member, "is "+want, rawOf(n))
		}
	}
	return nil
}

// comparesBefore looks at what an update did to a moment, or to a text.
func (p *play) comparesBefore(member, kind, how string) error {
	all, err := p.looked(kind)
	if err != nil {
		return err
	}
	before := p.before[kind]
	if before == nil || before.member(member) == nil {
		return conformance.Outcome(conformance.Inconclusive, "", "%s of the %s was not shown before", member, kind)
	}
	was := before.member(member)
	for _, v := range all {
		now := v.member(member)
		same := now != nil && string(now.Raw) == string(was.Raw)
		if how == "later than" {
			same = momentOf(now).After(momentOf(was))
		}
		if !same {
			p.brokenView(v, member, "is "+how+" "+rawOf(was), rawOf(now))
		}
	}
	p.Proof("%d looks", len(all))
	return p.Held()
}

// momentOf is the zero time for what is no time stamp.
func momentOf(n *wire.Node) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, stringOf(n))
	return t
}

// hidesSecret looks through all answers of the scenario, in every encoding.
func (p *play) hidesSecret(word, butURL string) error {
	text, err := p.spoken(word)
	if err != nil {
		return err
	}
	look := wire.NewRedactor()
	look.Add(text, word)
	for _, a := range p.answers {
		body := a.Body
		if butURL != "" {
			body = withoutURL(body)
		}
		if len(look.Leaks(body)) > 0 {
			p.broken("an answer without "+word, a.short(), a)
		}
	}
	if len(p.answers) == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "the API was not called")
	}
	p.Proof("%d answers", len(p.answers))
	return p.Held()
}

// withoutURL leaves out where the URL of a connection is published to stand.
func withoutURL(body []byte) []byte {
	whole, err := decodeAny(body)
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
	return raw(whole)
}
