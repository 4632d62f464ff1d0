package service

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// destinationsSteps are for DST: connections to destinations (spec 2.2).
func destinationsSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a connection(?: whose URL ends in "([^"]+)")?(?: with the credentials (\{.+\}))?(?: to an endpoint whose test (.+))?$`,
			func(p *play) any { return p.aConnection }),
		step(`^the endpoint's test (passes|says|fails|is|gets|lacks)(.*)$`, func(p *play) any { return p.testChanges }),
		step(`^a client (fetches|lists|saves) the destination(?: again)?$`, func(p *play) any { return p.looksAtDestination }),
		step(`^a client looks at the destination in every way$`, func(p *play) any { return p.looksInEveryWay }),
		step(`^a client updates the destination with (\{.*\})(, a moment later)?$`, func(p *play) any { return p.updatesDestination }),
		step(`^the list shows the destination (once|no more)$`, func(p *play) any { return p.isListed }),
		step(`^some step of the latest test failed(?: with "([^"]*)")?$`, func(p *play) any { return p.stepFailed }),
		step(`^the service (?:calls|called) the endpoint with the token "(\{secret[a-z-]*\})"$`, func(p *play) any { return p.callsWithToken }),
		step(`^the latest call of the service is test_connection$`, func(p *play) any { return p.latestIsTest }),
		step(`^no destination has the name "(\{name[a-z-]*\})"$`, func(p *play) any { return p.noneIsCalled }),
	}
}

// aConnection makes a connection, whatever the API answers.
func (p *play) aConnection(suffix, credentials, test string) error {
	c := connecting{}
	var err error
	if c.suffix, err = p.spoken(suffix); err != nil {
		return err
	}
	if test != "" {
		if c.script, err = testThat(test); err != nil {
			return err
		}
	}
	given := map[string]any{}
	if credentials != "" {
		text, err := p.spoken(credentials)
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return fmt.Errorf("read credentials %s: %w", credentials, err)
		}
	}
	d, err := p.place(c)
	if err != nil {
		return err
	}
	return p.connects(d, d.connection(given))
}

// connects makes a connection to what stands on the stage.
func (p *play) connects(d *destination, body map[string]any) error {
	p.dest = d
	p.answered.callsBefore, p.answered.latest = 0, nil
	a, err := p.api(request{method: "POST", path: "/destinations", body: body})
	if err != nil {
		return err
	}
	p.anew("destination")
	p.shows("destination", "creation", a, a.at("data"))
	p.words["url"], p.words["given"] = d.url, d.name
	if d.id = a.id("data", "id"); d.id != 0 {
		p.made(thing{kind: "destinations", id: d.id, name: d.name})
	}
	return nil
}

// here is the path of the latest destination; without one nothing is decided.
func (p *play) here() (string, error) {
	if p.dest == nil || p.dest.id == 0 {
		return "", conformance.Outcome(conformance.Inconclusive, "", "the destination could not be made")
	}
	return "/destinations/" + strconv.FormatInt(p.dest.id, 10), nil
}

func (p *play) looksAtDestination(how string) error {
	path, err := p.here()
	if err != nil {
		return err
	}
	switch how {
	case "lists":
		return p.listsDestination()
	case "saves":
		return p.updatesDestination(`{"name":"{given}"}`, "")
	}
	a, err := p.api(request{method: "GET", path: path})
	if err != nil {
		return err
	}
	p.answered.latest = nil
	p.shows("destination", "fetch", a, a.at("data"))
	return nil
}

// listsDestination looks for the latest destination in the list, which begins
// with the newest (spec 8).
func (p *play) listsDestination() error {
	times := 0
	all, err := p.pages("/destinations", func(a *answer, n *wire.Node) {
		if id, _ := n.Get("id").Int(); id == p.dest.id {
			times++
			p.shows("destination", "list", a, n)
		}
	})
	if err != nil {
		return err
	}
	p.answered.listed, p.answered.latest = some(times), all
	return nil
}

// mostPages bounds a list that never ends.
const mostPages = 50

