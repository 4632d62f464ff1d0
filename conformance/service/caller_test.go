package service_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/service"
)

// seen is a call as a proxy has seen it, in milliseconds of one clock.
type seen struct {
	peer   string // its connection
	opened int    // when that was there
	came   int
	lasts  int
	left   int  // when the caller ended its side, after it came; 0: it did not
	reused bool // the connection had carried a call before
	ended  bool // the endpoint has ended the connection
	run    int  // of a batch
	bring  int  // records; 0: get_sync_speed
	limit  int  // of calls in a second, in the response; 0: none
	rest   int  // seconds to rest, with status 429; 0: status 200
}

// speed is what the endpoint declares.
const speed = `{"maximum_batch_size":20,"maximum_parallel_batches":50,"maximum_records_per_second":40}`

// blamed are the checks that a caller breaks by these calls.
func blamed(t *testing.T, calls []seen) map[string]bool {
	t.Helper()
	passive, err := destination.NewPassive(destination.Target{URL: "https://endpoint.example/"}, conformance.Options{})
	require.NoError(t, err)
	caller, err := service.NewCaller("https://endpoint.example/", passive.Secrets(), conformance.Options{})
	require.NoError(t, err)
	began := time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	broken := map[string]bool{} // by a call, or by the report
	defer func() {
		for _, c := range caller.Report().Checks {
			broken[c.ID] = broken[c.ID] || c.Status == conformance.Fail
		}
	}()
	for i, c := range calls {
		method, params, result := "get_sync_speed", "{}", speed
		if c.bring > 0 {
			records := make([]string, c.bring)
			for n := range records {
				records[n] = fmt.Sprintf(`{"email":"%d-%d@example.com"}`, i, n)
			}
			method, result = "sync_batch", `{"record_results":[]}`
			params = fmt.Sprintf(`{"sync_plan":{"sync_id":7,"sync_run_id":%d},"records":[%s]}`, c.run, strings.Join(records, ","))
		}
		x := &conformance.Sight{
			Number: i + 1, Timing: conformance.Timing{Started: at(c.came), Total: time.Duration(c.lasts) * time.Millisecond}, CallerLeft: time.Duration(c.left) * time.Millisecond,
			Peer: c.peer, Opened: at(c.opened), Reused: c.reused, Ended: new(atomic.Bool),
			Asked: conformance.Asked{Method: http.MethodPost, Target: "/", URL: "https://endpoint.example/",
				RequestBody: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"%d","method":%q,"params":%s}`, i, method, params)},
			Status: http.StatusOK, Proto: "HTTP/1.1", Body: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"%d","result":%s}`, i, result),
		}
		x.Ended.Store(c.ended)
		if c.limit > 0 {
			x.Header = append(x.Header, conformance.HeaderLine{Name: "X-RateLimit-Limit", Value: fmt.Sprint(c.limit)})
		}
		if c.rest > 0 {
			x.Status = http.StatusTooManyRequests
			x.Header = append(x.Header, conformance.HeaderLine{Name: "Retry-After", Value: fmt.Sprint(c.rest)})
		}
		for _, id := range caller.Observe(x, x.Status) {
			broken[id] = true
		}
	}
	return broken
}

// TestCallerIsBlamedForTheSpeedOfOneRun: 40 records a second are allowed. A speed is requested at
// the start of a run, so that runs which follow each other are not added up.
func TestCallerIsBlamedForTheSpeedOfOneRun(t *testing.T) {
	batches := func(runs ...int) []seen {
		calls := []seen{{peer: "a", lasts: 1}}
		for i, run := range runs {
			calls = append(calls, seen{peer: "a", reused: true, came: 10 + 10*i, lasts: 5, run: run, bring: 20})
		}
		return calls
	}
	for name, c := range map[string]struct {
		runs   []int
		broken bool
	}{
		"one run within the speed":  {[]int{1, 1}, false},
		"two runs within the speed": {[]int{1, 1, 2, 2}, false},
		"one run above the speed":   {[]int{1, 1, 1}, true},
		"the second run above it":   {[]int{1, 1, 2, 2, 2}, true},
	} {
		require.Equal(t, c.broken, blamed(t, batches(c.runs...))["PACE-006"], name)
	}
}

// TestTheLastBatchesOfARunAreJudged: 50 batches at once are allowed. The first of 51 that
// are under way together is answered last, as the 60th of its run.
func TestTheLastBatchesOfARunAreJudged(t *testing.T) {
	for _, first := range []int{50, 51} {
		calls := []seen{{peer: "a", lasts: 1}}
		for i := range first - 1 {
			calls = append(calls, seen{peer: fmt.Sprint(i), came: 10 + i, lasts: 1000, run: 1, bring: 1})
		}
		for i := range 60 - first {
			calls = append(calls, seen{peer: "0", reused: true, came: 3000 + 2000*i, lasts: 1, run: 1, bring: 1})
		}
		calls = append(calls, seen{peer: "b", came: 5, lasts: 100_000, run: 1, bring: 1})
		require.Equal(t, first == 51, blamed(t, calls)["PACE-003"])
		again := append(calls, seen{peer: "0", reused: true, came: 200_000, lasts: 1, run: 2, bring: 1})
		require.Equal(t, first == 51, blamed(t, again)["PACE-003"], "the next run begins")
	}
}

