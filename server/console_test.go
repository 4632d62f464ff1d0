package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/reach"
)

// visitor is a browser without a script: it keeps cookies and follows redirects.
type visitor struct {
	t       testing.TB
	s       http.Handler
	cookies map[string]string
	from    string // where it calls from
	host    string
}

const consoleAt = "/_control/console"

func newVisitor(t testing.TB, s http.Handler) *visitor {
	return &visitor{t: t, s: s, cookies: map[string]string{}, from: "127.0.0.1:9", host: "127.0.0.1:8080"}
}

// newVisited is a world and a visitor of its console.
func newVisited(t testing.TB) (*world, *visitor) {
	w := newWorld(t)
	return w, newVisitor(t, w.s)
}

// seen is a page as a visitor gets it.
type seen struct {
	*httptest.ResponseRecorder
	t    testing.TB
	path string
}

func (v *visitor) ask(method, path string, form url.Values, change ...func(*http.Request)) *seen {
	v.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, "http://"+v.host+path, body)
	r.RemoteAddr, r.Host = v.from, v.host
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://"+v.host)
	}
	for name, value := range v.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	for _, f := range change {
		f(r)
	}
	w := serve(v.s, r)
	for _, c := range w.Result().Cookies() {
		require.True(v.t, c.HttpOnly)
		require.Equal(v.t, http.SameSiteStrictMode, c.SameSite)
		if c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		} else {
			v.cookies[c.Name] = c.Value
		}
	}
	return &seen{w, v.t, path}
}

// open gets a page below the console.
func (v *visitor) open(path string) *seen {
	v.t.Helper()
	return v.ask("GET", consoleAt+path, nil)
}

// send submits a form, and follows to the page that comes next.
func (v *visitor) send(path string, pairs ...string) *seen {
	v.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	got := v.ask("POST", consoleAt+path, form)
	if got.Code == http.StatusSeeOther {
		return v.ask("GET", got.Header().Get("Location"), nil)
	}
	return got
}

func (s *seen) want(code int) *seen {
	s.t.Helper()
	require.Equal(s.t, code, s.Code, "%s\n%s", s.path, s.Body)
	return s
}

// has reports what a page must say.
func (s *seen) has(parts ...string) *seen {
	s.t.Helper()
	for _, part := range parts {
		require.Contains(s.t, s.Body.String(), part, s.path)
	}
	return s
}

// consolePaths are all pages that the pages of a console link to, and those pages.
func (v *visitor) crawl(start ...string) map[string]*seen {
	v.t.Helper()
	links := regexp.MustCompile(`(?:href|data-live)="([^"#]+)`)
	pages, queue := map[string]*seen{}, start
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		at := must(url.Parse(path))(v.t)
		if pages[path] != nil || !strings.HasPrefix(at.Path, consoleAt) || strings.HasPrefix(at.Path, consoleAt+"/live") || len(pages) > 120 {
			continue
		}
		page := v.ask("GET", path, nil)
		pages[path] = page
		if page.Code == http.StatusSeeOther {
			queue = append(queue, page.Header().Get("Location"))
			continue
		}
		require.Equal(v.t, 200, page.Code, "%s\n%s", path, page.Body)
		for _, m := range links.FindAllStringSubmatch(page.Body.String(), -1) {
			link := strings.ReplaceAll(m[1], "&amp;", "&")
			if strings.HasPrefix(link, "?") {
				link = at.Path + link
			}
			queue = append(queue, link)
		}
	}
	return pages
}

func TestConsoleIsTheFrontForABrowser(t *testing.T) {
	_, v := newVisited(t)
	got := v.ask("GET", "/", nil)
	require.Equal(t, 303, got.Code)
	require.Equal(t, consoleAt+"/", got.Header().Get("Location"))
	require.Equal(t, "Accept", got.Header().Get("Vary"))
	page := v.open("/").want(200).has("<title>Overview", "First organization", "First workspace", "owner@example.com")
	require.Equal(t, "text/html; charset=utf-8", page.Header().Get("Content-Type"))
	program := v.ask("GET", "/", nil, func(r *http.Request) { r.Header.Set("Accept", "*/*") }).want(200)
	require.Equal(t, "application/json; charset=utf-8", program.Header().Get("Content-Type"))
	program.has(`"control":"http://127.0.0.1:8080/_control"`)
	v.open("/nothing").want(404).has("there is no page at this address")
	v.ask("GET", consoleAt, nil).want(303)
}

