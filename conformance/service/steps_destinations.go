package service

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
)

// destinationsSteps are for DST: connections to destinations (spec 2.2).
func destinationsSteps() []engine.Step {
	return []engine.Step{
		step(`^a connection(?: whose URL ends in "([^"]+)")?(?: with the credentials (\{.+\}))?(?: to an endpoint whose test (.+))?$`,
			func(sc *scenario) any { return sc.aConnection }),
		step(`^the endpoint's test (passes|says|fails|is|gets|lacks)(.*)$`, func(sc *scenario) any { return sc.testChanges }),
		step(`^a client (fetches|lists|saves) the destination(?: again)?$`, func(sc *scenario) any { return sc.looksAtDestination }),
		step(`^a client looks at the destination in every way$`, func(sc *scenario) any { return sc.looksInEveryWay }),
		step(`^a client updates the destination with (\{.*\})(, a moment later)?$`, func(sc *scenario) any { return sc.updatesDestination }),
		step(`^the list shows the destination (once|no more)$`, func(sc *scenario) any { return sc.isListed }),
		step(`^some step of the latest test failed(?: with "([^"]*)")?$`, func(sc *scenario) any { return sc.stepFailed }),
		step(`^the service (?:calls|called) the endpoint with the token "(\{secret[a-z-]*\})"$`, func(sc *scenario) any { return sc.callsWithToken }),
		step(`^the latest call of the service is test_connection$`, func(sc *scenario) any { return sc.latestIsTest }),
		step(`^no destination has the name "(\{name[a-z-]*\})"$`, func(sc *scenario) any { return sc.noneIsCalled }),
	}
}

// aConnection makes a connection, whatever the API answers.
func (sc *scenario) aConnection(suffix, credentials, test string) error {
	c := connecting{}
	var err error
	if c.suffix, err = sc.spoken(suffix); err != nil {
		return err
	}
	if test != "" {
		if c.script, err = testThat(test); err != nil {
			return err
		}
	}
	given := map[string]any{}
	if credentials != "" {
		text, err := sc.spoken(credentials)
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return fmt.Errorf("read credentials %s: %w", credentials, err)
		}
	}
	d, err := sc.place(c)
	if err != nil {
		return err
	}
	return sc.connects(d, d.connection(given))
}

// connects makes a connection to an endpoint.
func (sc *scenario) connects(d *destination, body map[string]any) error {
	sc.dest = d
	sc.answered.callsBefore, sc.answered.latest = 0, nil
	a, err := sc.api(request{method: "POST", path: "/destinations", body: body})
	if err != nil {
		return err
	}
	sc.anew("destination")
	sc.shows("destination", "creation", a, a.at("data"))
	sc.words["url"], sc.words["given"] = d.url, d.name
	if d.id = a.id("data", "id"); d.id != 0 {
		sc.made(thing{kind: "destinations", id: d.id, name: d.name})
	}
	return nil
}

// here is the path of the latest destination; without one nothing is decided.
func (sc *scenario) here() (string, error) {
	if sc.dest == nil || sc.dest.id == 0 {
		return "", engine.Outcome(conformance.Inconclusive, "", "the destination could not be made")
	}
	return "/destinations/" + strconv.FormatInt(sc.dest.id, 10), nil
}

func (sc *scenario) looksAtDestination(how string) error {
	path, err := sc.here()
	if err != nil {
		return err
	}
	switch how {
	case "lists":
		return sc.listsDestination()
	case "saves":
		return sc.updatesDestination(`{"name":"{given}"}`, "")
	}
	a, err := sc.api(request{method: "GET", path: path})
	if err != nil {
		return err
	}
	sc.answered.latest = nil
	sc.shows("destination", "fetch", a, a.at("data"))
	return nil
}

// listsDestination looks for the latest destination in the list, which begins
// with the newest (spec 8).
func (sc *scenario) listsDestination() error {
	times := 0
	all, err := sc.pages("/destinations", func(a *answer, n *wire.Node) {
		if id, _ := n.Get("id").Int(); id == sc.dest.id {
			times++
			sc.shows("destination", "list", a, n)
		}
	})
	if err != nil {
		return err
	}
	sc.answered.listed, sc.answered.latest = some(times), all
	return nil
}

// mostPages bounds a list that never ends.
const mostPages = 50

