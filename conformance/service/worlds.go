package service

import (
	"fmt"
	"strconv"

	"github.com/destkit/destkit/conformance"
)

// needsOrganization says that a check lacks the personal access token.
func (p *play) needsOrganization() error {
	if p.pat == "" {
		return conformance.Outcome(conformance.NotRun, "DESTKIT_PERSONAL_ACCESS_TOKEN", "needs a personal access token: set DESTKIT_PERSONAL_ACCESS_TOKEN")
	}
	return nil
}

// newWorkspace makes a workspace in the organization of the scenario and gives
// its id and key; changes go over the ordinary body.
func (p *play) newWorkspace(changes map[string]any) (id int64, key string, err error) {
	if err := p.needsOrganization(); err != nil {
		return 0, "", err
	}
	name := p.called("workspace")
	body := map[string]any{"name": name, "return_workspace_api_key": true}
	for k, v := range changes {
		body[k] = v
	}
	a, err := p.must(request{method: "POST", path: "/workspaces", as: asOrganization, body: body})
	if err != nil {
		return 0, "", err
	}
	id, key = a.id("data", "id"), a.text("data", "api_key")
	if key != "" {
		p.secrets.Add(key, "$DESTKIT_WORKSPACE_API_KEY")
	}
	p.made(thing{kind: "workspaces", id: id, name: name, as: asOrganization})
	return id, key, nil
}

// ownWorkspace takes the scenario into a workspace that nobody else uses, with
// no source in it.
func (p *play) ownWorkspace() error {
	id, key, err := p.newWorkspace(nil)
	if err != nil {
		return err
	}
	if key == "" {
		return conformance.Outcome(conformance.Inconclusive, "", "the service gave no key of the new workspace")
	}
	p.key, p.source = key, 0
	p.named.workspace = some(id)
	return nil
}

// ownSource makes an emulated warehouse in the scenario's workspace.
func (p *play) ownSource() error {
	connection := map[string]any{"name": p.called("source")}
	for k, v := range emulated {
		connection[k] = v
	}
	a, err := p.must(request{method: "POST", path: "/sources", body: map[string]any{"connection": connection}})
	if err != nil {
		return err
	}
	p.source = a.id("data", "id")
	p.made(thing{kind: "sources", id: p.source, name: fmt.Sprint(connection["name"])})
	return nil
}

// ownOrganization takes the scenario into an organization that nobody else uses.
// The API cannot make one: it needs the control API.
func (p *play) ownOrganization() error {
	name := p.called("organization")
	a, err := p.control("POST", "/organizations", map[string]any{"name": name, "email": p.email("owner")})
	if err != nil {
		return err
	}
	id := a.id("organization_id")
	p.made(thing{kind: "organizations", id: id, name: name, control: true})
	p.pat, p.key, p.source = a.text("personal_access_token"), a.text("workspace_api_key"), 0
	p.secrets.Add(p.pat, "$DESTKIT_PERSONAL_ACCESS_TOKEN")
	p.secrets.Add(p.key, "$DESTKIT_WORKSPACE_API_KEY")
	p.named.account = account{some(id), some(a.id("workspace_id")), some(a.id("user_id"))}
	return nil
}

// email is an e-mail address of the run in a domain that no mail reaches.
func (p *play) email(who string) string { return p.called(who) + "@example.com" }

// below is a path of the API with an id in it.
func below(kind string, id int64, rest string) string {
	return "/" + kind + "/" + strconv.FormatInt(id, 10) + rest
}
