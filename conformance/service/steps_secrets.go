package service

import (
	"net/url"
	"strconv"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/destsim/rpc"
)

// secretsSteps are about the secrets of connections in all that a service tells
// (spec 5.2).
func secretsSteps() []conformance.Step {
	return []conformance.Step{
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