// pages goes through a list.
func (sc *scenario) pages(path string, each func(*answer, *wire.Node)) ([]*answer, error) {
	var all []*answer
	for page := 1; page <= mostPages; page++ {
		a, err := sc.api(request{method: "GET", path: path + "?per_page=100&page=" + strconv.Itoa(page)})
		if err != nil {
			return nil, err
		}
		all = append(all, a)
		data := a.at("data")
		if !data.Is(wire.Array) {
			sc.broken("a list in data (spec 2.1)", a.short(), a)
			return all, sc.Held()
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
func (sc *scenario) isListed(how string) error {
	times, looked := sc.answered.listed.get()
	if !looked {
		return engine.Outcome(conformance.Inconclusive, "", "the list was not looked at")
	}
	if times != map[string]int{"once": 1}[how] {
		sc.broken("the destination stands "+how+" in the list", quantity.Count(times, "time"), sc.last)
		return sc.Held()
	}
	return sc.HeldBy("looked for by its id")
}

// looksInEveryWay fetches, lists and saves: what stands in the answer to an
// update only (spec 2.2) is in the last one.
func (sc *scenario) looksInEveryWay() error {
	for _, how := range []string{"fetches", "lists"} {
		if err := sc.looksAtDestination(how); err != nil {
			return err
		}
	}
	return sc.sends(`{"name":"{given}"}`)
}

// aMoment bounds how long a time stamp may stand still: those without a
// fraction change every second.
const aMoment = 1300 * time.Millisecond

// updatesDestination changes the connection; what it looked like is forgotten.
func (sc *scenario) updatesDestination(change, later string) error {
	if later == "" {
		sc.anew("destination")
		return sc.sends(change)
	}
	return sc.later("destination", "last_tested_at", func() error { return sc.sends(change) })
}

// later does something until a moment moves on, or for a second.
func (sc *scenario) later(kind, member string, do func() error) error {
	var first *view
	for deadline := time.Now().Add(aMoment); ; {
		sc.anew(kind)
		if first == nil {
			first = sc.before[kind]
		}
		sc.before[kind] = first
		if err := do(); err != nil {
			return err
		}
		all := sc.shown(kind)
		if first == nil || len(all) == 0 || time.Now().After(deadline) || momentOf(all[0].member(member)).After(momentOf(first.member(member))) {
			return nil
		}
		if err := sc.sleep(pollAtMost); err != nil {
			return err
		}
	}
}

// sends is the update itself.
func (sc *scenario) sends(change string) error {
	path, err := sc.here()
	if err != nil {
		return err
	}
	text, err := sc.spoken(change)
	if err != nil {
		return err
	}
	sc.answered.callsBefore, sc.answered.latest = len(sc.dest.Seen("")), nil
	a, err := sc.api(request{method: "PATCH", path: path, body: json.RawMessage(`{"service_connection":` + text + `}`)})
	if err != nil {
		return err
	}
	sc.shows("destination", "update", a, a.at("data"))
	return nil
}

// callsWithToken looks at the latest call (spec 5.2.2).
func (sc *scenario) callsWithToken(word string) error {
	calls, err := sc.received()
	if err != nil {
		return err
	}
	token, err := sc.spoken(word)
	if err != nil {
		return err
	}
	if calls[0].HTTP.Header.Get("Authorization") == "" {
		return engine.Outcome(conformance.Inconclusive, "", "the service does not take auth_token for the token of a connection")
	}
	last := calls[len(calls)-1]
	if last.HTTP.Header.Get("Authorization") != "Bearer "+token {
		sc.brokenCall("Authorization: Bearer "+token, sc.secrets.String(last.HTTP.Header.Get("Authorization")), last)
		return sc.Held()
	}
	return sc.heldBy(len(calls), "call")
}

// noneIsCalled looks through the list for what must not have been made.
func (sc *scenario) noneIsCalled(word string) error {
	name, err := sc.spoken(word)
	if err != nil {
		return err
	}
	found := false
	all, err := sc.pages("/destinations", func(a *answer, n *wire.Node) {
		if jsonvalue.Text(n.Get("name")) == name {
			found = true
			sc.broken("no destination "+name, "it stands in the list", a)
		}
	})
	if err != nil {
		return err
	}
	if !found {
		sc.Proof("%s", quantity.Count(len(all), "page"))
	}
	return sc.Held()
}
