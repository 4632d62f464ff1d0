package service

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// organizationSteps are for ORG: workspaces, users and invitations (spec 2.13, 2.14).
func organizationSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a member of the organization$`, func(p *play) any {
			return func() error { _, err := p.joined("member", nil); return err }
		}),
		step(`^a client goes to an organization of its own$`, func(p *play) any { return p.ownOrganization }),
		step(`^two workspaces$`, func(p *play) any { return p.twoWorkspaces }),
		step(`^the answer invites to "([^"]+)" as "([a-z]+)" and to "([^"]+)" as "([a-z]+)"$`, func(p *play) any { return p.invitesTo }),
		step(`^another organization with a workspace$`, func(p *play) any { return p.anotherOrganization }),
		step(`^the invited person claims the invitation to the (organization|workspace)$`, func(p *play) any { return p.claims }),
		step(`^data of each answer has the members:$`, func(p *play) any { return p.dataHasMembers }),
		step(`^data of each answer has the members "([a-z_, ]+)" and no others$`, func(p *play) any { return p.dataHasOnly }),
		step(`^data of each answer has the values:$`, func(p *play) any { return p.dataHasValues }),
		step(`^no answer has a member "([a-z_]+)"$`, func(p *play) any { return p.noneHas }),
		step(`^the (member|invited person) has the role "([a-z]+)" in the (organization|workspace)$`, func(p *play) any { return p.memberHasRole }),
		step(`^the list "([^"]+)" (shows|does not show) "([^"]+)"$`, func(p *play) any { return p.listShows }),
	}
}

// anotherOrganization stands beside that of the scenario; its workspace is
// {foreign_workspace}.
func (p *play) anotherOrganization() error {
	pat, key, source := p.pat, p.key, p.source
	usual := p.named.account
	if err := p.ownOrganization(); err != nil {
		return err
	}
	p.named.foreignWorkspace = p.named.workspace
	p.named.foreignOrganization = some(p.pat)
	p.named.account = usual
	p.pat, p.key, p.source = pat, key, source
	return nil
}

func (p *play) twoWorkspaces() error {
	for _, to := range []*optional[int64]{&p.named.workspace, &p.named.secondWorkspace} {
		id, _, err := p.newWorkspace(nil)
		if err != nil {
			return err
		}
		*to = some(id)
	}
	return nil
}

// invitesTo compares the associated invitations with what was asked for, in any
// order.
func (p *play) invitesTo(first, role, second, otherRole string) error {
	answers, data, err := p.dataOf()
	if err != nil {
		return err
	}
	want := map[string]string{}
	for place, role := range map[string]string{first: role, second: otherRole} {
		id, err := p.filled(place)
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
					p.broken("each associated invitation has an id", rawOf(w), answers[i])
				}
				got[rawOf(w.Get("workspace_id"))] = stringOf(w.Get("role"))
			}
		}
		if !maps.Equal(got, want) {
			p.broken(fmt.Sprintf("invitations to the workspaces %v", want), rawOf(n), answers[i])
		}
	}
	p.Proof("%d invitations", len(data))
	return p.Held()
}

// claims does what a person does on a page of the service.
func (p *play) claims(what string) error {
	path := below("invitations", p.named.made.value, "/claim")
	if what == "workspace" {
		path = below("workspace_invitations", p.named.made.value, "/claim")
	}
	a, err := p.control("POST", path, map[string]any{})
	if err != nil {
		return err
	}
	p.named.member = some(a.text("user", "email"))
	return nil
}

// dataOf are the things of the latest calls, which have to be answered well.
func (p *play) dataOf() (answers []*answer, data []*wire.Node, err error) {
	for _, a := range p.batch {
		if !accepted(a) || a.at("data") == nil {
			p.broken(fmt.Sprintf("%s %s is answered with data", a.request.method, a.request.path), a.short(), a)
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
	if err := p.Held(); err != nil {
		return nil, nil, err
	}
	if len(data) == 0 {
		return nil, nil, conformance.Outcome(conformance.Inconclusive, "", "no answer has data")
	}
	return answers, data, nil
}

// dataHasMembers holds data against a table, | member | type |.
func (p *play) dataHasMembers(t *conformance.Table) error {
	answers, data, err := p.dataOf()
	if err != nil {
		return err
	}
	for i, one := range data {
		for _, line := range t.Rows() {
			name, what := line[0], line[1]
			n := one.Get(strings.Split(name, ".")...)
			ok, err := fits(what, n)
			if err != nil {
				return err
			}
			if !ok {
				p.broken(name+" is "+what, name+" is "+rawOf(n), answers[i])
			}
		}
	}
	p.Proof("%d things", len(data))
	return p.Held()
}

func (p *play) dataHasOnly(list string) error {
	answers, data, err := p.dataOf()
	if err != nil {
		return err
	}
	for i, one := range data {
		if got := names(one); !sameNames(got, words(list)) {
			p.broken("data has the members "+list, strings.Join(got, ", "), answers[i])
		}
	}
	p.Proof("%d things", len(data))
	return p.Held()
}

// dataHasValues compares with a table, | member | JSON |.
func (p *play) dataHasValues(t *conformance.Table) error {
	answers, data, err := p.dataOf()
	if err != nil {
		return err
	}
	for i, one := range data {
		for _, line := range t.Rows() {
			name := line[0]
			want, err := p.filled(line[1])
			if err != nil {
				return err
			}
			if got := rawOf(one.Get(strings.Split(name, ".")...)); !sameJSON([]byte(got), []byte(want)) {
				p.broken(name+" is "+want, name+" is "+got, answers[i])
			}
		}
	}
	p.Proof("%d things", len(data))
	return p.Held()
}

func (p *play) noneHas(name string) error {
	good := 0
	for _, a := range p.batch {
		if accepted(a) {
			good++
		}
		if bytes.Contains(a.Body, []byte(`"`+name+`"`)) {
			p.broken("an answer without "+name, a.short(), a)
		}
	}
	if good == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no call was answered well")
	}
	p.Proof("%d answers", good)
	return p.Held()
}

// memberHasRole looks a person up in the list of users.
func (p *play) memberHasRole(_, role, where string) error {
	path := "/users?per_page=100"
	if where == "workspace" {
		id := p.named.workspace.value
		path = below("workspaces", id, "/users?per_page=100")
	}
	a, err := p.must(request{method: "GET", path: path, as: asOrganization})
	if err != nil {
		return err
	}
	got := "nobody"
	for _, u := range a.at("data").Items {
		if p.named.member.known && strings.EqualFold(stringOf(u.Get("email")), p.named.member.value) {
			got = stringOf(u.Get("role"))
		}
	}
	if got != role {
		p.broken(fmt.Sprintf("%s is in the %s as %s", p.named.member.value, where, role), got, a)
	}
	p.Proof("%d users", len(a.at("data").Items))
	return p.Held()
}

// listShows looks for a text in the first hundred of a list.
func (p *play) listShows(path, how, what string) error {
	path, err := p.filled(path)
	if err != nil {
		return err
	}
	text, err := p.filled(what)
	if err != nil {
		return err
	}
	q := request{method: "GET", path: path + "?per_page=100", as: asWorkspace}
	if ofOrganization(path) {
		q.as = asOrganization
	}
	a, err := p.must(q)
	if err != nil {
		return err
	}
	if bytes.Contains(bytes.ToLower(a.Body), bytes.ToLower([]byte(text))) != (how == "shows") {
		p.broken(fmt.Sprintf("%s %s %s", path, how, text), a.short(), a)
	}
	p.Proof("%d things listed", len(a.at("data").Items))
	return p.Held()
}
