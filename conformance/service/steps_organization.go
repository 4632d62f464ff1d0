package service

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"unicode"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// organizationSteps are for ORG: workspaces, users and invitations (spec 2.13, 2.14).
var organizationSteps = []step{
	{`^a member of the organization$`, func(sc *scenario) { sc.joined() }},
	{`^two workspaces$`, func(sc *scenario) {
		for _, word := range []string{"workspace", "second_workspace"} {
			id, _ := sc.newWorkspace(nil)
			sc.says(word, id)
		}
	}},
	// It exists in addition to that of the scenario; its workspace is {foreign_workspace}.
	{`^another organization with a workspace$`, func(sc *scenario) {
		pat, key, source, words := sc.pat, sc.key, sc.source, maps.Clone(sc.words)
		sc.ownOrganization()
		words["foreign_workspace"] = sc.words["workspace"]
		sc.pat, sc.key, sc.source, sc.words = pat, key, source, words
	}},
	// A person does that on a page of the service.
	{`^the invited person claims the invitation to the (organization|workspace)$`, func(sc *scenario, what string) {
		kind := map[string]string{"organization": "invitations", "workspace": "workspace_invitations"}[what]
		sc.words["member"] = sc.control("POST", "/"+kind+"/"+sc.words["made"]+"/claim", map[string]any{}).text("user", "email")
	}},
	{`^the (?:member|invited person) has the role "([a-z]+)" in the (organization|workspace)$`, func(sc *scenario, role, where string) error {
		path := "/users?per_page=100"
		if where == "workspace" {
			path = "/workspaces/" + sc.words["workspace"] + path
		}
		a := sc.must(request{method: "GET", path: path, as: asOrganization})
		got, member, users := "nobody", sc.words["member"], jsonvalue.Items(a.at("data"))
		for _, u := range users {
			if member != "" && strings.EqualFold(jsonvalue.Text(u.Get("email")), member) {
				got = jsonvalue.Text(u.Get("role"))
			}
		}
		sc.expect(got == role, fmt.Sprintf("%s is in the %s as %s", member, where, role), got, a)
		return sc.heldBy(len(users), "user")
	}},
}

// needsOrganization reports that a check lacks the personal access token.
func (sc *scenario) needsOrganization() {
	if sc.pat == "" {
		stop(engine.NotRun("DESTKIT_PERSONAL_ACCESS_TOKEN", "needs a personal access token: set DESTKIT_PERSONAL_ACCESS_TOKEN"))
	}
}

// newWorkspace makes a workspace and gives its id and key; changes go over the ordinary body.
func (sc *scenario) newWorkspace(changes map[string]any) (id int64, key string) {
	sc.needsOrganization()
	body := map[string]any{"name": sc.called("workspace"), "return_workspace_api_key": true}
	maps.Copy(body, changes)
	a := sc.must(request{method: "POST", path: "/workspaces", as: asOrganization, body: body})
	id, key = a.id("data", "id"), a.text("data", "api_key")
	if key != "" {
		sc.secrets.Add(key, "$DESTKIT_WORKSPACE_API_KEY")
	}
	sc.made(thing{kind: "workspaces", id: id, as: asOrganization})
	return id, key
}

// ownWorkspace takes the scenario into a workspace that no other scenario uses, with no source in it.
func (sc *scenario) ownWorkspace() {
	id, key := sc.newWorkspace(nil)
	mustSee(len(key), "the service gave no key of the new workspace")
	sc.key, sc.source = key, 0
	sc.says("workspace", id)
}

// ownSource makes an emulated warehouse in the scenario's workspace.
func (sc *scenario) ownSource() {
	sc.source = sc.must(request{method: "POST", path: "/sources", body: emulatedSource(sc.called("source"))}).id("data", "id")
	sc.made(thing{kind: "sources", id: sc.source})
}

// ownOrganization takes the scenario into a separate organization, which only the control API can make.
func (sc *scenario) ownOrganization() {
	name := sc.called("organization")
	a := sc.control("POST", "/organizations", map[string]any{"name": name, "email": sc.email("owner")})
	sc.made(thing{kind: "organizations", id: a.id("organization_id"), control: true})
	sc.pat, sc.key, sc.source = a.text("personal_access_token"), a.text("workspace_api_key"), 0
	sc.secrets.Add(sc.pat, "$DESTKIT_PERSONAL_ACCESS_TOKEN")
	sc.secrets.Add(sc.key, "$DESTKIT_WORKSPACE_API_KEY")
	sc.says("workspace", a.id("workspace_id"))
	sc.says("user", a.id("user_id"))
}

// joined lets a new person into the organization; only the control API can claim an invitation for a person.
func (sc *scenario) joined() *answer {
	email := sc.email("member")
	a := sc.must(request{method: "POST", path: "/invitations", as: asOrganization, body: map[string]any{"email": email, "role": "member"}})
	sc.words["member"] = email
	return sc.control("POST", below("invitations", a.id("data", "id"), "/claim"), map[string]any{})
}

// email is an e-mail address of the run in a domain that no mail reaches.
func (sc *scenario) email(who string) string { return sc.called(who) + "@example.com" }

// isPersonal reports whether a scenario means the personal access token.
func isPersonal(who string) bool { return strings.Contains(who, "personal") }

// credentials are what a call may bring, by what a scenario calls it.
func (sc *scenario) credentials(who string) request {
	if isPersonal(who) {
		sc.needsOrganization()
	}
	header := func(value string) request {
		return request{as: asNobody, header: http.Header{"Authorization": {value}}}
	}
	basic := func(password string) request {
		return header("Basic " + base64.StdEncoding.EncodeToString([]byte("bearer:"+password)))
	}
	damaged := func(token string) string { return token[:max(0, len(token)-1)] }
	const unknownToken = "secret-token:zz-conf-nobody-has-this-one"
	kinds := map[string]request{
		"the workspace API key":         {as: asWorkspace},
		"the personal access token":     {as: asOrganization},
		"no token":                      {as: asNobody},
		"an unknown token":              {token: unknownToken},
		"a damaged key":                 {token: damaged(sc.key)},
		"a key that goes on":            {token: sc.key + "x"},
		"a key in other case":           {token: swapCase(sc.key)},
		"a damaged personal token":      {token: damaged(sc.pat)},
		"an empty token":                header("Bearer "),
		"the key as password of bearer": basic(sc.key),
		"an unknown password of bearer": basic(unknownToken),
		"no password of bearer":         basic(""),
	}
	q, ok := kinds[who]
	if !ok {
		stop(engine.Outcome(conformance.HarnessError, "", "unknown credentials %q", who))
	}
	return q
}

// swapCase changes the case of every letter after the published prefix.
func swapCase(token string) string {
	at := strings.IndexByte(token, ':') + 1
	return token[:at] + strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, token[at:])
}