// TestACallThatItsCallerGaveUpIsOver: 50 batches at once are allowed. Of 50 that are under
// way the caller gives one up after 5 s, and sends another; the endpoint goes on with all.
func TestACallThatItsCallerGaveUpIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		left, next int
		broken     bool
	}{
		"the next one comes later":            {5000, 5100, false},
		"it is seen before the other's end":   {5000, 4700, false},
		"it comes long before that":           {5000, 3500, true},
		"none was given up":                   {0, 5100, true},
		"it comes when the first is answered": {0, 60_100, false},
	} {
		calls := []seen{{peer: "a", lasts: 1}}
		for i := range 50 {
			calls = append(calls, seen{peer: fmt.Sprint(i), lasts: 60_000, run: 1, bring: 1})
		}
		calls[1].left = c.left
		calls = append(calls, seen{peer: "b", came: c.next, lasts: 60_000, run: 1, bring: 1})
		require.Equal(t, c.broken, blamed(t, calls)["PACE-003"], name)
	}
}

// TestNoCallerObeysWhatItDidNotRead: a caller that has given a call up does not know that its
// response, which came later, requests a rest.
func TestNoCallerObeysWhatItDidNotRead(t *testing.T) {
	for left, broken := range map[int]bool{0: true, 500: false} {
		calls := []seen{{peer: "a", lasts: 1000, left: left, rest: 30}, {peer: "b", came: 5000, lasts: 1}}
		require.Equal(t, broken, blamed(t, calls)["THR-001"], "left after %d ms", left)
	}
}

// TestFewCallsAreJudgedByTheLimit: a handful of calls is enough to be above a limit.
func TestFewCallsAreJudgedByTheLimit(t *testing.T) {
	for apart, broken := range map[int]bool{20: true, 400: false} {
		var calls []seen
		for i := range 10 {
			calls = append(calls, seen{peer: "a", reused: i > 0, came: apart * i, lasts: 1, limit: 4})
		}
		require.Equal(t, broken, blamed(t, calls)["PACE-013"], "%d ms apart", apart)
	}
}

// TestCallerIsBlamedForConnectionsThatItDidNotNeed: calls under way at once need a
// connection each, and who is left without one has to open another.
func TestCallerIsBlamedForConnectionsThatItDidNotNeed(t *testing.T) {
	// Of n calls, each on its own connection, another comes after so many milliseconds.
	opening := func(n, after, lasts int) []seen {
		var calls []seen
		for i := range n {
			calls = append(calls, seen{peer: fmt.Sprint("c", i), opened: after * i, came: after * i, lasts: lasts})
		}
		return calls
	}
	edit := func(calls []seen, edit func(i int, c *seen)) []seen {
		for i := range calls {
			edit(i, &calls[i])
		}
		return calls
	}
	for name, c := range map[string]struct {
		calls  []seen
		broken bool
	}{
		"one after the other":         {opening(20, 200, 10), true},
		"fewer than are judged":       {opening(19, 200, 10), false},
		"two at once, always":         {opening(40, 200, 300), true},
		"fast, one after the other":   {opening(120, 2, 1), true},
		"all at once":                 {opening(60, 0, 500), false},
		"more and more at once":       {opening(60, 10, 900), false},
		"the endpoint ends them":      {edit(opening(60, 200, 10), func(_ int, c *seen) { c.ended = true }), false},
		"the caller gives them up":    {edit(opening(60, 200, 300), func(_ int, c *seen) { c.left = 10 }), false},
		"the endpoint ends some":      {edit(opening(60, 200, 10), func(i int, c *seen) { c.ended = i%15 == 0 }), false},
		"every tenth is used again":   {edit(opening(60, 200, 10), func(i int, c *seen) { reuse(c, i%10 == 9, "c0") }), false},
		"one used again, then none":   {edit(opening(60, 200, 10), func(i int, c *seen) { reuse(c, i == 9, "c0") }), true},
		"some idle before many come":  {append(opening(5, 200, 10), edit(opening(50, 0, 500), func(i int, c *seen) { later(c, i, 5000) })...), false},
		"many at once that came late": {edit(opening(50, 0, 1), func(i int, c *seen) { c.came = 3 * i }), false},
		"opened as others come free":  {opening(40, 1, 1), false},
		"many at once, and then each on one more": {
			append(opening(30, 0, 500), edit(opening(30, 200, 10), func(i int, c *seen) { later(c, i, 5000) })...), true,
		},
	} {
		require.Equal(t, c.broken, blamed(t, c.calls)["CALL-026"], name)
	}
}

// reuse puts a call on a connection that has carried another.
func reuse(c *seen, really bool, peer string) {
	if really {
		c.peer, c.reused = peer, true
	}
}

