package service

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"

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
	for k, v := range changes {
		body[k] = v
	}
	a, err := sc.must(request{method: "POST", path: "/workspaces", as: asOrganization, body: body})
	if err != nil {
		return 0, "", err
	}
	id, key = a.id("data", "id"), a.text("data", "api_key")
	if key != "" {
		sc.secrets.Add(key, "$DESTKIT_WORKSPACE_API_KEY")
	}
	sc.made(thing{kind: "workspaces", id: id, name: name, as: asOrganization})
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
	sc.named.workspace = some(id)
	return nil
}

// ownSource makes an emulated warehouse in the scenario's workspace.
func (sc *scenario) ownSource() error {
	connection := map[string]any{"name": sc.called("source")}
	for k, v := range emulated {
		connection[k] = v
	}
	a, err := sc.must(request{method: "POST", path: "/sources", body: map[string]any{"connection": connection}})
	if err != nil {
		return err
	}
	sc.source = a.id("data", "id")
	sc.made(thing{kind: "sources", id: sc.source, name: fmt.Sprint(connection["name"])})
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
	sc.made(thing{kind: "organizations", id: id, name: name, control: true})
	sc.pat, sc.key, sc.source = a.text("personal_access_token"), a.text("workspace_api_key"), 0
	sc.secrets.Add(sc.pat, "$DESTKIT_PERSONAL_ACCESS_TOKEN")
	sc.secrets.Add(sc.key, "$DESTKIT_WORKSPACE_API_KEY")
	sc.named.account = account{some(id), some(a.id("workspace_id")), some(a.id("user_id"))}
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
	basic := func(user, password string) request {
		return request{as: asNobody, header: http.Header{
			"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))},
		}}
	}
	raw := func(value string) request {
		return request{as: asNobody, header: http.Header{"Authorization": {value}}}
	}
	kinds := map[string]func() request{
		"the workspace API key":     func() request { return request{as: asWorkspace} },
		"the personal access token": func() request { return request{as: asOrganization} },
		"no token":                  func() request { return request{as: asNobody} },
		"an unknown token":          func() request { return request{token: unknownToken} },
		"a damaged key":             func() request { return request{token: sc.key[:len(sc.key)-1]} },
		"a key that goes on":        func() request { return request{token: sc.key + "x"} },
		"a key in other case":       func() request { return request{token: swapCase(sc.key)} },
		"a damaged personal token":  func() request { return request{token: sc.pat[:len(sc.pat)-1]} },
		"an empty token":            func() request { return raw("Bearer ") },
		"the key as password of bearer": func() request {
			return basic("bearer", sc.key)
		},
		"the key as password of somebody": func() request { return basic("somebody", sc.key) },
		"an unknown password of bearer":   func() request { return basic("bearer", unknownToken) },
		"no password of bearer":           func() request { return basic("bearer", "") },
		"the key without a scheme":        func() request { return raw(sc.key) },
		"the key after Token":             func() request { return raw("Token " + sc.key) },
		"the key after bearer":            func() request { return raw("bearer " + sc.key) },
		"the key after BEARER":            func() request { return raw("BEARER " + sc.key) },
		"the key in X-Api-Key":            func() request { return request{as: asNobody, header: http.Header{"X-Api-Key": {sc.key}}} },
	}
	kind, ok := kinds[who]
	if !ok {
		return request{}, engine.Outcome(conformance.HarnessError, "", "unknown credentials %q", who)
	}
	if strings.Contains(who, "personal") {
		if err := sc.needsOrganization(); err != nil {
			return request{}, err
		}
	}
	return kind(), nil
}

const unknownToken = "secret-token:zz-conf-nobody-has-this-one"

// swapCase changes the case of every letter after the published prefix.
func swapCase(token string) string {
	prefix, rest, found := strings.Cut(token, ":")
	if !found {
		prefix, rest = "", token
	} else {
		prefix += ":"
	}
	return prefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}, rest)
}
