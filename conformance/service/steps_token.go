package service

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// tokenSteps are about who may call (spec 5.1).
func tokenSteps() []engine.Step {
	return []engine.Step{
		step(`^no answer repeats the token$`, func(sc *scenario) any { return sc.tokensStayHidden }),
		step(`^each refusal names the scheme to sign in with$`, func(sc *scenario) any { return sc.refusalsNameScheme }),
		step(`^no workspace has come into being$`, func(sc *scenario) any { return sc.noNewWorkspace }),
		step(`^the workspace is deleted$`, func(sc *scenario) any {
			return func() error {
				_, err := sc.must(request{method: "DELETE", path: below("workspaces", sc.named.workspace.value, ""), as: asOrganization})
				return err
			}
		}),
		step(`^no answer shows things of another workspace$`, func(sc *scenario) any { return sc.elsewhereUnseen }),
	}
}

// tokensStayHidden looks for what calls were signed with in their answers.
func (sc *scenario) tokensStayHidden() error {
	return sc.eachAnswer("answer", func(a *answer) {
		token := sc.signed(a.request).token
		if token != "" && bytes.Contains(a.Body, []byte(token)) {
			sc.broken("an answer without the token of its call", fmt.Sprintf("%s %s repeats it", a.request.method, a.request.path), a)
		}
	})
}

// refusalsNameScheme looks for the header that a 401 must have (RFC 9110, 11.6.1).
func (sc *scenario) refusalsNameScheme() error {
	return sc.eachAnswer("refusal", func(a *answer) {
		if a.Status == 401 && strings.TrimSpace(a.Header.Get("WWW-Authenticate")) == "" {
			sc.broken("a header WWW-Authenticate beside 401", a.short()+" without it", a)
		}
	})
}

// noNewWorkspace looks for workspaces with a name of the check.
func (sc *scenario) noNewWorkspace() error {
	if err := sc.needsOrganization(); err != nil {
		return err
	}
	a, err := sc.must(request{method: "GET", path: "/workspaces?per_page=100", as: asOrganization})
	if err != nil {
		return err
	}
	for _, w := range a.at("data").Items {
		if name := jsonvalue.Text(w.Get("name")); strings.HasPrefix(name, sc.prefix(sc.Check().ID)) {
			id, _ := w.Get("id").Int()
			sc.made(thing{kind: "workspaces", id: id, name: name, as: asOrganization})
			sc.broken("a refused call makes nothing", "the workspace "+name+" is there", append(sc.batch, a)...)
		}
	}
	return sc.HeldBy("%s looked at", quantity.Count(len(a.at("data").Items), "workspace"))
}

// elsewhereUnseen looks for the scenario's destination and sync in answers that
// another workspace's key was given.
func (sc *scenario) elsewhereUnseen() error {
	good := 0
	for _, a := range sc.batch {
		if a.OK() && a.Status < 300 {
			good++
		}
		for _, name := range []string{sc.dest.name, fmt.Sprint(sc.latest().body["label"])} {
			if bytes.Contains(a.Body, []byte(name)) {
				sc.broken("a key shows its own workspace only", fmt.Sprintf("%s %s shows %s", a.request.method, a.request.path, name), a)
			}
		}
	}
	if good == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "no call of the other workspace was answered")
	}
	return sc.heldBy(good, "answer")
}

// secretsSteps are about the secrets of connections in all that a service tells
// (spec 5.2).
func secretsSteps() []engine.Step {
	return []engine.Step{
		step(`^the endpoint gives no answer to any batch$`, func(sc *scenario) any { return sc.batchesUnanswered }),
		step(`^a webhook with every event$`, func(sc *scenario) any { return sc.aWebhook }),
		step(`^a client looks at all that tells of the sync$`, func(sc *scenario) any { return sc.looksAtAll }),
	}
}

// batchesUnanswered closes the connection on every batch: the error of the HTTP
// library that a service then has names the URL.
func (sc *scenario) batchesUnanswered() error {
	if _, err := sc.here(); err != nil {
		return err
	}
	sc.dest.SetScript(func(c *endpoint.Call) *endpoint.Reply {
		if c.Method == rpc.MethodSyncBatch {
			return &endpoint.Reply{Cut: true}
		}
		return nil
	})
	return nil
}