// pages goes through a list.
func (p *play) pages(path string, each func(*answer, *wire.Node)) ([]*answer, error) {
	var all []*answer
	for page := 1; page <= mostPages; page++ {
		a, err := p.api(request{method: "GET", path: path + "?per_page=100&page=" + strconv.Itoa(page)})
		if err != nil {
			return nil, err
		}
		all = append(all, a)
		data := a.at("data")
		if !data.Is(wire.Array) {
			p.broken("a list in data (spec 2.1)", a.short(), a)
			return all, p.Held()
		}
		for _, n := range data.Items {
			each(a, n)
		}
		if next, is := a.at("pagination", "next_page").Int(); !is || next <= int64(page) {
			break
		}
	}
	return all, nil
}

// isListed counts: a list that repeats a destination is as wrong as one that
// lacks it (spec 2.1).
func (p *play) isListed(how string) error {
	times, looked := p.answered.listed.get()
	if !looked {
		return conformance.Outcome(conformance.Inconclusive, "", "the list was not looked at")
	}
	if times != map[string]int{"once": 1}[how] {
		p.broken("the destination stands "+how+" in the list", fmt.Sprintf("%d times", times), p.last)
		return p.Held()
	}
	p.Proof("looked for by its id")
	return p.Held()
}

// looksInEveryWay fetches, lists and saves: what stands in the answer to an
// update only (spec 2.2) is in the last one.
func (p *play) looksInEveryWay() error {
	for _, how := range []string{"fetches", "lists"} {
		if err := p.looksAtDestination(how); err != nil {
			return err
		}
	}
	return p.sends(`{"name":"{given}"}`)
}

// aMoment bounds how long a time stamp may stand still: those without a
// fraction change every second.
const aMoment = 1300 * time.Millisecond

// updatesDestination changes the connection; what it looked like is forgotten.
func (p *play) updatesDestination(change, later string) error {
	if later == "" {
		p.anew("destination")
		return p.sends(change)
	}
	return p.later("destination", "last_tested_at", func() error { return p.sends(change) })
}

// later does something until a moment moves on, or for a second.
func (p *play) later(kind, member string, do func() error) error {
	var first *view
	for deadline := time.Now().Add(aMoment); ; {
		p.anew(kind)
		if first == nil {
			first = p.before[kind]
		}
		p.before[kind] = first
		if err := do(); err != nil {
			return err
		}
		all := p.shown(kind)
		if first == nil || len(all) == 0 || time.Now().After(deadline) || momentOf(all[0].member(member)).After(momentOf(first.member(member))) {
			return nil
		}
		if err := p.sleep(pollAtMost); err != nil {
			return err
		}
	}
}

// sends is the update itself.
func (p *play) sends(change string) error {
	path, err := p.here()
	if err != nil {
		return err
	}
	text, err := p.spoken(change)
	if err != nil {
		return err
	}
	p.answered.callsBefore, p.answered.latest = len(p.dest.seen("")), nil
	a, err := p.api(request{method: "PATCH", path: path, body: json.RawMessage(`{"service_connection":` + text + `}`)})
	if err != nil {
		return err
	}
	p.shows("destination", "update", a, a.at("data"))
	return nil
}

// callsWithToken looks at the latest call (spec 5.2.2).
func (p *play) callsWithToken(word string) error {
	calls, err := p.heard()
	if err != nil {
		return err
	}
	token, err := p.spoken(word)
	if err != nil {
		return err
	}
	if calls[0].http.Header.Get("Authorization") == "" {
		return conformance.Outcome(conformance.Inconclusive, "", "the service does not take auth_token for the token of a connection")
	}
	last := calls[len(calls)-1]
	if last.http.Header.Get("Authorization") != "Bearer "+token {
		p.brokenCall("Authorization: Bearer "+token, p.secrets.String(last.http.Header.Get("Authorization")), last)
		return p.Held()
	}
	p.Proof("%d calls", len(calls))
	return p.Held()
}

// noneIsCalled looks through the list for what must not have been made.
func (p *play) noneIsCalled(word string) error {
	name, err := p.spoken(word)
	if err != nil {
		return err
	}
	found := false
	all, err := p.pages("/destinations", func(a *answer, n *wire.Node) {
		if stringOf(n.Get("name")) == name {
			found = true
			p.broken("no destination "+name, "it stands in the list", a)
		}
	})
	if err != nil {
		return err
	}
	if !found {
		p.Proof("%d pages", len(all))
	}
	return p.Held()
}