// later puts a call of another group behind the first.
func later(c *seen, i, by int) {
	c.peer, c.opened, c.came = fmt.Sprint("later", i), c.opened+by, c.came+by
}

// TestNoReportShowsTheQueryOfACall: values in the query of a caller's URL are secrets
// (spec 5.2.3), short ones and those without a name too.
func TestNoReportShowsTheQueryOfACall(t *testing.T) {
	passive, err := destination.NewPassive(destination.Target{URL: "https://endpoint.example/"}, conformance.Options{})
	require.NoError(t, err)
	caller, err := service.NewCaller("https://endpoint.example/", passive.Secrets(), conformance.Options{})
	require.NoError(t, err)
	for i, target := range []string{"/?api_key=QSECRET&pin=42x", "/list_objects?QSECRET==", "/other?k=$DESTKIT_QUERY_K", "/?a=b=42x"} {
		x := &conformance.Sight{
			Number: i + 1, Asked: conformance.Asked{Method: http.MethodPost, Target: target, URL: "https://endpoint.example" + target,
				RequestBody: []byte(`{"jsonrpc":"2.0","id":"1","method":"list_objects","params":7}`)},
			Status: http.StatusOK, Proto: "HTTP/1.1", Body: []byte(`{"jsonrpc":"2.0","id":"1","result":{"seen":"QSECRET"}}`),
		}
		judged := passive.Observe(x)
		caller.Observe(x, http.StatusOK)
		for _, e := range []conformance.Exchange{judged.Exchange(), judged.Recording()} {
			require.NotContains(t, fmt.Sprintf("%+v", e), "QSECRET")
			require.NotContains(t, fmt.Sprintf("%+v", e), "42x")
		}
	}
	for _, r := range []*conformance.Report{passive.Report(), caller.Report()} {
		written, err := json.Marshal(r)
		require.NoError(t, err)
		require.NotContains(t, string(written), "QSECRET")
		require.NotContains(t, string(written), "42x")
	}
	written, err := json.Marshal(caller.Report())
	require.NoError(t, err)
	require.Contains(t, string(written), `"/?api_key=$DESTKIT_QUERY_API_KEY\u0026pin=$DESTKIT_QUERY_PIN"`)
	require.Contains(t, string(written), `"/other?k=$DESTKIT_QUERY_K"`)
}

// TestWhatIsNoCallIsNotJudged: a proxy passes on any path. A broken call at the path of the
// endpoint is a call.
func TestWhatIsNoCallIsNotJudged(t *testing.T) {
	const page, refused = `{"ok":true}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}`
	for name, c := range map[string]struct {
		method, target, body, answer string
		calls                        int
		found                        bool // of the caller
	}{
		"a health check":                      {method: "GET", target: "/healthz", answer: page},
		"a page at the path of the endpoint":  {method: "GET", target: "/rpc", answer: page},
		"a form":                              {method: "POST", target: "/login", body: "a=b", answer: page},
		"another JSON API":                    {method: "POST", target: "/metrics", body: `{"series":[]}`, answer: page},
		"a broken call":                       {method: "POST", target: "/rpc", body: `{"jsonrpc":`, answer: refused, calls: 1, found: true},
		"the same with a query":               {method: "POST", target: "/rpc?key=x", body: "hello", answer: refused, calls: 1, found: true},
		"a broken call of another path":       {method: "POST", target: "/v2", body: `{"jsonrpc":"2.0","method":"list_obj`, answer: refused, calls: 1, found: true},
		"a call by PUT":                       {method: "PUT", target: "/rpc", body: `{"jsonrpc":"2.0","id":"1","method":"list_objects","params":{}}`, answer: refused, calls: 1, found: true},
		"a call by GET, in the query":         {method: "GET", target: "/rpc?method=list_objects", answer: refused, calls: 1, found: true},
		"a query of another path with a name": {method: "GET", target: "/other?method=a", answer: page},
	} {
		t.Run(name, func(t *testing.T) {
			const url = "https://endpoint.example/rpc"
			passive, err := destination.NewPassive(destination.Target{URL: url}, conformance.Options{})
			require.NoError(t, err)
			caller, err := service.NewCaller(url, passive.Secrets(), conformance.Options{})
			require.NoError(t, err)
			x := &conformance.Sight{
				Number: 1, Asked: conformance.Asked{Method: c.method, Target: c.target, URL: "https://endpoint.example" + c.target, RequestBody: []byte(c.body)},
				Status: http.StatusOK, Proto: "HTTP/1.1", Header: []conformance.HeaderLine{{Name: "Content-Type", Value: "application/json"}}, Body: []byte(c.answer),
			}
			judged := passive.Observe(x)
			broken := caller.Observe(x, http.StatusOK)
			require.Empty(t, judged.IDs)
			require.Equal(t, c.method, judged.Exchange().Request.Method, "it is recorded")
			require.Equal(t, c.calls, passive.Report().Calls)
			require.Equal(t, c.calls, caller.Report().Calls)
			require.Equal(t, c.found, slices.Contains(broken, "CALL-001"), "%v", broken)
		})
	}
}
