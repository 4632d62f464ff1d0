package service

import (
	"fmt"
	"strconv"

	"github.com/destkit/destkit/conformance"
)

// needsOrganization says that a check lacks the personal access token.
func (sc *scenario) needsOrganization() error {
	if sc.pat == "" {
		return conformance.Outcome(conformance.NotRun, "DESTKIT_PERSONAL_ACCESS_TOKEN", "needs a personal access token: set DESTKIT_PERSONAL_ACCESS_TOKEN")
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
		return conformance.Outcome(conformance.Inconclusive, "", "the service gave no key of the new workspace")
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
