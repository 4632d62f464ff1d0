package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
)

// callSteps make single calls of the API; what they name in braces is a thing
// of the scenario.
func callSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a client calls "([A-Z]+) (/[^"]*)" with (the workspace API key|the personal access token|no token|an unknown token|a damaged key)$`,
			func(p *play) any { return p.callsWith }),
		step(`^a client makes each call with (the workspace API key|the personal access token|no token|an unknown token):$`,
			func(p *play) any { return p.callsEach }),
		step(`^a client makes each call with its own token:$`,
			func(p *play) any { return func(t *conformance.Table) error { return p.callsEach(itsOwn, t) } }),
		step(`^a client calls "([A-Z]+) (/[^"]*)" with each of:$`, func(p *play) any { return p.callsWithEach }),
		step(`^the call is (answered|refused as unauthenticated|refused)$`, func(p *play) any {
			return func(what string) error { return p.callsWere(what, p.last) }
		}),
		step(`^each call is (answered|let in|refused as unauthenticated|refused)$`, func(p *play) any {
			return func(what string) error { return p.callsWere(what, p.batch...) }
		}),
		step(`^each call is answered with (\d{3})$`, func(p *play) any { return p.callsHaveStatus }),
		step(`^a workspace of its own$`, func(p *play) any { return p.ownWorkspace }),
		step(`^an organization of its own$`, func(p *play) any { return p.ownOrganization }),
		step(`^things of a workspace$`, func(p *play) any { return p.workspaceThings }),
		step(`^things of an organization$`, func(p *play) any { return p.organizationThings }),
	}
}

// nobody is an id that no service has given yet.
const nobody = unknownID

// braces are the places of a path or a body that a scenario fills in.
var braces = regexp.MustCompile(`\{[a-z_]+\}`)

// filled puts the things of the scenario into a text: {sync} is the id of the
// latest sync, {made} that of what a call has made last, {name} and {email} are
// new at each place.
func (p *play) filled(text string) (string, error) {
	var missing string
	out := braces.ReplaceAllStringFunc(text, func(place string) string {
		name := strings.Trim(place, "{}")
		// {this_name} and {this_email} stay the same throughout a scenario.
		if what, same := strings.CutPrefix(name, "this_"); same {
			if _, known := p.named.fixed[name]; !known {
				text, _ := p.filled("{" + what + "}")
				p.named.fix(name, text)
			}
		}
		switch name {
		case "name":
			return p.called("thing")
		case "email":
			return p.email("person")
		case "deep":
			return strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
		case "long":
			return strings.Repeat("long ", 100_000)
		case "digits":
			return strings.Repeat("9", 20_000)
		case "nobody":
			return strconv.Itoa(nobody)
		case "source":
			return strconv.FormatInt(p.source, 10)
		case "destination":
			if p.dest != nil {
				return strconv.FormatInt(p.dest.id, 10)
			}
			missing = name
		case "sync":
			if len(p.syncs) > 0 {
				return strconv.FormatInt(p.latest().id, 10)
			}
			missing = name
		default:
			if text, known := p.named.text(name); known {
				return text
			}
			missing = name
		}
		return place
	})
	if missing != "" {
		return "", conformance.Outcome(conformance.HarnessError, "", "the scenario has no %q for %s", missing, text)
	}
	return out, nil
}

// workspaceThings are a destination, a dataset and a sync between them.
func (p *play) workspaceThings() error {
	if err := p.aSync(1, "upsert"); err != nil {
		return err
	}
	p.named.dataset = some(p.latest().rows.id)
	return nil
}

// organizationThings are a workspace, and an open invitation to each: the
// organization and the workspace.
func (p *play) organizationThings() error {
	id, _, err := p.newWorkspace(nil)
	if err != nil {
		return err
	}
	p.named.workspace = some(id)
	a, err := p.must(request{method: "POST", path: "/invitations", as: asOrganization,
		body: map[string]any{"email": p.email("invited"), "role": "member"}})
	if err != nil {
		return err
	}
	p.named.invitation = some(a.id("data", "id"))
	p.madeBy(a)
	a, err = p.must(request{method: "POST", path: below("workspaces", id, "/invitations"), as: asOrganization,
		body: map[string]any{"emails": []string{p.email("invited")}, "role": "viewer"}})
	p.named.workspaceInvitation = some(a.id("data", "id"))
	return err
}

