package service

import (
	"fmt"
	"maps"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// organizationSteps are for ORG: workspaces, users and invitations (spec 2.13, 2.14).
func organizationSteps() []engine.Step {
	return []engine.Step{
		step(`^a member of the organization$`, func(sc *scenario) any {
			return func() error { _, err := sc.joined(); return err }
		}),
		step(`^two workspaces$`, func(sc *scenario) any { return sc.twoWorkspaces }),
		step(`^another organization with a workspace$`, func(sc *scenario) any { return sc.anotherOrganization }),
		step(`^the invited person claims the invitation to the (organization|workspace)$`, func(sc *scenario) any { return sc.claims }),
		step(`^the (?:member|invited person) has the role "([a-z]+)" in the (organization|workspace)$`, func(sc *scenario) any { return sc.memberHasRole }),
	}
}

// anotherOrganization stands beside that of the scenario; its workspace is
// {foreign_workspace}.
func (sc *scenario) anotherOrganization() error {
	pat, key, source, words := sc.pat, sc.key, sc.source, maps.Clone(sc.words)
	if err := sc.ownOrganization(); err != nil {
		return err
	}
	words["foreign_workspace"] = sc.words["workspace"]
	sc.pat, sc.key, sc.source, sc.words = pat, key, source, words
	return nil
}

func (sc *scenario) twoWorkspaces() error {
	for _, word := range []string{"workspace", "second_workspace"} {
		id, _, err := sc.newWorkspace(nil)
		if err != nil {
			return err
		}
		sc.says(word, id)
	}
	return nil
}

// claims does what a person does on a page of the service.
func (sc *scenario) claims(what string) error {
	kind := map[string]string{"organization": "invitations", "workspace": "workspace_invitations"}[what]
	a, err := sc.control("POST", "/"+kind+"/"+sc.words["made"]+"/claim", map[string]any{})
	if err != nil {
		return err
	}
	sc.words["member"] = a.text("user", "email")
	return nil
}

// memberHasRole looks a person up in the list of users.
func (sc *scenario) memberHasRole(role, where string) error {
	path := "/users?per_page=100"
	if where == "workspace" {
		path = "/workspaces/" + sc.words["workspace"] + path
	}
	a, err := sc.must(request{method: "GET", path: path, as: asOrganization})
	if err != nil {
		return err
	}
	got, member := "nobody", sc.words["member"]
	for _, u := range jsonvalue.Items(a.at("data")) {
		if member != "" && strings.EqualFold(jsonvalue.Text(u.Get("email")), member) {
			got = jsonvalue.Text(u.Get("role"))
		}
	}
	if got != role {
		sc.broken(fmt.Sprintf("%s is in the %s as %s", member, where, role), got, a)
	}
	return sc.heldBy(len(jsonvalue.Items(a.at("data"))), "user")
}
