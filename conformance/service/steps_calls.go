package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// callSteps make calls of the API, and look at how they were answered; what they
// name in braces is a thing of the scenario. Those about other addresses are for DEP
// (spec 9).
func callSteps() []engine.Step {
	return []engine.Step{
		step(`^a client makes each call with (its own token|the workspace API key|the personal access token|no token):$`, (*scenario).callsEach),
		step(`^a client makes each call with its own token and the Content-Type "([^"]*)":$`, (*scenario).callsTyped),
		step(`^a client calls "GET (/[^"]*)" with each of:$`, (*scenario).callsWithEach),
		step(`^each call is (answered|let in|refused as unauthenticated|refused|turned down)$`, (*scenario).callsWere),
		step(`^each call is answered with (\d{3})(?: or (\d{3}))?$`, (*scenario).callsHaveStatus),
		step(`^the status of each answer is one of "([a-z_, ]+)"$`, (*scenario).statusOneOf),
		step(`^no answer has the text "([^"]+)"$`, (*scenario).noneHas),
		step(`^the list "([^"]+)" shows "([^"]+)" (once|nowhere)$`, (*scenario).listShows),
		step(`^a workspace of its own$`, (*scenario).ownWorkspace),
		step(`^an organization of its own$`, (*scenario).ownOrganization),
		step(`^things of a workspace$`, func(sc *scenario) { sc.aSync(1, "upsert") }),
		step(`^things of an organization$`, (*scenario).organizationThings),

		step(`^a client calls these addresses of the same host with its token:$`, (*scenario).callsHost),
		step(`^none of them answers as the API$`, (*scenario).noneIsAPI),
	}
}

// organizationThings are a workspace, and an open invitation to each: the
// organization and the workspace.
func (sc *scenario) organizationThings() {
	id, _ := sc.newWorkspace(nil)
	sc.says("workspace", id)
	a := sc.must(request{method: "POST", path: "/invitations", as: asOrganization,
		body: map[string]any{"email": sc.email("invited"), "role": "member"}})
	sc.madeBy(a)
	sc.says("invitation", a.id("data", "id"))
	a = sc.must(request{method: "POST", path: below("workspaces", id, "/invitations"), as: asOrganization,
		body: map[string]any{"emails": []string{sc.email("invited")}, "role": "viewer"}})
	sc.says("workspace_invitation", a.id("data", "id"))
}

// madeBy notes what a call has made, when its answer says so: also what was
// made against the rule is deleted.
func (sc *scenario) madeBy(a *answer) {
	id := a.id("data", "id")
	if a.request.method != http.MethodPost || !a.OK() || a.Status >= 300 || id == 0 {
		return
	}
	sc.says("made", id)
	path, _, _ := strings.Cut(a.request.path, "?")
	switch parts := strings.Split(strings.Trim(path, "/"), "/"); {
	case len(parts) == 1:
		sc.made(thing{kind: parts[0], id: id, as: whoseIs(path)})
	case parts[0] == "sources":
		sc.made(thing{kind: parts[2], id: id, path: path + "/" + strconv.FormatInt(id, 10)})
	}
	// An invitation to a workspace goes with it.
}

// calling makes one call of a scenario.
func (sc *scenario) calling(method, path, body string, q request) *answer {
	q.path = sc.filled(path)
	if q.method = method; body != "" {
		q.body = json.RawMessage(sc.filled(body))
	}
	a := sc.api(q)
	sc.madeBy(a)
	if run := a.id("data", "sync_run_id"); run != 0 {
		sc.says("run", run)
	}
	return a
}

func (sc *scenario) callsWithEach(path string, who *engine.Table) {
	var all []*answer
	for _, line := range engine.Rows(who) {
		if sc.pat == "" && isPersonal(line[0]) {
			sc.Note("%s was not tried: there is no personal access token", line[0])
			continue
		}
		all = append(all, sc.calling("GET", path, "", sc.credentials(line[0])))
	}
	sc.batch = all
}

// callsEach makes the calls of a table: method and path, and a body or nothing.
func (sc *scenario) callsEach(who string, calls *engine.Table) {
	if who == "its own token" {
		sc.callsBy(calls, func(*request) {})
		return
	}
	q := sc.credentials(who)
	sc.callsBy(calls, func(other *request) { *other = q })
}

