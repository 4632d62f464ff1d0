package service

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// destinationsSteps are for DST: connections to destinations (spec 2.2).
func destinationsSteps() []engine.Step {
	return []engine.Step{
		step(`^(?:a client makes )?a connection(?: whose URL ends in "([^"]+)")?(?: with the credentials (\{.+\}))?$`,
			func(sc *scenario) any { return sc.aConnection }),
		step(`^a client (fetches|lists|saves) the destination(?: again)?$`, func(sc *scenario) any { return sc.looksAtDestination }),
		step(`^a client looks at the destination in every way$`, func(sc *scenario) any { return sc.looksInEveryWay }),
		step(`^a client updates the destination with (\{.*\})$`, func(sc *scenario) any { return sc.updatesDestination }),
		step(`^some step of the latest test failed(?: with "([^"]*)")?$`, func(sc *scenario) any { return sc.stepFailed }),
		step(`^the service (?:calls|called) the endpoint with the token "(\{secret[a-z_]*\})"$`, func(sc *scenario) any { return sc.callsWithToken }),
		step(`^the latest call of the service is test_connection$`, func(sc *scenario) any { return sc.latestIsTest }),
		step(`^a webhook with every event$`, func(sc *scenario) any { return sc.aWebhook }),
		step(`^a client looks at all that tells of the sync$`, func(sc *scenario) any { return sc.looksAtAll }),
	}
}

// aConnection makes a connection, whatever the API answers.
func (sc *scenario) aConnection(suffix, credentials string) error {
	c := connecting{}
	var err error
	if c.suffix, err = sc.filled(suffix); err != nil {
		return err
	}
	if credentials != "" {
		text, err := sc.filled(credentials)
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &c.credentials); err != nil {
			return fmt.Errorf("read credentials %s: %w", credentials, err)
		}
	}
	return sc.triesConnecting(c)
}

// here is the path of the latest destination; without one nothing is decided.
func (sc *scenario) here() (string, error) {
	if sc.dest == nil || sc.dest.id == 0 {
		return "", engine.Outcome(conformance.Inconclusive, "", "the destination could not be made")
	}
	return below("destinations", sc.dest.id, ""), nil
}

func (sc *scenario) looksAtDestination(how string) error {
	path, err := sc.here()
	if err != nil {
		return err
	}
	switch how {
	case "lists":
		all, err := sc.pages("/destinations", func(a *answer, n *wire.Node) {
			if id, _ := n.Get("id").Int(); id == sc.dest.id {
				sc.shows("destination", "list", a, n)
			}
		})
		sc.batch = all
		return err
	case "saves":
		return sc.updatesDestination(`{"name":"{given}"}`)
	}
	a, err := sc.api(request{method: "GET", path: path})
	if err != nil {
		return err
	}
	sc.shows("destination", "fetch", a, a.at("data"))
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

// updatesDestination changes the connection; what it looked like is forgotten.
func (sc *scenario) updatesDestination(change string) error {
	sc.anew("destination")
	return sc.sends(change)
}

// sends is the update itself.
func (sc *scenario) sends(change string) error {
	path, err := sc.here()
	if err != nil {
		return err
	}
	text, err := sc.filled(change)
	if err != nil {
		return err
	}
	sc.listens()
	a, err := sc.api(request{method: "PATCH", path: path, body: json.RawMessage(`{"service_connection":` + text + `}`)})
	if err != nil {
		return err
	}
	sc.shows("destination", "update", a, a.at("data"))
	return nil
}

// stepFailed looks for the message of a failed step (spec 7.1.3).
func (sc *scenario) stepFailed(message string) error {
	looks, err := sc.looked("destination")
	if err != nil {
		return err
	}
	for _, v := range looks {
		steps := jsonvalue.Items(v.member("last_test_results.steps"))
		if !slices.ContainsFunc(steps, func(s *wire.Node) bool {
			said := jsonvalue.Text(s.Get("error", "message"))
			return said != "" && strings.Contains(said, message)
		}) {
			sc.brokenView(v, "last_test_results", fmt.Sprintf("has a step with an error.message that says %q", message), jsonvalue.Raw(v.member("last_test_results")))
		}
	}
	return sc.heldBy(len(looks), "look")
}

// latestIsTest reports whether the latest change tested the connection.
func (sc *scenario) latestIsTest() error {
	calls := sc.dest.Seen("")
	for _, c := range calls[sc.skippedCalls:] {
		if c.Method == rpc.MethodTestConnection {
			return sc.HeldBy("call %d", c.Number)
		}
	}
	if len(calls) == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "the service has not called the destination")
	}
	sc.brokenCall("a call of test_connection", fmt.Sprintf("%s of other methods", quantity.Count(len(calls)-sc.skippedCalls, "call")), calls[len(calls)-1])
	return sc.Held()
}

// callsWithToken looks at the latest call (spec 5.2.2).
func (sc *scenario) callsWithToken(word string) error {
	token, err := sc.filled(word)
	if err != nil {
		return err
	}
	calls := sc.dest.Seen("")
	if len(calls) == 0 || calls[0].HTTP.Header.Get("Authorization") == "" {
		return engine.Outcome(conformance.Inconclusive, "", "the service does not take auth_token for the token of a connection")
	}
	last := calls[len(calls)-1]
	if last.HTTP.Header.Get("Authorization") != "Bearer "+token {
		sc.brokenCall("Authorization: Bearer "+token, sc.secrets.String(last.HTTP.Header.Get("Authorization")), last)
	}
	return sc.heldBy(len(calls), "call")
}

// aWebhook leads to a port of this machine at which nothing listens: what the
// service would have sent stands in its list of deliveries.
func (sc *scenario) aWebhook() error {
	a, err := sc.send(sc.ctx, sc.Check().ID, sc.signed(request{method: "POST", path: "/webhooks", body: map[string]any{
		"name": sc.called("webhook"), "endpoint": "https://127.0.0.1:1/zz-conf",
	}}))
	if err == nil {
		sc.madeBy(a)
	}
	return err // lifecycle webhooks are an extension: without them there is less to look at
}

// looksAtAll reads every place where an error of a call may end up: resources,
// runs and their records, and what only a stand-in shows, e-mails, webhooks, the
// log of requests and the way of a record.
func (sc *scenario) looksAtAll() error {
	if err := sc.looksInEveryWay(); err != nil {
		return err
	}
	s := sc.latest()
	run, err := sc.latestRun()
	if err != nil {
		return err
	}
	id := run.id("data", "id")
	for _, path := range []string{
		below("destinations", s.dest.id, "/objects"), s.dest.objectPath(thingObject),
		sc.syncPath(), "/syncs?per_page=100", sc.syncPath() + "/sync_runs",
		below("sync_runs", id, ""), below("sync_runs", id, "/records?per_page=100"), "/webhooks?per_page=100",
	} {
		if _, err := sc.api(request{method: "GET", path: path}); err != nil {
			return err
		}
	}
	if sc.target.ControlURL == "" {
		return nil
	}
	paths := []string{
		fmt.Sprintf("/webhook_deliveries?sync=%d", s.id), fmt.Sprintf("/journal/webhooks?sync=%d", s.id),
		fmt.Sprintf("/journal/calls?destination=%d", s.dest.id), "/journal/requests?workspace=" + sc.words["workspace"],
		fmt.Sprintf("/explain?sync_id=%d&identifier=r00001", s.id),
	}
	for _, path := range append(paths, lists.Of(sc.noticed, mailboxOf)...) {
		a, err := sc.control("GET", path, nil)
		if err != nil {
			return err
		}
		sc.answers = append(sc.answers, a)
	}
	return nil
}
