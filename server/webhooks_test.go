package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

func TestWebhook(t *testing.T) {
	proves(t, "F-4-32", "F-6-02")
	w := newWorld(t)
	const endpoint = "https://example.com/hooks/s3cret-part?key=s3cret"
	a := w.do("POST", "/webhooks", w.key, map[string]any{"name": "Hook", "endpoint": endpoint, "description": "on call"}).want(201)
	require.Equal(t, "created", a.at("status"))
	require.Equal(t, endpoint, a.at("data.endpoint"))
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
	require.Equal(t, []any{"sync.started", "sync.failed"}, changed.at("data.events"))
	require.Nil(t, changed.at("data.description"))
	require.Equal(t, endpoint, changed.at("data.endpoint"))
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