// callsTyped makes calls whose bodies come under another name.
func (sc *scenario) callsTyped(kind string, calls *engine.Table) {
	sc.callsBy(calls, func(q *request) { q.header = http.Header{"Content-Type": {kind}} })
}

// callsBy makes calls with the token that each of them takes, unless sign says
// something else.
func (sc *scenario) callsBy(calls *engine.Table, sign func(*request)) {
	var all []*answer
	for _, line := range engine.Rows(calls) {
		method, path, _ := strings.Cut(line[0], " ")
		q := request{as: whoseIs(path)}
		sign(&q)
		if q.as == asOrganization && q.token == "" {
			sc.needsOrganization()
		}
		body := ""
		if len(line) > 1 {
			body = line[1]
		}
		all = append(all, sc.calling(method, path, body, q))
	}
	sc.batch = all
}

// whoseIs tells which token an endpoint takes (spec 5.1).
func whoseIs(path string) identity {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	first, _, _ = strings.Cut(first, "?")
	if slices.Contains([]string{"workspaces", "invitations", "users"}, first) {
		return asOrganization
	}
	return asWorkspace
}

// callsWere looks at how calls ended: let in is whatever the token was not
// refused for.
func (sc *scenario) callsWere(what string) error {
	return sc.eachAnswer("call", func(a *answer) {
		forbidden := a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden
		as := map[string]bool{
			"answered": a.Status < 300, "let in": !forbidden && a.Status < 500, "refused": forbidden,
			"refused as unauthenticated": a.Status == http.StatusUnauthorized, "turned down": refused(a) && !forbidden,
		}
		if !a.OK() || !as[what] {
			sc.broken(fmt.Sprintf("%s %s is %s", a.request.method, a.request.path, what), a.short(), a)
		}
	})
}

func (sc *scenario) callsHaveStatus(first int, second string) error {
	return sc.eachAnswer("answer", func(a *answer) {
		if !a.OK() || a.Status != first && strconv.Itoa(a.Status) != second {
			sc.broken(fmt.Sprintf("%s %s answers %d %s", a.request.method, a.request.path, first, second), a.short(), a)
		}
	})
}

func (sc *scenario) statusOneOf(words string) error {
	return sc.eachAnswer("answer", func(a *answer) {
		if !slices.Contains(strings.Split(words, ", "), a.text("status")) {
			sc.broken("a status of "+words, a.short(), a)
		}
	})
}

// noneHas looks through all answers; where all calls were refused nothing is decided.
func (sc *scenario) noneHas(what string) error {
	text := sc.filled(what)
	if !slices.ContainsFunc(sc.batch, accepted) {
		undecided("no call was answered well")
	}
	return sc.eachAnswer("answer", func(a *answer) {
		if strings.Contains(string(a.Body), text) {
			sc.broken("an answer without "+text, a.short(), a)
		}
	})
}

// listShows looks for a text in the first hundred of a list: what stands there twice
// is as wrong as what is missing (spec 2.1).
func (sc *scenario) listShows(path, what, how string) error {
	path, text := sc.filled(path), sc.filled(what)
	a := sc.must(request{method: "GET", path: path + "?per_page=100", as: whoseIs(path)})
	found := 0
	for _, one := range jsonvalue.Items(a.at("data")) {
		if strings.Contains(strings.ToLower(string(one.Raw)), strings.ToLower(text)) {
			found++
		}
	}
	if found != map[string]int{"once": 1}[how] {
		sc.broken(fmt.Sprintf("%s shows %s %s", path, text, how), quantity.Count(found, "time"), a)
	}
	return sc.HeldBy("%s listed", quantity.Count(len(jsonvalue.Items(a.at("data"))), "thing"))
}

// callsHost calls paths outside of the base address, and the base address
// beside them: a host that answers nothing at all shows nothing.
func (sc *scenario) callsHost(paths *engine.Table) {
	sc.must(request{method: http.MethodGet, path: "/syncs"})
	sc.batch = lists.Of(engine.Rows(paths), func(line []string) *answer {
		return sc.api(request{method: http.MethodGet, path: line[0], outside: true})
	})
}

// noneIsAPI: a page of the same host may well stand at such an address.
func (sc *scenario) noneIsAPI() error {
	return sc.eachAnswer("address", func(a *answer) {
		if a.OK() && a.Status < http.StatusMultipleChoices && a.at("pagination").Is(wire.Object) {
			sc.broken("no list of syncs at "+a.request.path, a.short(), a)
		}
	})
}
