package service

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// destinationSteps are for DST, connections (spec 2.2), and CERT, certificates and tokens (spec 5.2).
var destinationSteps = []step{
	{`^a destination$`, func(sc *scenario) { sc.connect(connecting{}) }},
	{`^(?:a client makes )?a connection(?: whose URL ends in "([^"]+)")?(?: with the credentials (\{.+\}))?$`,
		func(sc *scenario, suffix, credentials string) {
			c := connecting{suffix: sc.filled(suffix)}
			if credentials != "" {
				stopAt(json.Unmarshal([]byte(sc.filled(credentials)), &c.credentials), "read credentials %s", credentials)
			}
			sc.triesConnecting(c)
		}},
	{`^a client (fetches|lists|saves) the destination(?: again)?$`, (*scenario).looksAtDestination},
	{`^a client looks at the destination in every way$`, (*scenario).looksInEveryWay},
	{`^a client updates the destination with (\{.*\})$`, (*scenario).updatesDestination},
	// spec 7.1.3: the message of a failed step.
	{`^some step of the latest test failed(?: with "([^"]*)")?$`, func(sc *scenario, message string) error {
		return each(sc, "look", sc.looked("destination"), func(v *view) {
			results := v.member("last_test_results")
			is := slices.ContainsFunc(jsonvalue.Items(results.Get("steps")), func(s *wire.Node) bool {
				said := jsonvalue.Text(s.Get("error", "message"))
				return said != "" && strings.Contains(said, message)
			})
			sc.expectView(is, v, "last_test_results", fmt.Sprintf("has a step with an error.message that says %q", message), jsonvalue.Raw(results))
		})
	}},
	// spec 5.2.2: the latest call shows it.
	{`^the service (?:calls|called) the endpoint with the token "(\{secret[a-z_]*\})"$`, func(sc *scenario, word string) error {
		token, calls := sc.filled(word), sc.dest.Seen("")
		if len(calls) == 0 || calls[0].HTTP.Header.Get("Authorization") == "" {
			undecided("the service does not take auth_token for the token of a connection")
		}
		last := calls[len(calls)-1]
		got := last.HTTP.Header.Get("Authorization")
		sc.expectCall(got == "Bearer "+token, "Authorization: Bearer "+token, sc.secrets.String(got), last)
		return sc.heldBy(len(calls), "call")
	}},
	{`^the latest call of the service is test_connection$`, func(sc *scenario) error {
		calls := sc.dest.Seen("")
		mustSee(len(calls), "the service has not called the destination")
		for _, c := range calls[sc.skippedCalls:] {
			if c.Method == rpc.MethodTestConnection {
				return sc.HeldBy("call %d", c.Number)
			}
		}
		others := quantity.Count(len(calls)-sc.skippedCalls, "call")
		sc.brokenCall("a call of test_connection", others+" of other methods", calls[len(calls)-1])
		return sc.Held()
	}},
	// Nothing listens at its port: its list of deliveries, an extension, has what the service would have sent.
	{`^a webhook with every event$`, func(sc *scenario) {
		sc.madeBy(sc.call(request{method: "POST", path: "/webhooks", body: map[string]any{
			"name": sc.called("webhook"), "endpoint": "https://127.0.0.1:1/zz-conf",
		}}))
	}},
	{`^a client looks at all that tells of the sync$`, (*scenario).looksAtAll},

	// A refusal means something only where the same authority has signed what the service takes.
	{`^a destination with a good certificate that the service accepts$`, func(sc *scenario) {
		sc.connectsWith("good")
		if t := sc.tests[len(sc.tests)-1]; !t.passed() {
			undecided("the service does not accept a good certificate either: %s", t.message())
		}
	}},
	{`^a client connects a destination with a certificate that is (good|self-signed|for another name)$`, (*scenario).connectsWith},
	{`^a client connects a destination that answers in the encoding "gzip"$`, func(sc *scenario) {
		sc.triesConnecting(connecting{twist: func(_ *endpoint.Call, r *endpoint.Reply) { r.Edit = packed }})
	}},
	// It leads to another one of the same origin.
	{`^a client connects a destination that answers with a redirect of status "(\d{3})"$`, func(sc *scenario, status int) {
		other := sc.place(connecting{})
		sc.redirected = other.Endpoint
		sc.triesConnecting(connecting{twist: func(_ *endpoint.Call, r *endpoint.Reply) {
			*r = endpoint.Reply{Status: status, Header: http.Header{"Location": {other.url}}}
		}})
	}},
	{`^the certificate of the destination expires$`, func(sc *scenario) {
		u, err := url.Parse(sc.dest.url)
		stopAt(err, "read address")
		expired, err := sc.trusted().Issue(u.Hostname(), endpoint.Properties{Expired: true})
		stop(err)
		sc.certificate.Store(expired)
		sc.listens()
	}},
	{`^(that|the other) destination is (not )?called$`, func(sc *scenario, which, not string) error {
		t, called, from := sc.tests[len(sc.tests)-1], sc.dest.Endpoint, sc.skippedCalls
		if which == "the other" {
			sc.received()
			called, from = sc.redirected, 0
		}
		calls := called.Seen("")
		calls = calls[min(from, len(calls)):]
		switch {
		case not == "" && (len(calls) == 0 || !t.passed()):
			sc.broken("the connection test has passed", t.message(), t.a)
		case not != "" && len(calls) > 0:
			sc.brokenCall("no call", calls[0].Method, calls...)
		case not != "" && from == 0 && t.passed():
			sc.broken("a failed connection test", t.a.short(), t.a)
		}
		return sc.heldBy(len(calls), "call")
	}},
	{`^the connection is refused$`, func(sc *scenario) error {
		sc.expect(sc.last().Status >= 400, "the connection is refused", sc.last().short(), sc.last())
		return sc.HeldBy("HTTP %d", sc.last().Status)
	}},
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

// pages goes through a list.
func (sc *scenario) pages(path string, see func(*answer, *wire.Node)) []*answer {
	const mostPages = 50 // of a list that never ends
	var all []*answer
	for page := 1; page <= mostPages; page++ {
		a := sc.api(request{method: "GET", path: path + "?per_page=100&page=" + strconv.Itoa(page)})
		all = append(all, a)
		data := a.at("data")
		sc.expect(data.Is(wire.Array), "a list in data (spec 2.1)", a.short(), a)
		stop(sc.Held())
		for _, n := range data.Items {
			see(a, n)
		}
		if next, is := a.at("pagination", "next_page").Int(); !is || next <= int64(page) {
			break
		}
	}
	return all
}

// looksInEveryWay fetches, lists and saves: the last one has what only the answer to an update has (spec 2.2).
func (sc *scenario) looksInEveryWay() {
	sc.looksAtDestination("fetches")
	sc.looksAtDestination("lists")
	sc.sends(`{"name":"{given}"}`)
}

// updatesDestination changes the connection, and forgets how it looked.
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

// looksAtAll reads every place where an error of a call may end up, also what only a stand-in shows.
func (sc *scenario) looksAtAll() {
	sc.looksInEveryWay()
	s := sc.latest()
	id := sc.latestRun().id("data", "id")
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
		sc.answers = append(sc.answers, sc.control("GET", path, nil))
	}
}