// madeBy notes what a call has made, when its answer says so: also what was
// made against the rule is deleted.
func (p *play) madeBy(a *answer) {
	id := a.id("data", "id")
	if a.request.method != http.MethodPost || !a.OK() || a.Status >= 300 || id == 0 {
		return
	}
	path, _, _ := strings.Cut(a.request.path, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) == 1 && ofOrganization(path):
		p.made(thing{kind: parts[0], id: id, as: asOrganization})
	case len(parts) == 1:
		p.made(thing{kind: parts[0], id: id})
	case len(parts) == 3 && parts[0] == "sources":
		p.made(thing{kind: parts[2], id: id, path: path + "/" + strconv.FormatInt(id, 10)})
	}
	// An invitation to a workspace goes with it.
}

// calling makes one call of a scenario.
func (p *play) calling(method, path, body string, q request) (*answer, error) {
	var err error
	if q.path, err = p.filled(path); err != nil {
		return nil, err
	}
	if q.method = method; body != "" {
		text, err := p.filled(body)
		if err != nil {
			return nil, err
		}
		q.body = json.RawMessage(text)
	}
	a, err := p.api(q)
	if err != nil {
		return nil, err
	}
	p.madeBy(a)
	if id := a.id("data", "id"); method == http.MethodPost && accepted(a) && id != 0 {
		p.named.made = some(id)
	}
	return a, nil
}

func (p *play) callsWith(method, path, who string) error {
	q, err := p.credentials(who)
	if err != nil {
		return err
	}
	_, err = p.calling(method, path, "", q)
	return err
}

func (p *play) callsWithEach(method, path string, who *conformance.Table) error {
	p.batch = nil
	for _, line := range who.Rows() {
		q, err := p.credentials(line[0])
		if err != nil && p.pat == "" {
			p.Note("%s was not tried: there is no personal access token", line[0])
			continue
		}
		if err != nil {
			return err
		}
		a, err := p.calling(method, path, "", q)
		if err != nil {
			return err
		}
		p.batch = append(p.batch, a)
	}
	return nil
}

// itsOwn lets each call bring the token that its endpoint takes.
const itsOwn = "its own token"

// callsEach makes the calls of a table: method and path, a body or nothing, and
// a word that the answer is to hold, or nothing.
func (p *play) callsEach(who string, calls *conformance.Table) error {
	if who == itsOwn {
		return p.callsBy(calls, func(*request) {})
	}
	q, err := p.credentials(who)
	if err != nil {
		return err
	}
	return p.callsBy(calls, func(other *request) { *other = q })
}

// callsBy makes calls with the token that each of them takes, unless sign says
// something else.
func (p *play) callsBy(calls *conformance.Table, sign func(*request)) error {
	p.batch, p.hints = nil, nil
	for _, line := range calls.Rows() {
		cell := func(i int) string {
			if i < len(line) {
				return line[i]
			}
			return ""
		}
		method, path, _ := strings.Cut(cell(0), " ")
		q := request{as: asWorkspace}
		if ofOrganization(path) {
			q.as = asOrganization
		}
		sign(&q)
		if q.as == asOrganization && q.token == "" {
			if err := p.needsOrganization(); err != nil {
				return err
			}
		}
		a, err := p.calling(method, path, cell(1), q)
		if err != nil {
			return err
		}
		p.batch, p.hints = append(p.batch, a), append(p.hints, cell(2))
	}
	return nil
}

// ofOrganization tells which token an endpoint takes (spec 5.1).
func ofOrganization(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	first, _, _ = strings.Cut(first, "?")
	return slices.Contains([]string{"workspaces", "invitations", "users"}, first)
}

// callsWere looks at how calls ended: let in is whatever the token was not
// refused for.
func (p *play) callsWere(what string, answers ...*answer) error {
	if len(answers) == 0 {
		return conformance.Outcome(conformance.HarnessError, "", "no call was made")
	}
	for _, a := range answers {
		refused := a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden
		var as bool
		switch what {
		case "answered":
			as = a.Status < 300
		case "let in":
			as = !refused && a.Status < 500
		case "refused as unauthenticated":
			as = a.Status == http.StatusUnauthorized
		case "refused":
			as = refused
		}
		if !a.OK() || !as {
			p.broken(fmt.Sprintf("%s %s is %s", a.request.method, a.request.path, what), a.short(), a)
		}
	}
	p.Proof("%d calls, the last with HTTP %d", len(answers), answers[len(answers)-1].Status)
	return p.Held()
}

func (p *play) callsHaveStatus(want int) error {
	for _, a := range p.batch {
		if !a.OK() || a.Status != want {
			p.broken(fmt.Sprintf("%s %s answers %d", a.request.method, a.request.path, want), a.short(), a)
		}
	}
	p.Proof("%d calls", len(p.batch))
	return p.Held()
}