// TestConsoleIsForThisMachine: the rules of /_control.
func TestConsoleIsForThisMachine(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*http.Request){
		"another machine":        func(r *http.Request) { r.RemoteAddr = "192.0.2.7:9" },
		"a proxy":                func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.7") },
		"a rebound name":         func(r *http.Request) { r.Host = "evil.example" },
		"a page of another site": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"another port":           func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"another origin": func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "http://evil.example")
		},
		"no origin for a form": func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Del("Origin")
			r.Method = "POST"
		},
		"the origin null for a form": func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "null")
			r.Method = "POST"
		},
		"a service": func(r *http.Request) { r.Header.Set(reach.Outbound, "service") },
	} {
		v := newVisitor(t, w.s)
		for _, path := range []string{"/", "/requests", "/live?page=/", "/users/1/token"} {
			got := v.ask("GET", consoleAt+path, nil, change)
			require.Equal(t, 403, got.Code, "%s: %s", name, path)
			require.NotContains(t, got.Body.String(), "First organization")
		}
		before := w.control("GET", "/organizations", nil).want(200).text
		require.Equal(t, 403, v.ask("POST", consoleAt+"/organizations", url.Values{"name": {"X"}}, change).Code, name)
		require.Equal(t, string(before), string(w.control("GET", "/organizations", nil).want(200).text))
	}
}

// TestConsoleWithAToken: a browser signs in, and the cookie is no token.
func TestConsoleWithAToken(t *testing.T) {
	const token = "the-control-token"
	w := newWorld(t, func(c *Config) { c.ControlToken = token })
	v := newVisitor(t, w.s)
	v.host, v.from = "service.example", "192.0.2.7:9"
	require.Equal(t, 303, v.ask("GET", "/", nil).Code)
	v.open("/").want(401).has(`name="token"`, "Not open")
	require.Equal(t, 401, v.ask("POST", consoleAt+"/organizations", url.Values{"name": {"X"}}).Code)
	v.send("/sign-in", "token", "wrong").want(401).has("the control token is wrong")
	require.Equal(t, 401, v.ask("POST", consoleAt+"/sign-in", url.Values{"token": {token}}, func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
	}).Code)
	v.send("/sign-in", "token", token).want(200).has("<title>Overview", "Sign out")
	require.Len(t, v.cookies, 1)
	for _, value := range v.cookies {
		require.NotContains(t, value, token)
	}
	// Its cookie goes with forms of other origins, too: those are refused.
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "http://service.example:81")
		},
		func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Del("Origin") },
	} {
		require.Equal(t, 401, v.ask("POST", consoleAt+"/clock", url.Values{"do": {"freeze"}}, change).Code)
	}
	// The cookie is for the console only.
	require.Equal(t, 401, v.ask("GET", "/_control/organizations", nil).Code)
	for name, value := range v.cookies {
		v.cookies[name] = "9" + value
	}
	v.open("/").want(401)
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	require.Equal(t, 200, v.ask("GET", consoleAt+"/", nil, bearer).Code)
	v.send("/sign-in", "token", token).want(200)
	require.Equal(t, 303, v.ask("POST", consoleAt+"/sign-out", url.Values{}).Code)
	v.open("/").want(401)
}

// TestConsolePolicy: nothing from elsewhere, and no script or style within a page.
func TestConsolePolicy(t *testing.T) {
	_, v := newVisited(t)
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|<script(?:>|[^>]*[^r]>)|\son[a-z]+=|javascript:`)
	outside := regexp.MustCompile(`(?i)(?:src|href|action)="(?:https?:)?//`)
	for path, page := range v.crawl(consoleAt + "/") {
		policy := page.Header().Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'", path)
		require.NotContains(t, policy, "unsafe", path)
		require.Contains(t, policy, "frame-ancestors 'none'", path)
		if strings.HasPrefix(page.Header().Get("Content-Type"), "text/html") {
			require.NotRegexp(t, outside, page.Body.String(), path)
			for _, found := range inline.FindAllString(page.Body.String(), -1) {
				require.Contains(t, found, "defer", path)
			}
			require.Equal(t, "no-store", page.Header().Get("Cache-Control"), path)
		}
	}
}

