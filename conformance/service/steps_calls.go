package service

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// callSteps make calls of the API, with words in braces for things of the scenario, and look at the answers: for all areas,
// FLT, the form of answers and refused calls (spec 2, 4, 7.1), and DEP, other addresses (spec 9).
var callSteps = []step{
	{`^a client makes each call with ((?:its own|no) token|the workspace API key|the personal access token)(?: and the Content-Type "([^"]*)")?:$`,
		(*scenario).callsEach},
	{`^a client calls "GET (/[^"]*)" with each of:$`, func(sc *scenario, path string, who *engine.Table) {
		var all []*answer
		for _, line := range engine.Rows(who) {
			if sc.pat == "" && isPersonal(line[0]) {
				sc.Note("%s was not tried: there is no personal access token", line[0])
				continue
			}
			all = append(all, sc.calling("GET", path, "", sc.credentials(line[0])))
		}
		sc.batch = all
	}},
	// A host that answers nothing at all, not even at the base address, shows nothing.
	{`^a client calls these addresses of the same host with its token:$`, func(sc *scenario, paths *engine.Table) {
		sc.get("/syncs")
		sc.batch = lists.Of(engine.Rows(paths), func(line []string) *answer {
			return sc.api(request{method: http.MethodGet, path: line[0], outside: true})
		})
	}},
	{`^what these calls show:$`, func(sc *scenario, calls *engine.Table) {
		sc.callsEach(ownToken, "", calls)
		sc.repeated, sc.firstAnswered = calls, sc.batch
		for _, a := range sc.batch {
			if !accepted(a) {
				sc.undecidedBy(a)
			}
		}
	}},
	{`^a workspace of its own$`, (*scenario).ownWorkspace},
	{`^an organization of its own$`, (*scenario).ownOrganization},
	{`^things of a workspace$`, func(sc *scenario) { sc.aSync(1, "upsert") }},
	// They are a workspace, and an open invitation to each: the organization and the workspace.
	{`^things of an organization$`, func(sc *scenario) {
		id, _ := sc.newWorkspace(nil)
		sc.says("workspace", id)
		a := sc.must(request{method: "POST", path: "/invitations", as: asOrganization,
			body: map[string]any{"email": sc.email("invited"), "role": "member"}})
		sc.madeBy(a)
		sc.says("invitation", a.id("data", "id"))
		a = sc.must(request{method: "POST", path: below("workspaces", id, "/invitations"), as: asOrganization,
			body: map[string]any{"emails": []string{sc.email("invited")}, "role": "viewer"}})
		sc.says("workspace_invitation", a.id("data", "id"))
	}},

	{`^each (call|answer) (is (?:answered|let in|refused(?: as unauthenticated)?|turned down)|has a status|says what is wrong in "message")$`,
		func(sc *scenario, noun, what string) error {
			return sc.eachAnswer(noun, func(a *answer) {
				sc.expect(a.OK() && answerClaims[what](a), fmt.Sprintf("%s %s", a.request, what), a.short(), a)
			})
		}},
	{`^each call is answered with (\d{3})(?: or (\d{3}))?$`, func(sc *scenario, first int, second string) error {
		return sc.eachAnswer("answer", func(a *answer) {
			is := a.Status == first || strconv.Itoa(a.Status) == second
			sc.expect(a.OK() && is, fmt.Sprintf("%s answers %d %s", a.request, first, second), a.short(), a)
		})
	}},
	{`^the status of each answer is one of "([a-z_, ]+)"$`, func(sc *scenario, words string) error {
		return sc.eachAnswer("answer", func(a *answer) {
			sc.expect(slices.Contains(jsonvalue.Words(words), a.text("status")), "a status of "+words, a.short(), a)
		})
	}},
	{`^each answer is JSON, and says so$`, func(sc *scenario) error {
		return sc.eachAnswer("answer", func(a *answer) {
			sc.expect(a.OK() && a.json != nil, "an answer in JSON", a.short(), a)
			kind, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
			if a.json != nil && (err != nil || kind != "application/json") {
				sc.broken("Content-Type: application/json", fmt.Sprintf("%s: Content-Type %q", a.request, a.Header.Get("Content-Type")), a)
			}
		})
	}},
	// Where all calls were refused nothing is decided.
	{`^no answer has the text "([^"]+)"$`, func(sc *scenario, what string) error {
		text := sc.filled(what)
		if !slices.ContainsFunc(sc.batch, accepted) {
			undecided("no call was answered well")
		}
		return sc.eachAnswer("answer", func(a *answer) {
			sc.expect(!strings.Contains(string(a.Body), text), "an answer without "+text, a.short(), a)
		})
	}},
	// A page of the same host may well have such an address.
	{`^none of them answers as the API$`, func(sc *scenario) error {
		return sc.eachAnswer("address", func(a *answer) {
			sc.expect(!a.OK() || a.Status >= 300 || !a.at("pagination").Is(wire.Object), "no list of syncs at "+a.request.path, a.short(), a)
		})
	}},
	{`^these calls show the same as before$`, func(sc *scenario) error {
		if sc.repeated == nil {
			return engine.Outcome(conformance.HarnessError, "", "no calls were made to compare with")
		}
		sc.callsEach(ownToken, "", sc.repeated)
		for i, a := range sc.batch {
			before, now := jsonvalue.Raw(sc.firstAnswered[i].at("data")), jsonvalue.Raw(a.at("data"))
			sc.expect(before == now, a.request.path+" shows "+foreign.Clip(before, longest), foreign.Clip(now, longest), a)
		}
		return sc.heldBy(len(sc.batch), "call")
	}},
	// A record that is twice in the first hundred is as wrong as a missing one (spec 2.1).
	{`^the list "([^"]+)" shows "([^"]+)" (once|nowhere)$`, func(sc *scenario, path, what, how string) error {
		path, text := sc.filled(path), sc.filled(what)
		a := sc.must(request{method: "GET", path: path + "?per_page=100", as: whoseIs(path)})
		listed := jsonvalue.Items(a.at("data"))
		found := len(lists.Where(listed, func(one *wire.Node) bool { return containsFold(string(one.Raw), text) }))
		sc.expect(found == map[string]int{"once": 1}[how], fmt.Sprintf("%s shows %s %s", path, text, how), quantity.Count(found, "time"), a)
		return sc.HeldBy("%s listed", quantity.Count(len(listed), "thing"))
	}},

	{`^each identifier is an integer$`, func(sc *scenario) error {
		return sc.eachMember("an integer", func(m member) (concerned, ok bool) {
			return (m.name == "id" || strings.HasSuffix(m.name, "_id")) && !m.value.Is(wire.Null), m.value.IsInteger()
		})
	}},
	{`^each time is ISO 8601 in UTC$`, func(sc *scenario) error {
		return sc.eachMember("an ISO 8601 time in UTC", func(m member) (concerned, ok bool) {
			ok, err := jsonvalue.Fits("timestamp", m.value)
			stop(err)
			return (strings.HasSuffix(m.name, "_at") || m.name == "scheduled_execution_time") && !m.value.Is(wire.Null), ok
		})
	}},
	{`^each field name is in snake case$`, func(sc *scenario) error {
		return sc.eachMember("a name in snake case", func(m member) (concerned, ok bool) { return true, snakeCase.MatchString(m.name) })
	}},
}

