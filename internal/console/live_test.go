package console

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

// counting is a console with one live page that shows how often it was made.
func counting(t *testing.T, viewers int) (*Console, *atomic.Int64) {
	t.Helper()
	made := &atomic.Int64{}
	c := New(Options{
		Name: "test", MaxViewers: viewers, Token: "token",
		Pages: fstest.MapFS{
			"_part.html": {Data: []byte(`{{define "part"}}<i>{{.}}</i>{{end}}`)},
			"page.html":  {Data: []byte(`{{define "title"}}T{{end}}{{define "main"}}<div id="live">{{template "live" .}}</div>{{end}}{{define "live"}}made {{template "part" .Data}}{{end}}`)},
			"still.html": {Data: []byte(`{{define "title"}}S{{end}}{{define "main"}}{{.Typed "name" "x"}}{{end}}`)},
		},
	})
	t.Cleanup(c.Close)
	c.Page("/{$}", "page", func(*Request) (any, error) { return fmt.Sprint(made.Add(1)), nil })
	c.Page("/still/{id}", "still", func(r *Request) (any, error) { return r.ID("id"), nil })
	c.Action("/still/{id}", "/still/{id}", func(r *Request) (string, error) {
		if r.Form("name") == "" {
			return "", Refuse(http.StatusBadRequest, "name: <b>is required")
		}
		r.Done("It is <done>.")
		return "/still/" + r.Value("id"), nil
	})
	return c, made
}

// watch opens the live updates of a page.
func watch(t *testing.T, ctx context.Context, server *httptest.Server, page string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", server.URL+Path+"/live?page="+page, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer token")
	got, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { got.Body.Close() })
	return got
}

// TestLivePages: each view is made once for all who look at it, as many as there may be.
func TestLivePages(t *testing.T) {
	const most = 5
	c, made := counting(t, most)
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	t.Cleanup(c.Close)
	ctx, leave := context.WithCancel(t.Context())
	var lines []*bufio.Scanner
	for range most {
		got := watch(t, ctx, server, "/")
		require.Equal(t, 200, got.StatusCode)
		require.Equal(t, "text/event-stream", got.Header.Get("Content-Type"))
		lines = append(lines, bufio.NewScanner(got.Body))
	}
	refused := watch(t, ctx, server, "/")
	require.Equal(t, 503, refused.StatusCode)
	require.Equal(t, "10", refused.Header.Get("Retry-After"))
	for _, l := range lines {
		for l.Scan() && !strings.HasPrefix(l.Text(), "data: made <i>") {
		}
		require.True(t, strings.HasPrefix(l.Text(), "data: made <i>"), "%q", l.Text())
	}
	require.LessOrEqual(t, made.Load(), int64(2*most), "not once for each viewer and round")
	require.Equal(t, 404, watch(t, ctx, server, "/still/1").StatusCode)
	require.Equal(t, 404, watch(t, ctx, server, "/nothing").StatusCode)
	require.Equal(t, 400, watch(t, ctx, server, "//x").StatusCode)
	leave()
	require.Eventually(t, func() bool {
		c.hub.mu.Lock()
		defer c.hub.mu.Unlock()
		return c.hub.viewers == 0 && len(c.hub.views) == 0
	}, forEver, tick)
	again := watch(t, t.Context(), server, "/")
	require.Equal(t, 200, again.StatusCode)
	c.Close()
	l := bufio.NewScanner(again.Body)
	for l.Scan() && l.Text() != "event: end" {
	}
	require.Equal(t, "event: end", l.Text())
	require.Equal(t, 503, watch(t, t.Context(), server, "/").StatusCode)
}

// TestSlowViewersHoldNothingUp: one that never reads gets the newest state at the end, and
// rounds go on without it.
func TestSlowViewersHoldNothingUp(t *testing.T) {
	c, _ := counting(t, 0)
	r := httptest.NewRequest("GET", Path+"/", nil)
	page := c.find(r)
	v, err := c.hub.enter("key", r, page)
	require.NoError(t, err)
	one := c.hub.views["key"]
	for range 50 {
		c.hub.round(one)
	}
	require.Len(t, v.states, 1)
	newest := string(<-v.states)
	c.hub.round(one)
	require.NotEqual(t, newest, string(<-v.states))
	c.hub.leave("key", v)
}

// TestForms: post, redirect, get; a refused form is shown again with the input.
func TestForms(t *testing.T) {
	c, _ := counting(t, 0)
	ask := func(method, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://host"+Path+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer token")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, f := range change {
			f(r)
		}
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		return w
	}
	refused := ask("POST", "/still/7", "name=&other=%3Ci%3E")
	require.Equal(t, 400, refused.Code)
	require.Contains(t, refused.Body.String(), "name: &lt;b&gt;is required")
	done := ask("POST", "/still/7", "name=x")
	require.Equal(t, 303, done.Code)
	require.Equal(t, Path+"/still/7", done.Header().Get("Location"))
	cookie := done.Result().Cookies()[0]
	next := ask("GET", "/still/7", "", func(r *http.Request) { r.AddCookie(cookie) })
	require.Contains(t, next.Body.String(), "It is &lt;done&gt;.")
	require.Negative(t, next.Result().Cookies()[0].MaxAge)
	require.Equal(t, 404, ask("GET", "/nothing", "").Code)
	for _, a := range []asset{c.styled, c.script, c.icon} {
		got := ask("GET", a.name, "", func(r *http.Request) { r.Header.Del("Authorization") })
		require.Equal(t, 200, got.Code)
		require.Contains(t, got.Header().Get("Cache-Control"), "immutable")
	}
}

// forEver is as long as a test may take; tick is how often it looks.
const (
	forEver = time.Minute
	tick    = 10 * time.Millisecond
)
