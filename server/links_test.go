package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/rest"
)

const backTo = "https://app.example.com/connected?tab=1"

// link makes one and gives the path of its page.
func (w *world) link(path string, more map[string]any) string {
	w.t.Helper()
	body := map[string]any{"redirect_uri": backTo}
	maps.Copy(body, more)
	uri := w.do("POST", path, w.key, body).want(201).at("data.uri").(string)
	u := must(url.Parse(uri))(w.t)
	require.Equal(w.t, "http://example.com", u.Scheme+"://"+u.Host)
	return u.Path
}

// opens reads a page as a browser without any token does.
func (w *world) opens(path string) *answer {
	w.t.Helper()
	return w.send(httptest.NewRequest("GET", path, nil))
}

// answers sends the form of a page; nil headers are those of a browser on the page.
func (w *world) answers(path, decision string, form url.Values, header ...string) *answer {
	w.t.Helper()
	if form == nil {
		form = url.Values{}
	}
	form.Set("answer", decision)
	r := httptest.NewRequest("POST", path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://example.com")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return w.send(r)
}

// sentBack is what a browser takes back to the site of the link's maker.
func (a *answer) sentBack() url.Values {
	a.t.Helper()
	a.want(http.StatusSeeOther)
	u := must(url.Parse(a.header.Get("Location")))(a.t)
	require.Equal(a.t, "https://app.example.com/connected", u.Scheme+"://"+u.Host+u.Path)
	require.Equal(a.t, "1", u.Query().Get("tab"), "what was in the address stays")
	return u.Query()
}

func TestConnectLinks(t *testing.T) {
	w := newWorld(t)
	path := w.link("/source_connect_links", map[string]any{"type": "sqlite"})
	page := w.opens(path).want(200)
	holds(t, string(page.text), `name="credentials.path"`, `name="name"`)
	// An error is shown next to its input, and the link opens again.
	wrong := w.answers(path, "allow", url.Values{"name": {`"><b>Shop`}}).want(400)
	require.Regexp(t, `(?s)credentials.path.*class="problem">is required`, string(wrong.text))
	require.Contains(t, string(wrong.text), `&#34;&gt;&lt;b&gt;Shop`, "what was typed stays, escaped")
	require.NotContains(t, string(wrong.text), "<b>Shop")
	took := w.answers(path, "allow", url.Values{"name": {"Shop"}, "credentials.path": {w.sourceFile()}}).sentBack()
	require.Equal(t, "success", took.Get("status"))
	require.Equal(t, "true", took.Get("last_test_succeeded"))
	made := w.do("GET", "/sources/"+took.Get("source_id"), w.key, nil).want(200)
	made.is("data.name", "Shop", "data.type", "sqlite")
	require.Contains(t, string(w.opens(path).want(410).text), "used before")
	require.Contains(t, string(w.answers(path, "allow", nil).want(410).text), "used before")
	require.NotNil(t, w.do("GET", "/source_connect_links", w.key, nil).want(200).at("data.0.used_at"))

	// A destination, by either door; the token is nowhere on the page.
	address := w.do("GET", "/destinations/authorize_url?type=custom_api&redirect_uri="+url.QueryEscape(backTo), w.key, nil).want(200).at("authorize_url").(string)
	for _, path := range []string{w.link("/destination_connect_links", map[string]any{"type": "custom_api"}), strings.TrimPrefix(address, "http://example.com")} {
		require.NotContains(t, string(w.opens(path).want(200).text), strings.TrimPrefix(path, rest.LinkPath))
		took = w.answers(path, "allow", url.Values{
			"name": {"Endpoint"}, "credentials.api_version": {"1"}, "credentials.webhook_url": {w.destination()}, "credentials.auth_token": {"destination-token"},
		}).sentBack()
		require.Equal(t, "true", took.Get("last_test_succeeded"))
		require.Equal(t, "custom_api", w.do("GET", "/destinations/"+took.Get("destination_id"), w.key, nil).want(200).at("data.type"))
	}

	path = w.link("/source_connect_links", map[string]any{"type": "sqlite"})
	require.Equal(t, "refused", w.answers(path, "refuse", nil).sentBack().Get("status"))
	w.opens(path).want(410)
	require.Len(t, w.do("GET", "/sources", w.key, nil).want(200).at("data"), 1)
}

// TestEveryTypeHasAForm: what a catalogue calls creatable by a link has a page with
// inputs for all its credentials.
func TestEveryTypeHasAForm(t *testing.T) {
	w := newWorld(t)
	for list, links := range map[string]string{"/source_types": "/source_connect_links", "/connectors": "/destination_connect_links"} {
		for _, typ := range w.do("GET", list+"?per_page=100", w.key, nil).want(200).objects("data") {
			require.Equal(t, true, typ["creatable_via_connect_link"], typ["service_name"])
			page := string(w.opens(w.link(links, map[string]any{"type": typ["service_name"]})).want(200).text)
			for _, field := range typ["configuration_fields"].(map[string]any)["fields"].([]any) {
				f := field.(map[string]any)
				require.Contains(t, page, fmt.Sprintf(`name="credentials.%s"`, f["id"]), typ["service_name"])
				if f["is_password_type_field"] == true {
					require.Contains(t, page, fmt.Sprintf(`name="credentials.%s" type="password"`, f["id"]))
				}
			}
		}
	}
}

func TestEditLinks(t *testing.T) {
	w := newSyncWorld(t)
	path := w.link(fmt.Sprintf("/sources/%d/connect_links", w.source), nil)
	require.NotContains(t, string(w.opens(path).want(200).text), w.sourceFile(), "what is kept is not shown")
	require.Equal(t, fmt.Sprint(w.source), w.answers(path, "allow", url.Values{"name": {"Renamed"}}).sentBack().Get("source_id"))
	require.Equal(t, "Renamed", w.do("GET", fmt.Sprintf("/sources/%d", w.source), w.key, nil).want(200).at("data.name"))

	path = w.link(fmt.Sprintf("/destinations/%d/connect_links", w.dest), nil)
	require.NotContains(t, string(w.opens(path).want(200).text), "destination-token")
	took := w.answers(path, "allow", url.Values{"credentials.auth_token": {"wrong"}}).sentBack()
	require.Equal(t, "false", took.Get("last_test_succeeded"), "the test with the new token failed")
	path = w.link(fmt.Sprintf("/destinations/%d/connect_links", w.dest), nil)
	require.Equal(t, "true", w.answers(path, "allow", url.Values{"credentials.auth_token": {"destination-token"}}).sentBack().Get("last_test_succeeded"))

	id := w.kept(nil).id("data.id")
	path = w.link(fmt.Sprintf("/syncs/%d/connect_links", id), nil)
	took = w.answers(path, "allow", url.Values{"label": {"From a page"}, "run": {"true"}}).sentBack()
	w.control("POST", "/settle", nil).want(200)
	require.Equal(t, "completed", w.do("GET", "/sync_runs/"+took.Get("sync_run_id"), w.key, nil).want(200).at("data.status"))
	require.Equal(t, "From a page", w.do("GET", fmt.Sprintf("/syncs/%d", id), w.key, nil).want(200).at("data.label"))

	path = w.link("/sync_management_links", nil)
	require.Contains(t, string(w.opens(path).want(200).text), "From a page")
	took = w.answers(path, "allow", url.Values{fmt.Sprintf("sync.%d", id): {"pause"}}).sentBack()
	require.Equal(t, fmt.Sprint(id), took.Get("paused_sync_id"))
	require.Equal(t, true, w.do("GET", fmt.Sprintf("/syncs/%d", id), w.key, nil).want(200).at("data.paused"))

	path = w.link(fmt.Sprintf("/syncs/%d/connect_links", id), nil)
	w.remove(fmt.Sprintf("/syncs/%d", id), w.key)
	require.Contains(t, string(w.opens(path).want(404).text), "what it was for is gone")
}

func TestSegmentManagementLinks(t *testing.T) {
	w := newSegmentWorld(t)
	old := w.segment("Old", "age > 30")
	path := w.link("/segment_management_links", nil)
	require.Contains(t, string(w.opens(path).want(200).text), "Delete Old of People: age &gt; 30")
	form := url.Values{"dataset_id": {fmt.Sprint(w.dataset)}, "name": {"Young"}, "query": {"years < 18"}}
	require.Contains(t, string(w.answers(path, "allow", form).want(400).text), "years")
	form.Set("query", "age < 18")
	form.Set(fmt.Sprintf("delete.%d.%d", w.source, old), "true")
	took := w.answers(path, "allow", form).sentBack()
	require.Equal(t, fmt.Sprint(old), took.Get("deleted_segment_id"))
	require.Equal(t, "Young", w.do("GET", w.path+"/"+took.Get("segment_id"), w.key, nil).want(200).at("data.name"))
	w.do("GET", fmt.Sprintf("%s/%d", w.path, old), w.key, nil).want(404)
}

// TestLinksAreGuarded: the address is the key, and it opens nothing but its page, in
// time, once, and from nowhere else.
func TestLinksAreGuarded(t *testing.T) {
	w := newWorld(t)
	make := func() string { return w.link("/source_connect_links", map[string]any{"type": "generator"}) }
	path, second := make(), make()
	require.Regexp(t, regexp.MustCompile(`^/connect/[A-Za-z0-9_-]{43}$`), path)
	require.NotEqual(t, path, second)
	page := w.opens(path).want(200)
	policy := page.header.Get("Content-Security-Policy")
	holds(t, policy, "default-src 'none'", "form-action 'self' https://app.example.com",
		"frame-ancestors 'self' https://app.example.com", "base-uri 'none'", "style-src 'nonce-")
	require.NotContains(t, policy, "unsafe")
	require.NotContains(t, string(page.text), "<script")
	require.Equal(t, "no-store", page.header.Get("Cache-Control"))
	require.Equal(t, "same-origin", page.header.Get("Referrer-Policy"))
	require.Equal(t, "nosniff", page.header.Get("X-Content-Type-Options"))
	w.opens(path + "x").want(404)

	form := url.Values{"name": {"Made up"}, "credentials.rows": {"3"}}
	for name, header := range map[string][]string{
		"another origin": {"Origin", "https://evil.example"}, "no origin": {"Origin", "null"}, "another site": {"Sec-Fetch-Site", "cross-site"},
		"a neighbour": {"Sec-Fetch-Site", "same-site"},
	} {
		require.Contains(t, string(w.answers(path, "allow", form, header...).want(403).text), "another site", name)
	}
	w.answers(path, "perhaps", form).want(400)
	require.Empty(t, w.do("GET", "/sources", w.key, nil).want(200).at("data"))

	// Two answers at once make one source.
	var answers sync.WaitGroup
	codes := [2]int{}
	for i := range codes {
		answers.Go(func() {
			codes[i] = w.answers(path, "allow", url.Values{"name": {"Once"}, "credentials.rows": {"3"}}).code
		})
	}
	answers.Wait()
	require.ElementsMatch(t, []int{303, 410}, codes[:])
	require.Len(t, w.do("GET", "/sources", w.key, nil).want(200).at("data"), 1)

	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	w.control("POST", "/clock", `{"advance":"24h"}`).want(200)
	require.Contains(t, string(w.opens(second).want(410).text), "has expired")
	w.answers(second, "allow", form).want(410)

	// The journal shows no address that opens a page.
	third := make()
	require.NotContains(t, string(w.control("GET", "/journal/requests", nil).want(200).text), strings.TrimPrefix(third, rest.LinkPath))
}

func TestWrongLinks(t *testing.T) {
	w := newWorld(t)
	for name, uri := range map[string]string{
		"a script": "javascript:alert(1)", "data": "data:text/html,x", "a file": "file:///etc/passwd", "no host": "https:///x", "relative": "/connected",
		"a user": "https://a:b@app.example.com", "a policy": "https://app.example.com;script-src", "no address": "http://[", "too long": "https://app.example.com/" + strings.Repeat("x", 2000),
	} {
		require.Contains(t, w.do("POST", "/sync_management_links", w.key, map[string]any{"redirect_uri": uri}).want(400).problems(), "redirect_uri", name)
		require.Contains(t, w.do("GET", "/destinations/authorize_url?type=custom_api&redirect_uri="+url.QueryEscape(uri), w.key, nil).want(400).problems(), "redirect_uri", name)
	}
	require.Contains(t, w.do("POST", "/source_connect_links", w.key, map[string]any{"type": "custom_api", "redirect_uri": backTo}).want(400).problems()["type"], "sqlite")
	require.Contains(t, w.do("POST", "/destination_connect_links", w.key, map[string]any{"type": "sqlite", "redirect_uri": backTo}).want(400).problems()["type"], "custom_api")
	id := w.newSource()
	w.do("POST", fmt.Sprintf("/sources/%d/connect_links", id), w.stranger(), map[string]any{"redirect_uri": backTo}).want(404)
}