const ownToken = "its own token"

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// answerClaims are the claims about each answer. A status may be an integer: errors have one in the live dialect.
var answerClaims = map[string]func(*answer) bool{
	"is answered":                     func(a *answer) bool { return a.Status < 300 },
	"is let in":                       func(a *answer) bool { return !forbidden(a) && a.Status < 500 },
	"is refused":                      forbidden,
	"is refused as unauthenticated":   func(a *answer) bool { return a.Status == http.StatusUnauthorized },
	"is turned down":                  func(a *answer) bool { return refused(a) && !forbidden(a) },
	"has a status":                    func(a *answer) bool { return a.at("status").Is(wire.String) || a.at("status").Is(wire.Number) },
	`says what is wrong in "message"`: func(a *answer) bool { return strings.TrimSpace(a.text("message")) != "" },
}

func forbidden(a *answer) bool {
	return a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden
}

// madeBy notes what a call has created, also against the rule. An invitation to a workspace goes with that.
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

// callsEach makes the calls of a table, method, path and perhaps a body, with their own token or another.
func (sc *scenario) callsEach(who, contentType string, calls *engine.Table) {
	var all []*answer
	for _, line := range engine.Rows(calls) {
		method, path, _ := strings.Cut(line[0], " ")
		q := request{as: whoseIs(path)}
		if who != ownToken {
			q = sc.credentials(who)
		}
		if contentType != "" {
			q.header = http.Header{"Content-Type": {contentType}}
		}
		if q.as == asOrganization && q.token == "" {
			sc.needsOrganization()
		}
		all = append(all, sc.calling(method, path, append(line, "")[1], q))
	}
	sc.batch = all
}

// whoseIs returns which token an endpoint takes (spec 5.1).
func whoseIs(path string) identity {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	first, _, _ = strings.Cut(first, "?")
	if slices.Contains([]string{"workspaces", "invitations", "users"}, first) {
		return asOrganization
	}
	return asWorkspace
}

// member is a member of an answer, with its place.
type member struct {
	place, name string
	value       *wire.Node
}

// free are members whose own members are named by clients or destinations.
var free = []string{"connection_details", "advanced_configuration", "configurable_field_definitions", "schema"}

// allMembers are all members below data, but for those of free objects.
func allMembers(n *wire.Node, place string) []member {
	var out []member
	for _, one := range jsonvalue.Items(n) {
		out = append(out, allMembers(one, place+"[]")...)
	}
	for _, m := range jsonvalue.Members(n) {
		at := strings.TrimPrefix(place+"."+m.Name, ".")
		out = append(out, member{at, m.Name, m.Value})
		if !slices.Contains(free, m.Name) {
			out = append(out, allMembers(m.Value, at)...)
		}
	}
	return out
}

// eachMember looks at all members of the answers of the latest calls.
func (sc *scenario) eachMember(expected string, good func(member) (concerned, ok bool)) error {
	seen := 0
	for _, a := range sc.batch {
		if !accepted(a) {
			sc.undecidedBy(a)
		}
		for _, m := range allMembers(a.at("data"), "") {
			concerned, ok := good(m)
			if !concerned {
				continue
			}
			seen++
			actual := foreign.Clip(m.name+": "+jsonvalue.Raw(m.value), longest)
			sc.expect(ok, fmt.Sprintf("%s of %s is %s", m.place, a.request.path, expected), actual, a)
		}
	}
	mustSee(seen, "no answer has such a member")
	return sc.heldBy(seen, "member")
}
