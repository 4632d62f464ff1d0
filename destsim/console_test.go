package destsim

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// browse requests a page of the console, as a browser on this machine, and follows one
// redirect.
func browse(t *testing.T, s *Sim, method, path string, form url.Values, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1:8090"+path, strings.NewReader(form.Encode()))
	r.RemoteAddr, r.Host = "127.0.0.1:9", "127.0.0.1:8090"
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "From" {
			r.RemoteAddr = header[i+1]
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code == http.StatusSeeOther && method == http.MethodPost {
		kept := []string{}
		for _, c := range w.Result().Cookies() {
			kept = append(kept, "Cookie", c.Name+"="+c.Value)
		}
		return browse(t, s, http.MethodGet, w.Header().Get("Location"), nil, kept...)
	}
	return w
}

const consoleAt = "/_control/console"

func TestConsolePages(t *testing.T) {
	s := newSim(t, Config{Token: "endpoint-token", ControlToken: "c0ntrol"})
	hostile := `"><script>alert(1)</script>`
	with := func(method, params string) {
		post(s, string(rpc.EncodeRequest(nil, method, []byte(params), "id-1")), "Authorization", "Bearer endpoint-token")
	}
	with(rpc.MethodListObjects, `{}`)
	with(rpc.MethodSyncBatch, planOf(s, "contact", "upsert", "email", `{"email":"ada","last_name":"King"}`, `{"email":"eve","last_name":"\"><script>alert(1)</script>"}`))
	with(rpc.MethodSyncBatch, planOf(s, "contact", "upsert", "email", `{"email":"bob"}`))
	for path, parts := range map[string][]string{
		"/":                                {"Simulated destination", "sync_batch", "Contact", "1,000,000", "created on write"},
		"/records":                         {"ada", "eve", "&lt;script&gt;", "2 records of contact"},
		"/records?object=contact&text=KIN": {"ada", "2 were looked at"},
		"/records?object=order":            {"No records fit"},
		"/requests":                        {"3 exchanges so far", "contact: upsert of 2, 2 succeeded, 0 failed"},
		"/requests?method=list_objects":    {"list_objects"},
		"/requests?status=500":             {"No call fits"},
		"/violations":                      {"RES-002", "Break RES-002", "0 of"},
		"/faults":                          {"throttle", "Arm it"},
		"/hooks":                           {"Rotate the token", "Restart"},
	} {
		w := browse(t, s, "GET", consoleAt+path, nil)
		require.Equal(t, 200, w.Code, "%s: %s", path, w.Body)
		for _, part := range parts {
			if path == "/" && part == "created on write" {
				continue // only where fields were created
			}
			require.Contains(t, w.Body.String(), part, path)
		}
		for _, not := range []string{"endpoint-token", "c0ntrol", hostile, "<script>alert"} {
			require.NotContains(t, w.Body.String(), not, path)
		}
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'", path)
	}
	require.NotContains(t, browse(t, s, "GET", consoleAt+"/records?object=contact&text=KIN", nil).Body.String(), "&#34;eve")
	require.Equal(t, 400, browse(t, s, "GET", consoleAt+"/records?object=nothing", nil).Code)
	require.Equal(t, 404, browse(t, s, "GET", consoleAt+"/nothing", nil).Code)
}

// TestConsoleAccess: programs get unchanged replies, browsers the console, strangers nothing.
func TestConsoleAccess(t *testing.T) {
	s := newSim(t, Config{})
	w := browse(t, s, "GET", "/", nil)
	require.Equal(t, 303, w.Code)
	require.Equal(t, consoleAt+"/", w.Header().Get("Location"))
	require.Equal(t, 405, browse(t, s, "GET", "/", nil, "Accept", "*/*").Code)
	require.Equal(t, 405, browse(t, s, "GET", "/", nil, "From", "192.0.2.1:1").Code, "a stranger meets the endpoint")
	require.Equal(t, 405, browse(t, s, "GET", "/path", nil).Code)
	require.Equal(t, 403, browse(t, s, "GET", consoleAt+"/", nil, "From", "192.0.2.1:1").Code)
	require.Equal(t, 403, browse(t, s, "POST", consoleAt+"/hooks", url.Values{"hook": {"reset"}}, "Sec-Fetch-Site", "cross-site").Code)
	guarded := newSim(t, Config{ControlToken: "c0ntrol"})
	require.Equal(t, 200, browse(t, guarded, "GET", consoleAt+"/", nil).Code, "loopback suffices, as for /_control")
	require.Equal(t, 401, browse(t, guarded, "GET", consoleAt+"/", nil, "From", "192.0.2.1:1").Code)
	require.Equal(t, 200, browse(t, guarded, "GET", consoleAt+"/", nil, "From", "192.0.2.1:1", "Authorization", "Bearer c0ntrol").Code)
}

// TestConsoleSwitchesViolations: on and off while the simulator runs.
func TestConsoleSwitchesViolations(t *testing.T) {
	s := newSim(t, Config{Violate: []string{"CON-003"}})
	results := func() int {
		w := write(t, s, "contact", "upsert", `{"email":"a","last_name":"x"}`, `{"email":"b","last_name":"x"}`, `{"email":"c","last_name":"x"}`)
		return len(w)
	}
	require.Equal(t, 3, results())
	w := browse(t, s, "POST", consoleAt+"/violations", url.Values{"on": {"RES-002"}})
	require.Contains(t, w.Body.String(), "breaks RES-002 from now on")
	require.Contains(t, w.Body.String(), "2 of")
	require.Equal(t, 2, results())
	require.Equal(t, []string{"CON-003", "RES-002"}, armedIDs(s))
	require.Contains(t, control(s, "GET", "/_control/violations?armed=true", "").Body.String(), `"id":"RES-002"`)
	browse(t, s, "POST", consoleAt+"/violations", url.Values{"off": {"RES-002"}})
	require.Equal(t, 3, results())
	browse(t, s, "POST", consoleAt+"/violations", url.Values{"off": {"all"}})
	require.Empty(t, armedIDs(s))
	require.True(t, s.usual())
	require.Equal(t, 400, control(s, "POST", "/_control/violations", `{"violate":["RES-0002"]}`).Code)
	require.Contains(t, control(s, "POST", "/_control/violations", `{"violate":["TLS-001"]}`).Body.String(), "acts when the listener is opened")
	require.Equal(t, 400, control(s, "GET", "/_control/violations?armed=x", "").Code)
	require.Equal(t, 200, control(s, "POST", "/_control/violations", `{"violate":["res-002","RES-002"]}`).Code)
	require.Equal(t, []string{"RES-002"}, armedIDs(s))
	require.Equal(t, 200, control(s, "POST", "/_control/reset", "").Code)
	require.Equal(t, []string{"CON-003"}, armedIDs(s), "a reset goes back to the configuration")
}

func armedIDs(s *Sim) (ids []string) {
	for _, v := range s.Armed() {
		if v.Armed {
			ids = append(ids, v.ID)
		}
	}
	return ids
}

func TestConsoleFaultsHooksAndSpeed(t *testing.T) {
	s := newSim(t, Config{Token: "old-token"})
	send := func(path string, pairs ...string) string {
		form := url.Values{}
		for i := 0; i+1 < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		return browse(t, s, "POST", consoleAt+path, form).Body.String()
	}
	require.Contains(t, send("/faults", "kind", "http_status", "method", "list_objects", "first", "1", "more", `{"status": 503}`), "The fault f1 is armed")
	require.Contains(t, send("/faults", "kind", "http_status", "more", `{"status":`), "must be a JSON object")
	require.Contains(t, send("/faults", "kind", "nothing"), "Refused")
	require.Contains(t, send("/faults", "kind", "hang", "first", "x"), "first: must be a whole number")
	require.Equal(t, 503, post(s, string(rpc.EncodeRequest(nil, rpc.MethodListObjects, []byte(`{}`), "1")), "Authorization", "Bearer old-token").Code)
	require.Regexp(t, regexp.MustCompile(`requests\?fault=f1">1<`), browse(t, s, "GET", consoleAt+"/faults", nil).Body.String())
	require.Contains(t, send("/faults/disarm", "id", "f1"), "The fault f1 is disarmed")
	require.Contains(t, send("/faults/disarm"), "All faults are disarmed")
	rotated := send("/hooks", "hook", "rotate_token begin")
	require.Contains(t, rotated, "The token is rotated")
	require.NotContains(t, rotated, "old-token")
	require.Contains(t, send("/hooks", "hook", "rotate_token end"), "The old token holds again")
	require.Contains(t, send("/hooks", "hook", "break_downstream begin"), "Bring the downstream system up")
	require.Contains(t, browse(t, s, "GET", consoleAt+"/", nil).Body.String(), "every batch fails")
	require.Contains(t, send("/hooks", "hook", "break_downstream end"), "up again")
	require.Contains(t, send("/hooks", "hook", "alter_schema begin", "object", "contact"), "The schema is altered")
	require.Contains(t, send("/hooks", "hook", "restart"), "has restarted")
	require.Contains(t, send("/hooks", "hook", "x"), "choose one of the buttons")
	require.Contains(t, send("/speed", "batch", "7", "parallel", "2", "second", "9", "rate_limit", "0"), "The declared speed is changed")
	require.Equal(t, int64(7), s.speed.Load().MaximumBatchSize)
	require.Contains(t, send("/speed", "batch", "0", "parallel", "2", "second", "9", "rate_limit", "0"), "three integers")
	require.Contains(t, send("/hooks", "hook", "reset"), "every change is reverted")
	require.Equal(t, int64(1000), s.speed.Load().MaximumBatchSize)
}

// TestJournalNewestFirst: the order of the pages.
func TestJournalNewestFirst(t *testing.T) {
	s := newSim(t, Config{})
	for range 5 {
		invoke(s, rpc.MethodListObjects, `{}`)
	}
	page := s.Journal(JournalFilter{Newest: true, Limit: 2})
	require.Equal(t, []int64{5, 4}, []int64{page.Entries[0].Seq, page.Entries[1].Seq})
	page = s.Journal(JournalFilter{Newest: true, Limit: 3, Before: *page.Next})
	require.Len(t, page.Entries, 3)
	require.Nil(t, page.Next)
	require.Equal(t, 400, control(s, "GET", "/_control/journal?before=3", "").Code)
	require.Equal(t, 200, control(s, "GET", "/_control/journal?before=3&newest=true&sync=1", "").Code)
}
