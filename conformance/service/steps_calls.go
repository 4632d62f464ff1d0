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
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/internal/quantity"
)

// callSteps make single calls of the API; what they name in braces is a thing
// of the scenario.
func callSteps() []engine.Step {
	return []engine.Step{
		step(`^a client calls "([A-Z]+) (/[^"]*)" with (the workspace API key|the personal access token|no token|an unknown token|a damaged key)$`,
			func(sc *scenario) any { return sc.callsWith }),
		step(`^a client makes each call with (the workspace API key|the personal access token|no token|an unknown token):$`,
			func(sc *scenario) any { return sc.callsEach }),
		step(`^a client makes each call with its own token:$`,
			func(sc *scenario) any { return func(t *engine.Table) error { return sc.callsEach(itsOwn, t) } }),
		step(`^a client calls "([A-Z]+) (/[^"]*)" with each of:$`, func(sc *scenario) any { return sc.callsWithEach }),
		step(`^the call is (answered|refused as unauthenticated|refused)$`, func(sc *scenario) any {
			return func(what string) error { return sc.callsWere(what, sc.last) }
		}),
		step(`^each call is (answered|let in|refused as unauthenticated|refused)$`, func(sc *scenario) any {
			return func(what string) error { return sc.callsWere(what, sc.batch...) }
		}),
		step(`^each call is answered with (\d{3})$`, func(sc *scenario) any { return sc.callsHaveStatus }),
		step(`^a workspace of its own$`, func(sc *scenario) any { return sc.ownWorkspace }),
		step(`^an organization of its own$`, func(sc *scenario) any { return sc.ownOrganization }),
		step(`^things of a workspace$`, func(sc *scenario) any { return sc.workspaceThings }),
		step(`^things of an organization$`, func(sc *scenario) any { return sc.organizationThings }),
	}
}

// braces are the places of a path or a body that a scenario fills in.
var braces = regexp.MustCompile(`\{[a-z_]+\}`)

// filled puts the things of the scenario into a text: {sync} is the id of the
// latest sync, {made} that of what a call has made last, {name} and {email} are
// new at each place.
func (sc *scenario) filled(text string) (string, error) {
	var missing string
	out := braces.ReplaceAllStringFunc(text, func(place string) string {
		name := strings.Trim(place, "{}")
		// {this_name} and {this_email} stay the same throughout a scenario.
		if what, same := strings.CutPrefix(name, "this_"); same {
			if _, known := sc.named.fixed[name]; !known {
				text, _ := sc.filled("{" + what + "}")
				sc.named.fix(name, text)
			}
		}
		switch name {
		case "name":
			return sc.called("thing")
		case "email":
			return sc.email("person")
		case "deep":
			return strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
		case "long":
			return strings.Repeat("long ", 100_000)
		case "digits":
			return strings.Repeat("9", 20_000)
		case "nobody":
			return strconv.Itoa(unknownID)
		case "source":
			return strconv.FormatInt(sc.source, 10)
		case "destination":
			if sc.dest != nil {
				return strconv.FormatInt(sc.dest.id, 10)
			}
			missing = name
		case "sync":
			if len(sc.syncs) > 0 {
				return strconv.FormatInt(sc.latest().id, 10)
			}
			missing = name
		default:
			if text, known := sc.named.text(name); known {
				return text
			}
			missing = name
		}
		return place
	})
	if missing != "" {
		return "", engine.Outcome(conformance.HarnessError, "", "the scenario has no %q for %s", missing, text)
	}
	return out, nil
}

// workspaceThings are a destination, a dataset and a sync between them.
func (sc *scenario) workspaceThings() error {
	if err := sc.aSync(1, "upsert"); err != nil {
		return err
	}
	sc.named.dataset = some(sc.latest().rows.id)
	return nil
}

// organizationThings are a workspace, and an open invitation to each: the
// organization and the workspace.
func (sc *scenario) organizationThings() error {
	id, _, err := sc.newWorkspace(nil)
	if err != nil {
		return err
	}
	sc.named.workspace = some(id)
	a, err := sc.must(request{method: "POST", path: "/invitations", as: asOrganization,
		body: map[string]any{"email": sc.email("invited"), "role": "member"}})
	if err != nil {
		return err
	}
	sc.named.invitation = some(a.id("data", "id"))
	sc.madeBy(a)
	a, err = sc.must(request{method: "POST", path: below("workspaces", id, "/invitations"), as: asOrganization,
		body: map[string]any{"emails": []string{sc.email("invited")}, "role": "viewer"}})
	sc.named.workspaceInvitation = some(a.id("data", "id"))
	return err
}

