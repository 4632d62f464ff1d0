package service

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
		step(`^(?:a client makes )?a connection(?: whose URL ends in "([^"]+)")?(?: with the credentials (\{.+\}))?$`, (*scenario).aConnection),
		step(`^a client (fetches|lists|saves) the destination(?: again)?$`, (*scenario).looksAtDestination),
		step(`^a client looks at the destination in every way$`, (*scenario).looksInEveryWay),
		step(`^a client updates the destination with (\{.*\})$`, (*scenario).updatesDestination),
		step(`^some step of the latest test failed(?: with "([^"]*)")?$`, (*scenario).stepFailed),
		step(`^the service (?:calls|called) the endpoint with the token "(\{secret[a-z_]*\})"$`, (*scenario).callsWithToken),
		step(`^the latest call of the service is test_connection$`, (*scenario).latestIsTest),
		step(`^a webhook with every event$`, (*scenario).aWebhook),
		step(`^a client looks at all that tells of the sync$`, (*scenario).looksAtAll),
	}
}

// aConnection makes a connection, whatever the API answers.
func (sc *scenario) aConnection(suffix, credentials string) {
	c := connecting{suffix: sc.filled(suffix)}
	if credentials != "" {
		if err := json.Unmarshal([]byte(sc.filled(credentials)), &c.credentials); err != nil {
			stop(fmt.Errorf("read credentials %s: %w", credentials, err))
		}
	}
	sc.triesConnecting(c)
}

// here is the path of the latest destination; without one nothing is decided.
func (sc *scenario) here() string {
	if sc.dest == nil || sc.dest.id == 0 {
		undecided("the destination could not be made")
	}
	return below("destinations", sc.dest.id, "")
}

func (sc *scenario) looksAtDestination(how string) {
	path := sc.here()
	switch how {
	case "lists":
		sc.batch = sc.pages("/destinations", func(a *answer, n *wire.Node) {
			if id, _ := n.Get("id").Int(); id == sc.dest.id {
				sc.shows("destination", "list", a, n)
			}
		})
	case "saves":
		sc.updatesDestination(`{"name":"{given}"}`)
	default:
		a := sc.api(request{method: "GET", path: path})
		sc.shows("destination", "fetch", a, a.at("data"))
	}
}

// mostPages bounds a list that never ends.
const mostPages = 50

// pages goes through a list.
func (sc *scenario) pages(path string, each func(*answer, *wire.Node)) []*answer {
	var all []*answer
	for page := 1; page <= mostPages; page++ {
		a := sc.api(request{method: "GET", path: path + "?per_page=100&page=" + strconv.Itoa(page)})
		all = append(all, a)
		data := a.at("data")
		if !data.Is(wire.Array) {
			sc.broken("a list in data (spec 2.1)", a.short(), a)
			stop(sc.Held())
		}
		for _, n := range data.Items {
			each(a, n)
		}
		if next, is := a.at("pagination", "next_page").Int(); !is || next <= int64(page) {
			break
		}
	}
	return all
}

// looksInEveryWay fetches, lists and saves: what stands in the answer to an
// update only (spec 2.2) is in the last one.
func (sc *scenario) looksInEveryWay() {
	for _, how := range []string{"fetches", "lists"} {
		sc.looksAtDestination(how)
	}
	sc.sends(`{"name":"{given}"}`)
}

// updatesDestination changes the connection; what it looked like is forgotten.
func (sc *scenario) updatesDestination(change string) {
	sc.anew("destination")
	sc.sends(change)
}

// sends is the update itself.
func (sc *scenario) sends(change string) {
	path, text := sc.here(), sc.filled(change)
	sc.listens()
	a := sc.api(request{method: "PATCH", path: path, body: json.RawMessage(`{"service_connection":` + text + `}`)})
	sc.shows("destination", "update", a, a.at("data"))
}

// stepFailed looks for the message of a failed step (spec 7.1.3).
func (sc *scenario) stepFailed(message string) error {
	looks := sc.looked("destination")
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
		undecided("the service has not called the destination")
	}
	sc.brokenCall("a call of test_connection", fmt.Sprintf("%s of other methods", quantity.Count(len(calls)-sc.skippedCalls, "call")), calls[len(calls)-1])
	return sc.Held()
}

// callsWithToken looks at the latest call (spec 5.2.2).
func (sc *scenario) callsWithToken(word string) error {
	token := sc.filled(word)
	calls := sc.dest.Seen("")
	if len(calls) == 0 || calls[0].HTTP.Header.Get("Authorization") == "" {
		undecided("the service does not take auth_token for the token of a connection")
	}
	last := calls[len(calls)-1]
	if last.HTTP.Header.Get("Authorization") != "Bearer "+token {
		sc.brokenCall("Authorization: Bearer "+token, sc.secrets.String(last.HTTP.Header.Get("Authorization")), last)
	}
	return sc.heldBy(len(calls), "call")
}

// aWebhook leads to a port of this machine at which nothing listens: what the
// service would have sent stands in its list of deliveries.
func (sc *scenario) aWebhook() {
	// Lifecycle webhooks are an extension: without them there is less to look at.
	sc.madeBy(sc.call(request{method: "POST", path: "/webhooks", body: map[string]any{
		"name": sc.called("webhook"), "endpoint": "https://127.0.0.1:1/zz-conf",
	}}))
}

// looksAtAll reads every place where an error of a call may end up: resources,
// runs and their records, and what only a stand-in shows, e-mails, webhooks, the
// log of requests and the way of a record.
func (sc *scenario) looksAtAll() {
	sc.looksInEveryWay()
	s := sc.latest()
	run := sc.latestRun()
	id := run.id("data", "id")
	for _, path := range []string{
		below("destinations", s.dest.id, "/objects"), s.dest.objectPath(thingObject),
		sc.syncPath(), "/syncs?per_page=100", sc.syncPath() + "/sync_runs",
		below("sync_runs", id, ""), below("sync_runs", id, "/records?per_page=100"), "/webhooks?per_page=100",
	} {
		sc.api(request{method: "GET", path: path})
	}
	if sc.target.ControlURL == "" {
		return
	}
	paths := []string{
		fmt.Sprintf("/webhook_deliveries?sync=%d", s.id), fmt.Sprintf("/journal/webhooks?sync=%d", s.id),
		fmt.Sprintf("/journal/calls?destination=%d", s.dest.id), "/journal/requests?workspace=" + sc.words["workspace"],
		fmt.Sprintf("/explain?sync_id=%d&identifier=r00001", s.id),
	}
	for _, path := range append(paths, lists.Of(sc.noticed, mailboxOf)...) {
		a := sc.control("GET", path, nil)
		sc.answers = append(sc.answers, a)
	}
}
