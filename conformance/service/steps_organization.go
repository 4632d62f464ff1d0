package service

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
)

// organizationSteps are for ORG: workspaces, users and invitations (spec 2.13, 2.14).
func organizationSteps() []engine.Step {
	return []engine.Step{
		step(`^a member of the organization$`, func(sc *scenario) any {
			return func() error { _, err := sc.joined("member", nil); return err }
		}),
		step(`^a client goes to an organization of its own$`, func(sc *scenario) any { return sc.ownOrganization }),
		step(`^two workspaces$`, func(sc *scenario) any { return sc.twoWorkspaces }),
		step(`^the answer invites to "([^"]+)" as "([a-z]+)" and to "([^"]+)" as "([a-z]+)"$`, func(sc *scenario) any { return sc.invitesTo }),
		step(`^another organization with a workspace$`, func(sc *scenario) any { return sc.anotherOrganization }),
		step(`^the invited person claims the invitation to the (organization|workspace)$`, func(sc *scenario) any { return sc.claims }),
		step(`^data of each answer has the members:$`, func(sc *scenario) any { return sc.dataHasMembers }),
		step(`^data of each answer has the members "([a-z_, ]+)" and no others$`, func(sc *scenario) any { return sc.dataHasOnly }),
		step(`^data of each answer has the values:$`, func(sc *scenario) any { return sc.dataHasValues }),
		step(`^no answer has a member "([a-z_]+)"$`, func(sc *scenario) any { return sc.noneHas }),
		step(`^the (member|invited person) has the role "([a-z]+)" in the (organization|workspace)$`, func(sc *scenario) any { return sc.memberHasRole }),
		step(`^the list "([^"]+)" (shows|does not show) "([^"]+)"$`, func(sc *scenario) any { return sc.listShows }),
	}
}

// anotherOrganization stands beside that of the scenario; its workspace is
// {foreign_workspace}.
func (sc *scenario) anotherOrganization() error {
	pat, key, source := sc.pat, sc.key, sc.source
	usual := sc.named.account
	if err := sc.ownOrganization(); err != nil {
		return err
	}
	sc.named.foreignWorkspace = sc.named.workspace
	sc.named.foreignOrganization = some(sc.pat)
	sc.named.account = usual
	sc.pat, sc.key, sc.source = pat, key, source
	return nil
}

func (sc *scenario) twoWorkspaces() error {
	for _, to := range []*optional[int64]{&sc.named.workspace, &sc.named.secondWorkspace} {
		id, _, err := sc.newWorkspace(nil)
		if err != nil {
			return err
		}
		*to = some(id)
	}
	return nil
}

// invitesTo compares the associated invitations with what was asked for, in any
// order.
func (sc *scenario) invitesTo(first, role, second, otherRole string) error {
	answers, data, err := sc.dataOf()
	if err != nil {
		return err
	}
	want := map[string]string{}
	for place, role := range map[string]string{first: role, second: otherRole} {
		id, err := sc.filled(place)
		if err != nil {
			return err
		}
		want[id] = role
	}
	for i, one := range data {
		got := map[string]string{}
		n := one.Get("associated_workspace_invitations")
		if n.Is(wire.Array) {
			for _, w := range n.Items {
				if !w.Get("id").IsInteger() {
					sc.broken("each associated invitation has an id", jsonvalue.Raw(w), answers[i])
				}
				got[jsonvalue.Raw(w.Get("workspace_id"))] = jsonvalue.Text(w.Get("role"))
			}
		}
		if !maps.Equal(got, want) {
			sc.broken(fmt.Sprintf("invitations to the workspaces %v", want), jsonvalue.Raw(n), answers[i])
		}
	}
	return sc.heldBy(len(data), "invitation")
}

// claims does what a person does on a page of the service.
func (sc *scenario) claims(what string) error {
	path := below("invitations", sc.named.made.value, "/claim")
	if what == "workspace" {
		path = below("workspace_invitations", sc.named.made.value, "/claim")
	}
	a, err := sc.control("POST", path, map[string]any{})
	if err != nil {
		return err
	}
	sc.named.member = some(a.text("user", "email"))
	return nil
}