// madeBy notes what a call has made, when its answer says so: also what was
// made against the rule is deleted.
func (sc *scenario) madeBy(a *answer) {
	id := a.id("data", "id")
	if a.request.method != http.MethodPost || !a.OK() || a.Status >= 300 || id == 0 {
		return
	}
	path, _, _ := strings.Cut(a.request.path, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) == 1 && ofOrganization(path):
		sc.made(thing{kind: parts[0], id: id, as: asOrganization})
	case len(parts) == 1:
		sc.made(thing{kind: parts[0], id: id})
	case len(parts) == 3 && parts[0] == "sources":
		sc.made(thing{kind: parts[2], id: id, path: path + "/" + strconv.FormatInt(id, 10)})
	}
	// An invitation to a workspace goes with it.
}

// calling makes one call of a scenario.
func (sc *scenario) calling(method, path, body string, q request) (*answer, error) {
	var err error
	if q.path, err = sc.filled(path); err != nil {
		return nil, err
	}
	if q.method = method; body != "" {
		text, err := sc.filled(body)
		if err != nil {
			return nil, err
		}
		q.body = json.RawMessage(text)
	}
	a, err := sc.api(q)
	if err != nil {
		return nil, err
	}
	sc.madeBy(a)
	if id := a.id("data", "id"); method == http.MethodPost && accepted(a) && id != 0 {
		sc.named.made = some(id)
	}
	return a, nil
}

func (sc *scenario) callsWith(method, path, who string) error {
	q, err := sc.credentials(who)
	if err != nil {
		return err
	}
	_, err = sc.calling(method, path, "", q)
	return err
}

func (sc *scenario) callsWithEach(method, path string, who *engine.Table) error {
	sc.batch = nil
	for _, line := range engine.Rows(who) {
		q, err := sc.credentials(line[0])
		if err != nil && sc.pat == "" {
			sc.Note("%s was not tried: there is no personal access token", line[0])
			continue
		}
		if err != nil {
			return err
		}
		a, err := sc.calling(method, path, "", q)
		if err != nil {
			return err
		}
		sc.batch = append(sc.batch, a)
	}
	return nil
}

// itsOwn lets each call bring the token that its endpoint takes.
const itsOwn = "its own token"

// callsEach makes the calls of a table: method and path, a body or nothing, and
// a word that the answer is to hold, or nothing.
func (sc *scenario) callsEach(who string, calls *engine.Table) error {
	if who == itsOwn {
		return sc.callsBy(calls, func(*request) {})
	}
	q, err := sc.credentials(who)
	if err != nil {
		return err
	}
	return sc.callsBy(calls, func(other *request) { *other = q })
}

// callsBy makes calls with the token that each of them takes, unless sign says
// something else.
func (sc *scenario) callsBy(calls *engine.Table, sign func(*request)) error {
	sc.batch, sc.hints = nil, nil
	for _, line := range engine.Rows(calls) {
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
			if err := sc.needsOrganization(); err != nil {
				return err
			}
		}
		a, err := sc.calling(method, path, cell(1), q)
		if err != nil {
			return err
		}
		sc.batch, sc.hints = append(sc.batch, a), append(sc.hints, cell(2))
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
func (sc *scenario) callsWere(what string, answers ...*answer) error {
	if len(answers) == 0 {
		return engine.Outcome(conformance.HarnessError, "", "no call was made")
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
			sc.broken(fmt.Sprintf("%s %s is %s", a.request.method, a.request.path, what), a.short(), a)
		}
	}
	return sc.HeldBy("%s, the last with HTTP %d", quantity.Count(len(answers), "call"), answers[len(answers)-1].Status)
}

func (sc *scenario) callsHaveStatus(want int) error {
	return sc.eachAnswer("call", func(a *answer) {
		if !a.OK() || a.Status != want {
			sc.broken(fmt.Sprintf("%s %s answers %d", a.request.method, a.request.path, want), a.short(), a)
		}
	})
}