// aWebhook leads to a port of this machine at which nothing listens: what the
// service would have sent stands in its list of deliveries.
func (sc *scenario) aWebhook() error {
	name := sc.called("webhook")
	a, err := sc.send(sc.ctx, sc.Check().ID, sc.signed(request{method: "POST", path: "/webhooks", body: map[string]any{
		"name": name, "endpoint": "https://127.0.0.1:1/zz-conf",
	}}))
	if err == nil && accepted(a) && a.id("data", "id") != 0 {
		sc.made(thing{kind: "webhooks", id: a.id("data", "id"), name: name})
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
	var run int64
	if len(s.runs) > 0 {
		run = s.runs[len(s.runs)-1].id("data", "id")
	}
	for _, path := range []string{
		below("destinations", s.dest.id, "/objects"), s.dest.objectPath(thingObject),
		sc.syncPath(), "/syncs?per_page=100", sc.syncPath() + "/sync_runs",
		below("sync_runs", run, ""), below("sync_runs", run, "/records?per_page=100"), "/webhooks?per_page=100",
	} {
		if _, err := sc.api(request{method: "GET", path: path}); err != nil {
			return err
		}
	}
	if sc.target.ControlURL == "" {
		return nil
	}
	paths := []string{
		"/webhook_deliveries?sync=" + strconv.FormatInt(s.id, 10), "/journal/webhooks?sync=" + strconv.FormatInt(s.id, 10),
		"/journal/calls?destination=" + strconv.FormatInt(s.dest.id, 10),
		"/journal/requests?workspace=" + strconv.FormatInt(sc.named.workspace.value, 10),
		"/explain?sync_id=" + strconv.FormatInt(s.id, 10) + "&identifier=r00001",
	}
	for _, to := range sc.noticed {
		paths = append(paths, "/mailbox?to="+url.QueryEscape(to))
	}
	for _, path := range paths {
		a, err := sc.control("GET", path, nil)
		if err != nil {
			return err
		}
		sc.answers = append(sc.answers, a)
	}
	return nil
}

// versionsSteps are for DEP: versions and what is deprecated (spec 9).
func versionsSteps() []engine.Step {
	return []engine.Step{
		step(`^a client calls these addresses of the same host with its token:$`, func(sc *scenario) any { return sc.callsHost }),
		step(`^none of them answers as the API$`, func(sc *scenario) any { return sc.noneIsAPI }),
		step(`^(each answer|each request|no answer) says that something is deprecated$`, func(sc *scenario) any { return sc.deprecationIsAnnounced }),
	}
}

// callsHost calls paths outside of the base address, and the base address
// beside them: a host that answers nothing at all shows nothing.
func (sc *scenario) callsHost(paths *engine.Table) error {
	if _, err := sc.must(request{method: http.MethodGet, path: "/syncs"}); err != nil {
		return err
	}
	sc.batch = nil
	for _, line := range engine.Rows(paths) {
		a, err := sc.api(request{method: http.MethodGet, path: line[0], outside: true})
		if err != nil {
			return err
		}
		sc.batch = append(sc.batch, a)
	}
	return nil
}

// noneIsAPI: a page of the same host may well stand at such an address.
func (sc *scenario) noneIsAPI() error {
	return sc.eachAnswer("address", func(a *answer) {
		if a.OK() && a.Status < http.StatusMultipleChoices && a.at("pagination").Is(wire.Object) {
			sc.broken("no list of syncs at "+a.request.path, a.short(), a)
		}
	})
}

// deprecationIsAnnounced looks for the header Deprecation (RFC 9745).
func (sc *scenario) deprecationIsAnnounced(which string) error {
	answers := sc.batch
	if which == "each request" {
		answers = nil
		for _, t := range sc.trials {
			answers = append(answers, t.answer)
		}
	}
	seen := 0
	for _, a := range answers {
		if !accepted(a) {
			continue
		}
		seen++
		if stated := strings.TrimSpace(a.Header.Get("Deprecation")) != ""; stated != (which != "no answer") {
			sc.broken(which+" has a header Deprecation", a.short()+` with Deprecation "`+a.Header.Get("Deprecation")+`"`, a)
		}
	}
	if seen == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "no call was answered well")
	}
	return sc.heldBy(seen, "answer")
}