// TestConsoleShowsTokensOnce: a new token is on the page that made it, and nowhere else.
func TestConsoleShowsTokensOnce(t *testing.T) {
	w, v := newVisited(t)
	secret := regexp.MustCompile(`class="secret">([^<]+)`)
	made := v.send("/organizations", "name", "Acme", "workspace", "Sales").want(200).has("Shown once")
	tokens := secret.FindAllStringSubmatch(made.Body.String(), -1)
	require.Len(t, tokens, 2)
	key := secret.FindStringSubmatch(v.send("/workspaces/2/key").want(200).Body.String())[1]
	require.NotEqual(t, tokens[1][1], key)
	w.do("GET", "/syncs", tokens[1][1], nil).want(401)
	w.do("GET", "/syncs", key, nil).want(200)
	pat := secret.FindStringSubmatch(v.send("/users/2/token").want(200).Body.String())[1]
	w.do("GET", "/users", pat, nil).want(200)
	for path, page := range v.crawl(consoleAt+"/", consoleAt+"/requests") {
		lacks(t, path+"\n"+page.Body.String(), tokens[0][1], tokens[1][1], key, pat, w.pat, w.key)
	}
	v.send("/workspaces/99/key").want(404).has("there is no workspace 99")
	v.send("/organizations", "email", "<b>no address").want(400).has("must be an e-mail address", "&lt;b&gt;no address")
}

func TestConsoleMovesTheClock(t *testing.T) {
	w, v := newVisited(t)
	v.send("/clock", "do", "freeze").want(200).has("The clock stands still.", "frozen")
	v.open("/").want(200)
	require.NotContains(t, v.open("/").Body.String(), "The clock stands still.", "a note shows once")
	at := w.control("GET", "/clock", nil).at("now").(string)
	v.send("/clock", "do", "advance", "by", "24h").want(200).has("The clock is 24h further, and 0 things that were due ran.")
	require.NotEqual(t, at[:10], w.control("GET", "/clock", nil).at("now").(string)[:10])
	v.send("/clock", "do", "advance", "by", "<i>soon").want(400).has("must be a duration", `value="&lt;i&gt;soon"`)
	v.send("/clock", "do", "settle").want(200).has("nothing is due")
	v.send("/clock", "do", "run").want(200).has("runs on")
	v.send("/clock", "do", "nonsense").want(400)
}

// TestConsoleListsRequests: newest first, with filters, a page at a time, and without
// what the console does itself.
func TestConsoleListsRequests(t *testing.T) {
	w, v := newVisited(t)
	v.open("/requests").want(200).has("No request of the API fits")
	for range 60 {
		w.do("GET", "/workspaces", w.pat, nil).want(200)
	}
	w.do("GET", "/syncs", w.key, nil).want(200)
	w.do("POST", "/workspaces", w.pat, map[string]any{"name": `<script>alert("x")</script>`}).want(201)
	w.do("GET", "/syncs/77", w.key, nil).want(404)
	v.open("/").want(200)
	row := regexp.MustCompile(`<tr id="x-(req_\d+)"`)
	rows := func(s *seen) (ids []string) {
		for _, m := range row.FindAllStringSubmatch(s.Body.String(), -1) {
			ids = append(ids, m[1])
		}
		return ids
	}
	first := v.open("/requests").want(200).has("63 exchanges so far", "before=14")
	require.Len(t, rows(first), 50)
	require.Equal(t, "req_000000000063", rows(first)[0])
	second := v.open("/requests?before=14").want(200).has("Back to the newest")
	require.Len(t, rows(second), 13)
	require.Equal(t, "req_000000000013", rows(second)[0])
	for query, want := range map[string]int{
		"status=404": 1, "method=POST": 1, "path=/SYNCS": 2, "text=alert": 1, "status=4xx&method=POST": 0, "operation=fetchSync": 1,
	} {
		require.Len(t, rows(v.open("/requests?"+query).want(200)), want, query)
	}
	v.open("/requests?status=999").want(400).has("must be a status such as 404")
	full := v.open("/requests/req_000000000062").want(200).has("&lt;script&gt;", "Nothing in this breaks the OpenAPI document", "curl -sS", "net/http", "urllib", "node:test", "$DESTKIT_WORKSPACE_API_KEY")
	lacks(t, full.Body.String(), "<script>alert", w.pat)
	v.open("/requests/req_999").want(404).has("the journal has no request")
}
