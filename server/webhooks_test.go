package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/store"
)

func TestWebhook(t *testing.T) {
	proves(t, "F-4-32", "F-6-02")
	w := newWorld(t)
	const endpoint = "https://example.com/hooks/s3cret-part?key=s3cret"
	a := w.do("POST", "/webhooks", w.key, map[string]any{"name": "Hook", "endpoint": endpoint, "description": "on call"}).want(201)
	a.is("status", "created", "data.endpoint", endpoint)
	require.Len(t, a.at("data.events"), len(api.WebhookEvents), "all events unless some are chosen")
	secret := a.at("data.secret").(string)
	require.GreaterOrEqual(t, len(secret), 43, "32 random bytes")
	path := fmt.Sprintf("/webhooks/%d", a.id("data.id"))
	for _, a := range []*answer{w.do("GET", path, w.key, nil), w.do("GET", "/webhooks", w.key, nil), w.do("PATCH", path, w.key, map[string]any{})} {
		require.NotContains(t, a.want(200).text, []byte(secret))
		require.NotContains(t, string(a.text), `"secret"`)
	}
	other := w.do("POST", "/webhooks", w.key, map[string]any{"name": "Hook", "endpoint": endpoint}).want(201)
	require.NotEqual(t, secret, other.at("data.secret"))
	require.Nil(t, other.at("data.description"))

	changed := w.do("PATCH", path, w.key, map[string]any{"events": []string{"sync.failed", "sync.started"}, "description": nil}).want(200)
	changed.is("data.events", []any{"sync.started", "sync.failed"}, "data.description", nil, "data.endpoint", endpoint)
	require.Len(t, w.do("PATCH", path, w.key, map[string]any{"events": []string{}}).want(200).at("data.events"), len(api.WebhookEvents))
	require.Equal(t, "https://example.org/", w.do("PATCH", path, w.key, map[string]any{"endpoint": "https://example.org/"}).want(200).at("data.endpoint"))
	require.Equal(t, "https://example.org/", w.do("GET", path, w.key, nil).want(200).at("data.endpoint"))

	stranger := w.stranger()
	w.do("GET", path, stranger, nil).want(404)
	w.do("PATCH", path, stranger, map[string]any{"name": "Mine"}).want(404)
	w.do("DELETE", path, stranger, nil).want(404)
	require.Empty(t, w.do("GET", "/webhooks", stranger, nil).want(200).at("data"))
	w.remove(path, w.key)
}

func TestWebhookProblems(t *testing.T) {
	w := newWorld(t)
	good := w.do("POST", "/webhooks", w.key, map[string]any{"name": "Hook", "endpoint": "https://example.com/"}).want(201)
	path := fmt.Sprintf("/webhooks/%d", good.id("data.id"))
	for name, c := range map[string]struct {
		body  map[string]any
		field string
	}{
		"no name":        {map[string]any{"endpoint": "https://example.com/"}, "name"},
		"blank name":     {map[string]any{"name": " ", "endpoint": "https://example.com/"}, "name"},
		"no endpoint":    {map[string]any{"name": "A"}, "endpoint"},
		"empty endpoint": {map[string]any{"name": "A", "endpoint": ""}, "endpoint"},
		"http":           {map[string]any{"name": "A", "endpoint": "http://example.com/"}, "endpoint"},
		"loopback http":  {map[string]any{"name": "A", "endpoint": "http://127.0.0.1/"}, "endpoint"},
		"no host":        {map[string]any{"name": "A", "endpoint": "https:///hooks"}, "endpoint"},
		"relative":       {map[string]any{"name": "A", "endpoint": "/hooks"}, "endpoint"},
		"no URL":         {map[string]any{"name": "A", "endpoint": "https://exa mple.com:x/%zz"}, "endpoint"},
		"user":           {map[string]any{"name": "A", "endpoint": "https://u:s3cret@example.com/"}, "endpoint"},
		"fragment":       {map[string]any{"name": "A", "endpoint": "https://example.com/#s3cret"}, "endpoint"},
		"event twice":    {map[string]any{"name": "A", "endpoint": "https://example.com/", "events": []string{"sync.failed", "sync.failed"}}, "events"},
		"unknown event":  {map[string]any{"name": "A", "endpoint": "https://example.com/", "events": []string{"sync.failed", "sync.paused"}}, "events[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			a := w.do("POST", "/webhooks", w.key, c.body).want(400)
			require.NotEmpty(t, a.problems()[c.field], "%s", a.text)
			require.NotContains(t, string(a.text), "s3cret")
			if name != "no name" && name != "no endpoint" {
				w.do("PATCH", path, w.key, c.body).want(400)
			}
		})
	}
	require.Equal(t, good.at("data.endpoint"), w.do("GET", path, w.key, nil).want(200).at("data.endpoint"))
	require.EqualValues(t, 1, w.do("GET", "/webhooks", w.key, nil).want(200).id("pagination.total_records"))
}