// packed is a body in the encoding gzip.
func packed(body []byte, header http.Header) []byte {
	header.Set("Content-Encoding", "gzip")
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// trusted gives the authority of the run, which the service knows. Only a stand-in takes one.
func (sc *scenario) trusted() *endpoint.Authority {
	sc.trust.mu.Lock()
	defer sc.trust.mu.Unlock()
	if sc.trust.authority == nil {
		a, err := endpoint.NewAuthority()
		stop(err)
		sc.control("POST", "/trust", json.RawMessage(a.PEM()))
		sc.trust.authority = a
	}
	return sc.trust.authority
}

// connectsWith connects a destination behind a separate listener with a certificate of the authority of the run.
func (sc *scenario) connectsWith(how string) {
	by := sc.trusted()
	sc.certificate = &endpoint.Shown{}
	// The address is known only when it listens; until then there are no calls.
	first, err := by.Issue("localhost", endpoint.Properties{})
	stop(err)
	address, closeListener, err := sc.opts.Listen(sc.certificate.TLSConfig(first), sc.endpoints)
	stopAt(err, "listen with TLS")
	sc.endings = append(sc.endings, func(context.Context) error { closeListener(); return nil })
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" {
		stop(engine.NotRun("--simulator-url", "needs a TLS listener that the service can reach directly, without --simulator-url"))
	}
	host := u.Hostname()
	if how == "for another name" {
		host = "another.example"
	}
	shown, err := by.Issue(host, endpoint.Properties{SelfSigned: how == "self-signed"})
	stop(err)
	sc.certificate.Store(shown)
	// Every call needs a separate handshake, and so meets the current certificate.
	d := sc.place(connecting{twist: func(_ *endpoint.Call, r *endpoint.Reply) { r.AddHeader("Connection", "close") }})
	d.origin = originOf(address)
	d.url = strings.TrimRight(address, "/") + "/" + d.name
	sc.triesConnectionTo(d, nil)
}