// dataOf are the things of the latest calls, which have to be answered well.
func (sc *scenario) dataOf() (answers []*answer, data []*wire.Node, err error) {
	for _, a := range sc.batch {
		if !accepted(a) || a.at("data") == nil {
			sc.broken(fmt.Sprintf("%s %s is answered with data", a.request.method, a.request.path), a.short(), a)
			continue
		}
		things := []*wire.Node{a.at("data")}
		if things[0].Is(wire.Array) {
			things = things[0].Items
		}
		for _, one := range things {
			answers, data = append(answers, a), append(data, one)
		}
	}
	if err := sc.Held(); err != nil {
		return nil, nil, err
	}
	if len(data) == 0 {
		return nil, nil, engine.Outcome(conformance.Inconclusive, "", "no answer has data")
	}
	return answers, data, nil
}

// dataHasMembers holds data against a table, | member | type |.
func (sc *scenario) dataHasMembers(t *engine.Table) error {
	answers, data, err := sc.dataOf()
	if err != nil {
		return err
	}
	for i, one := range data {
		for _, line := range engine.Rows(t) {
			name, what := line[0], line[1]
			n := one.Get(strings.Split(name, ".")...)
			ok, err := jsonvalue.Fits(what, n)
			if err != nil {
				return err
			}
			if !ok {
				sc.broken(name+" is "+what, name+" is "+jsonvalue.Raw(n), answers[i])
			}
		}
	}
	return sc.heldBy(len(data), "thing")
}

func (sc *scenario) dataHasOnly(list string) error {
	answers, data, err := sc.dataOf()
	if err != nil {
		return err
	}
	for i, one := range data {
		if got := jsonvalue.Names(one); !jsonvalue.SameNames(got, jsonvalue.Words(list)) {
			sc.broken("data has the members "+list, strings.Join(got, ", "), answers[i])
		}
	}
	return sc.heldBy(len(data), "thing")
}

// dataHasValues compares with a table, | member | JSON |.
func (sc *scenario) dataHasValues(t *engine.Table) error {
	answers, data, err := sc.dataOf()
	if err != nil {
		return err
	}
	for i, one := range data {
		for _, line := range engine.Rows(t) {
			name := line[0]
			want, err := sc.filled(line[1])
			if err != nil {
				return err
			}
			if got := jsonvalue.Raw(one.Get(strings.Split(name, ".")...)); !jsonvalue.SameJSON([]byte(got), []byte(want)) {
				sc.broken(name+" is "+want, name+" is "+got, answers[i])
			}
		}
	}
	return sc.heldBy(len(data), "thing")
}

func (sc *scenario) noneHas(name string) error {
	good := 0
	for _, a := range sc.batch {
		if accepted(a) {
			good++
		}
		if bytes.Contains(a.Body, []byte(`"`+name+`"`)) {
			sc.broken("an answer without "+name, a.short(), a)
		}
	}
	if good == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "no call was answered well")
	}
	return sc.heldBy(good, "answer")
}

// memberHasRole looks a person up in the list of users.
func (sc *scenario) memberHasRole(_, role, where string) error {
	path := "/users?per_page=100"
	if where == "workspace" {
		id := sc.named.workspace.value
		path = below("workspaces", id, "/users?per_page=100")
	}
	a, err := sc.must(request{method: "GET", path: path, as: asOrganization})
	if err != nil {
		return err
	}
	got := "nobody"
	for _, u := range a.at("data").Items {
		if sc.named.member.known && strings.EqualFold(jsonvalue.Text(u.Get("email")), sc.named.member.value) {
			got = jsonvalue.Text(u.Get("role"))
		}
	}
	if got != role {
		sc.broken(fmt.Sprintf("%s is in the %s as %s", sc.named.member.value, where, role), got, a)
	}
	return sc.heldBy(len(a.at("data").Items), "user")
}

// listShows looks for a text in the first hundred of a list.
func (sc *scenario) listShows(path, how, what string) error {
	path, err := sc.filled(path)
	if err != nil {
		return err
	}
	text, err := sc.filled(what)
	if err != nil {
		return err
	}
	q := request{method: "GET", path: path + "?per_page=100", as: asWorkspace}
	if ofOrganization(path) {
		q.as = asOrganization
	}
	a, err := sc.must(q)
	if err != nil {
		return err
	}
	if bytes.Contains(bytes.ToLower(a.Body), bytes.ToLower([]byte(text))) != (how == "shows") {
		sc.broken(fmt.Sprintf("%s %s %s", path, how, text), a.short(), a)
	}
	return sc.HeldBy("%s listed", quantity.Count(len(a.at("data").Items), "thing"))
}
