package service

import (
	"encoding/base64"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
)

// needsOrganization says that a check lacks the personal access token.
func (sc *scenario) needsOrganization() error {
	if sc.pat == "" {
		return engine.Outcome(conformance.NotRun, "DESTKIT_PERSONAL_ACCESS_TOKEN", "needs a personal access token: set DESTKIT_PERSONAL_ACCESS_TOKEN")
	}
	return nil
}

// newWorkspace makes a workspace in the organization of the scenario and gives
// its id and key; changes go over the ordinary body.
func (sc *scenario) newWorkspace(changes map[string]any) (id int64, key string, err error) {
	if err := sc.needsOrganization(); err != nil {
		return 0, "", err
	}
	name := sc.called("workspace")
	body := map[string]any{"name": name, "return_workspace_api_key": true}
	maps.Copy(body, changes)
	a, err := sc.must(request{method: "POST", path: "/workspaces", as: asOrganization, body: body})
	if err != nil {
		return 0, "", err
	}
	id, key = a.id("data", "id"), a.text("data", "api_key")
	if key != "" {
		sc.secrets.Add(key, "$DESTKIT_WORKSPACE_API_KEY")
	}
	sc.made(thing{kind: "workspaces", id: id, as: asOrganization})
	return id, key, nil
}

// ownWorkspace takes the scenario into a workspace that no other scenario uses, with
// no source in it.
func (sc *scenario) ownWorkspace() error {
	id, key, err := sc.newWorkspace(nil)
	if err != nil {
		return err
	}
	if key == "" {
		return engine.Outcome(conformance.Inconclusive, "", "the service gave no key of the new workspace")
	}
	sc.key, sc.source = key, 0
	sc.says("workspace", id)
	return nil
}

// ownSource makes an emulated warehouse in the scenario's workspace.
func (sc *scenario) ownSource() error {
	a, err := sc.must(request{method: "POST", path: "/sources", body: emulatedSource(sc.called("source"))})
	if err != nil {
		return err
	}
	sc.source = a.id("data", "id")
	sc.made(thing{kind: "sources", id: sc.source})
	return nil
}

// ownOrganization takes the scenario into an organization that no other scenario uses.
// The API cannot make one: it needs the control API.
func (sc *scenario) ownOrganization() error {
	name := sc.called("organization")
	a, err := sc.control("POST", "/organizations", map[string]any{"name": name, "email": sc.email("owner")})
	if err != nil {
		return err
	}
	id := a.id("organization_id")
	sc.made(thing{kind: "organizations", id: id, control: true})
	sc.pat, sc.key, sc.source = a.text("personal_access_token"), a.text("workspace_api_key"), 0
	sc.secrets.Add(sc.pat, "$DESTKIT_PERSONAL_ACCESS_TOKEN")
	sc.secrets.Add(sc.key, "$DESTKIT_WORKSPACE_API_KEY")
	sc.says("workspace", a.id("workspace_id"))
	sc.says("user", a.id("user_id"))
	return nil
}

// email is an e-mail address of the run in a domain that no mail reaches.
func (sc *scenario) email(who string) string { return sc.called(who) + "@example.com" }

// below is a path of the API with an id in it.
func below(kind string, id int64, rest string) string {
	return "/" + kind + "/" + strconv.FormatInt(id, 10) + rest
}

// credentials are what a call may bring, by what a scenario calls it.
func (sc *scenario) credentials(who string) (request, error) {
	if strings.Contains(who, "personal") {
		if err := sc.needsOrganization(); err != nil {
			return request{}, err
		}
	}
	header := func(value string) request {
		return request{as: asNobody, header: http.Header{"Authorization": {value}}}
	}
	basic := func(password string) request {
		return header("Basic " + base64.StdEncoding.EncodeToString([]byte("bearer:"+password)))
	}
	damaged := func(token string) string { return token[:max(0, len(token)-1)] }
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
		return q, engine.Outcome(conformance.HarnessError, "", "unknown credentials %q", who)
	}
	return q, nil
}

const unknownToken = "secret-token:zz-conf-nobody-has-this-one"

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