// TestDeliveryRetries: five retries after 4, 8, 16, 32 and 64 s, then no more.
func TestDeliveryRetries(t *testing.T) {
	proves(t, "F-6-05")
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	var log sayings
	w, l, id := overheard(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	t.Cleanup(l.CloseClientConnections)
	hook, _ := w.hook(l, "sync.failed")
	l.answers(500, 404, 302, 500, 503, 500)
	start := w.s.Clock().Now()
	w.run(id, "broken")
	shown := w.control("GET", "/webhook_deliveries?status=open", nil).want(200)
	shown.is("deliveries.0.error", "http status 500 Internal Server Error", "deliveries.0.attempts", 1)
	require.EqualValues(t, hook, shown.id("deliveries.0.webhook_id"))
	require.Equal(t, start.Add(4*time.Second).Format("2006-01-02T15:04:05.000Z"), shown.at("deliveries.0.next_attempt_at"))
	require.Len(t, w.advance(time.Hour), 10, "five timers, and the lane that each of them starts")
	list := l.take()
	for _, h := range list {
		require.Equal(t, `{"workspace_id":1,"sync_id":1,"sync_run_id":1,"event":"sync.failed"}`, h.body)
	}
	require.Equal(t, []string{"0s", "4s", "12s", "28s", "1m0s", "2m4s"}, waits(start, list))
	shown = w.control("GET", "/webhook_deliveries", nil).want(200)
	shown.is("deliveries.0.status", "failed", "deliveries.0.next_attempt_at", nil)
	require.Contains(t, log.String(), "webhook not delivered")
	require.NotContains(t, log.String()+string(shown.text), "unguessable")
}

// waits are the moments of attempts, from a start on.
func waits(start time.Time, list []heard) (all []string) {
	for _, h := range list {
		all = append(all, h.at.Sub(start).Round(time.Second).String())
	}
	return all
}

// TestDeliveriesHeedRetryAfter: the wait that an endpoint requests, up to a
// minute of the service's clock, where that is longer than the schedule.
func TestDeliveriesHeedRetryAfter(t *testing.T) {
	w, l, id := overheard(t)
	w.hook(l, "sync.failed")
	start := w.s.Clock().Now()
	l.answers(503, 429, 500, 503, 200)
	l.later = []string{"30", "1", "soon", "86400"}
	w.run(id, "broken")
	w.advance(time.Hour)
	require.Equal(t, []string{"0s", "30s", "38s", "54s", "1m54s"}, waits(start, l.take()))
}

// TestJournalOfWebhooks: each attempt is in the journal, with request and
// result, and without a secret.
func TestJournalOfWebhooks(t *testing.T) {
	w, l, id := overheard(t)
	hook, secret := w.hook(l, "sync.failed", "sync.triggered")
	l.answers(200, 500, 200)
	start := w.s.Clock().Now()
	run := w.run(id, "broken")
	w.advance(time.Minute)
	page := w.control("GET", "/journal/webhooks", nil).want(200)
	require.Len(t, page.at("entries"), 3)
	for i, want := range []struct {
		event           string
		attempt, status int64
		after           time.Duration
	}{{"sync.triggered", 1, 200, 0}, {"sync.failed", 1, 500, 0}, {"sync.failed", 2, 200, 4 * time.Second}} {
		at := func(key string) string { return fmt.Sprintf("entries.%d.%s", i, key) }
		require.Equal(t, want.event, page.at(at("event")))
		require.Equal(t, want.attempt, page.id(at("attempt")))
		require.Equal(t, want.status, page.id(at("http_status")))
		page.is(at("at"), start.Add(want.after).Format("2006-01-02T15:04:05.000Z"), at("endpoint"), l.URL)
		page.is(at("body.event"), want.event)
		require.Equal(t, want.status != 200, page.at(at("next_attempt_at")) != nil)
		require.Equal(t, want.status != 200, page.at(at("error")) != "")
	}
	require.Equal(t, page.id("entries.1.delivery_id"), page.id("entries.2.delivery_id"))
	lacks(t, string(page.text), "unguessable", secret, l.take()[0].signature)
	for filter, want := range map[string]int{
		"status=5xx": 1, "event=sync.failed": 2, "event=sync.started": 0, fmt.Sprintf("webhook=%d", hook): 3, "webhook=99": 0,
		fmt.Sprintf("sync=%d&sync_run=%d", id, run.ID): 3, "sync_run=99": 0, "organization=1&workspace=1": 3, "organization=2": 0,
		"after=1&limit=1": 1,
	} {
		require.Len(t, w.control("GET", "/journal/webhooks?"+filter, nil).want(200).at("entries"), want, filter)
	}
	w.control("GET", "/journal/webhooks?webhok=1", nil).want(400)
	w.control("POST", "/journal", `{"bodies":false}`).want(200)
	w.run(id, "broken")
	require.Nil(t, w.control("GET", "/journal/webhooks?after=3", nil).want(200).at("entries.0.body"))
	w.control("DELETE", "/journal/webhooks", nil).want(200)
	require.Empty(t, w.control("GET", "/journal/webhooks", nil).want(200).at("entries"))
}

// TestDeliveriesOfSeveralWebhooks: retries fall due in the order of their
// moments, and one webhook that fails delays no other.
func TestDeliveriesOfSeveralWebhooks(t *testing.T) {
	w := frozen(t)
	bad, good := w.listen(), w.listen()
	id := w.newSync()
	w.hook(bad, "sync.triggered", "sync.started", "sync.success")
	w.hook(good, "sync.triggered", "sync.started", "sync.success")
	bad.answers(500, 500, 200, 200, 500)
	start := w.s.Clock().Now()
	_, run := w.begin(id)
	w.settle()
	require.Equal(t, []string{"triggered", "started"}, good.events())
	require.Equal(t, []string{"triggered", "started"}, bad.events())
	w.advance(3 * time.Second)
	require.Empty(t, bad.events())
	w.advance(time.Second)
	list := bad.take()
	require.Len(t, list, 2)
	for i, event := range []string{"triggered", "started"} {
		require.Equal(t, 4*time.Second, list[i].at.Sub(start).Round(time.Second))
		require.Contains(t, list[i].body, event)
	}
	require.EqualValues(t, 2, w.control("GET", fmt.Sprintf("/webhook_deliveries?sync_run=%d&event=sync.started", run.ID), nil).want(200).id("total"))
	require.EqualValues(t, 4, w.control("GET", "/webhook_deliveries?status=delivered", nil).want(200).id("total"))
	w.control("GET", "/webhook_deliveries?webhook=x", nil).want(400)
	w.control("GET", "/webhook_deliveries?organization=99", nil).want(404)
}

// TestDeliveriesSurviveARestart: what is open is sent by the next process, at
// its moment.
func TestDeliveriesSurviveARestart(t *testing.T) {
	stand := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	w := newWorld(t, inDir(t), func(c *Config) { c.SystemClock = func() time.Time { return stand } })
	l := w.listen()
	id := w.newSync()
	_, secret := w.hook(l, "sync.failed")
	l.answers(500, 500)
	w.run(id, "broken")
	w.advance(5 * time.Second)
	require.Len(t, l.take(), 2)
	w.again(nil)

	w.control("POST", "/trust", pemOf(l.Server)).want(200)
	w.control("POST", "/clock", fmt.Sprintf(`{"set":%q}`, stand.Add(5*time.Second).Format(time.RFC3339))).want(200)
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	w.settle()
	require.Empty(t, l.take(), "its moment has not come")
	w.advance(8 * time.Second)
	list := l.take()
	require.Len(t, list, 1)
	require.Equal(t, lifecycle.Signature(secret, list[0].body), list[0].signature)
	require.EqualValues(t, 3, w.control("GET", "/webhook_deliveries?status=delivered", nil).want(200).id("deliveries.0.attempts"))
}

// TestDeliveriesAndRestore: a snapshot brings back what was open in it, and
// nothing of the world before goes on.
func TestDeliveriesAndRestore(t *testing.T) {
	w, l, id := overheard(t)
	w.hook(l, "sync.failed")
	l.answers(500)
	w.run(id, "broken")
	var snapshot bytes.Buffer
	require.NoError(t, w.s.Snapshot(t.Context(), &snapshot))
	w.advance(time.Minute)
	require.Len(t, l.take(), 2)
	require.NoError(t, w.s.Restore(t.Context(), &snapshot))
	w.settle()
	require.Empty(t, l.take())
	require.EqualValues(t, 1, w.control("GET", "/webhook_deliveries?status=open", nil).want(200).id("total"))
	w.advance(time.Minute)
	require.Len(t, l.take(), 1)
	// A reset takes all of it away, timers without a delivery do nothing.
	l.answers(500)
	w.run(id, "broken")
	w.control("POST", "/reset", nil).want(200)
	l.take()
	w.advance(time.Hour)
	require.Empty(t, l.take())
}

// TestWorldReplacedDuringAnAttempt: what came of it is not stored into the new
// world, where the id may mean another delivery.
func TestWorldReplacedDuringAnAttempt(t *testing.T) {
	w, l, id := overheard(t)
	w.hook(l, "sync.failed")
	l.first = w.s.lifecycle.Forget
	w.run(id, "broken")
	require.Len(t, l.take(), 1)
	shown := w.control("GET", "/webhook_deliveries", nil).want(200)
	shown.is("deliveries.0.status", "open", "deliveries.0.attempts", 0)
	w.s.lifecycle.Resume(t.Context())
	w.settle()
	require.Len(t, l.take(), 1)
	require.EqualValues(t, 1, w.control("GET", "/webhook_deliveries?status=delivered", nil).want(200).id("total"))
}

// TestDeliveriesThatCannotBeMade: each is a failed attempt whose error names the
// site and the fix, and nothing of the path.
func TestDeliveriesThatCannotBeMade(t *testing.T) {
	w := frozen(t)
	id := w.newSync()
	trusted := w.listen()
	_, port, _ := strings.Cut(strings.TrimPrefix(trusted.URL, "https://"), ":")
	for name, tc := range map[string]struct{ endpoint, message string }{
		"nobody there":    {"https://127.0.0.1:1/unguessable-segment", "127.0.0.1:1 refuses the connection"},
		"wrong host name": {"https://localhost:" + port + "/unguessable-segment", "certificate"},
		"no TLS there":    {"https" + strings.TrimPrefix(strings.Split(w.destination(), "/hook")[0], "http") + "/unguessable-segment", "TLS"},
		"broken host":     {"https://a_b!c/unguessable-segment", "the URL names no valid host"},
	} {
		t.Run(name, func(t *testing.T) {
			a := w.do("POST", "/webhooks", w.key, map[string]any{"name": "Hook", "endpoint": tc.endpoint, "events": []string{"sync.failed"}}).want(201)
			w.run(id, "broken")
			shown := w.control("GET", fmt.Sprintf("/webhook_deliveries?webhook=%d", a.id("data.id")), nil).want(200)
			require.Contains(t, strings.ToLower(shown.at("deliveries.0.error").(string)), strings.ToLower(tc.message))
			require.Nil(t, shown.at("deliveries.0.http_status"))
			require.NotContains(t, string(shown.text), "unguessable")
			// A corrected endpoint gets what is open.
			path := fmt.Sprintf("/webhooks/%d", a.id("data.id"))
			w.do("PATCH", path, w.key, map[string]any{"endpoint": trusted.URL}).want(200)
			w.advance(4 * time.Second)
			require.Equal(t, []string{"failed"}, trusted.events())
			w.do("DELETE", path, w.key, nil).want(200)
			require.EqualValues(t, 0, w.control("GET", "/webhook_deliveries", nil).want(200).id("total"), "deliveries go with their webhook")
		})
	}
}

// TestDeletedWebhookIsNotCalled: also not by a retry that waits.
func TestDeletedWebhookIsNotCalled(t *testing.T) {
	w, l, id := overheard(t)
	hook, _ := w.hook(l, "sync.failed")
	l.answers(500)
	w.run(id, "broken")
	require.Len(t, l.take(), 1)
	w.do("DELETE", fmt.Sprintf("/webhooks/%d", hook), w.key, nil).want(200)
	w.advance(time.Hour)
	require.Empty(t, l.take())
}

// TestOldDeliveriesGo: what is over is kept for 14 days.
func TestOldDeliveriesGo(t *testing.T) {
	w, l, id := overheard(t)
	w.hook(l, "sync.success")
	w.run(id, "")
	w.advance(13 * 24 * time.Hour)
	w.run(id, "")
	require.EqualValues(t, 2, w.control("GET", "/webhook_deliveries", nil).want(200).id("total"))
	w.advance(2 * 24 * time.Hour)
	w.run(id, "")
	require.EqualValues(t, 2, w.control("GET", "/webhook_deliveries", nil).want(200).id("total"))
}

// TestCloseDuringAnAttempt: the end of the service cuts an attempt off, which
// then does not count.
func TestCloseDuringAnAttempt(t *testing.T) {
	w := newWorld(t, inDir(t))
	id := w.newSync()
	called, end := make(chan struct{}), make(chan struct{})
	slow := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(called); <-end }))
	defer slow.Close()
	defer close(end)
	w.control("POST", "/trust", pemOf(slow)).want(200)
	w.do("POST", "/webhooks", w.key, map[string]any{"name": "Hook", "endpoint": slow.URL, "events": []string{"sync.triggered"}}).want(201)
	w.begin(id)
	<-called
	require.NoError(t, w.s.Close())

	opened := must(store.Open(t.Context(), store.Options{Dir: w.s.config.Dir, MasterKey: w.s.config.MasterKey}))(t)
	defer opened.Close()
	require.NoError(t, opened.View(t.Context(), func(tx *store.Tx) error {
		open, err := tx.OpenWebhookDeliveries(0)
		require.Len(t, open, 1)
		require.Zero(t, open[0].Attempts)
		require.True(t, json.Valid([]byte(open[0].Body)))
		return err
	}))
}
