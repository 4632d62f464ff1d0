package destsim

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// armJSON arms a fault over the control endpoint and gives its id.
func armJSON(t *testing.T, s *Sim, fault string) string {
	t.Helper()
	w := control(s, http.MethodPost, "/_control/faults", fault)
	require.Equal(t, 200, w.Code, w.Body.String())
	var reply struct {
		OK bool
		ID string
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &reply))
	require.True(t, reply.OK)
	return reply.ID
}

// fourRecords are the params of a batch of a@x to d@x.
func fourRecords(s *Sim, operation string) string {
	var records []string
	for i, key := range []string{"a@x", "b@x", "c@x", "d@x"} {
		records = append(records, fmt.Sprintf(`{"email":%q,"last_name":"L%d","age":%d}`, key, i, i))
	}
	return planOf(s, "contact", operation, "email", records...)
}

// storedKeys returns which of a to d are stored.
func storedKeys(t *testing.T, s *Sim) string {
	t.Helper()
	out := ""
	for _, key := range []string{"a", "b", "c", "d"} {
		if stored(t, s, "contact", "email", `"`+key+`@x"`) != "" {
			out += key
		}
	}
	return out
}

// results returns each result of a batch: "a@x+" or "a@x-".
func results(t *testing.T, body string) []string {
	t.Helper()
	result, rpcErr, err := rpc.DecodeResponse([]byte(body), "id-1")
	require.NoError(t, err, body)
	if rpcErr != nil {
		return []string{fmt.Sprintf("error %d %s", rpcErr.Code, rpcErr.Message)}
	}
	out := []string{}
	require.NoError(t, rpc.ScanResults(result, func(identifier []byte, success bool, message []byte) error {
		out = append(out, strings.Trim(string(identifier), `"`)+map[bool]string{true: "+", false: "-"}[success])
		return nil
	}))
	return out
}

// httpCall makes one call over a real connection. err is what a client sees.
func httpCall(t *testing.T, address, method, params string, header ...string) (*http.Response, string, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequest(http.MethodPost, address, strings.NewReader(requestBody(method, params, "id-1")))
	require.NoError(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

func TestFaultKinds(t *testing.T) {
	all := []string{"a@x+", "b@x+", "c@x+", "d@x+"}
	cases := []struct {
		fault  string
		want   []string // results, or the error; nil: no complete answer
		stored string
		look   func(t *testing.T, resp *http.Response, body string)
	}{
		{fault: `{"kind":"delay","delay":{"ms":1}}`, want: all, stored: "abcd"},
		{fault: `{"kind":"delay","at":"after","delay":{"distribution":"uniform","min_ms":1,"max_ms":2}}`, want: all, stored: "abcd"},
		{fault: `{"kind":"hang"}`},
		{fault: `{"kind":"hang","at":"after"}`, stored: "abcd"},
		{fault: `{"kind":"rpc_error"}`, want: []string{"error -32099 simulated fault"}},
		{
			fault: `{"kind":"rpc_error","at":"after","code":-32050,"message":"late","data":{"a":1}}`, want: []string{"error -32050 late"}, stored: "abcd",
			look: func(t *testing.T, resp *http.Response, body string) {
				require.Equal(t, 200, resp.StatusCode)
				require.Contains(t, body, `"data":{"a":1}`)
			},
		},
		{
			fault: `{"kind":"http_status","status":502,"headers":{"Content-Type":"text/html"},"body":"<h1>no</h1>"}`,
			look: func(t *testing.T, resp *http.Response, body string) {
				require.Equal(t, 502, resp.StatusCode)
				require.Equal(t, "text/html", resp.Header.Get("Content-Type"))
				require.Equal(t, "<h1>no</h1>", body)
			},
		},
		{
			fault: `{"kind":"http_status","at":"after","status":503}`, want: []string{"error -32099 simulated fault"}, stored: "abcd",
			look: func(t *testing.T, resp *http.Response, _ string) { require.Equal(t, 503, resp.StatusCode) },
		},
		{
			fault: `{"kind":"http_status","status":204}`,
			look: func(t *testing.T, resp *http.Response, body string) {
				require.Equal(t, 204, resp.StatusCode)
				require.Empty(t, body)
			},
		},
		{
			fault: `{"kind":"throttle","seconds":7}`, want: []string{"error -32029 slow down: simulated fault"},
			look: func(t *testing.T, resp *http.Response, _ string) {
				require.Equal(t, 429, resp.StatusCode)
				require.Equal(t, "7", resp.Header.Get("Retry-After"))
			},
		},
		{
			fault: `{"kind":"throttle","at":"after","retry_after":"date","seconds":30}`, want: []string{"error -32029 slow down: simulated fault"}, stored: "abcd",
			look: func(t *testing.T, resp *http.Response, _ string) {
				at, err := http.ParseTime(resp.Header.Get("Retry-After"))
				require.NoError(t, err)
				require.Equal(t, time.Date(2026, 1, 2, 3, 4, 35, 0, time.UTC), at)
			},
		},
		{
			fault: `{"kind":"throttle","retry_after":"absent"}`, want: []string{"error -32029 slow down: simulated fault"},
			look: func(t *testing.T, resp *http.Response, _ string) { require.Empty(t, resp.Header.Values("Retry-After")) },
		},
		{
			fault: `{"kind":"throttle","retry_after":"garbage"}`, want: []string{"error -32029 slow down: simulated fault"},
			look: func(t *testing.T, resp *http.Response, _ string) {
				require.Equal(t, "in a while", resp.Header.Get("Retry-After"))
			},
		},
		{fault: `{"kind":"reset"}`},
		{fault: `{"kind":"reset","at":"after"}`, stored: "abcd"},
		{fault: `{"kind":"reset","at":"between","records":3}`, stored: "abc"},
		{fault: `{"kind":"close"}`},
		{fault: `{"kind":"close","at":"after"}`, stored: "abcd"},
		{fault: `{"kind":"close","at":"between"}`, stored: "ab"},
		{fault: `{"kind":"truncate","bytes":20}`, stored: "abcd"},
		{fault: `{"kind":"truncate"}`, stored: "abcd"},
		{fault: `{"kind":"stall","pause_ms":1}`, want: all, stored: "abcd"},
		{fault: `{"kind":"slow_body","bytes":50,"pause_ms":0.1}`, want: all, stored: "abcd"},
		{fault: `{"kind":"wrong_id"}`, stored: "abcd", look: func(t *testing.T, _ *http.Response, body string) {
			require.Contains(t, body, `"id":"wrong-id"`)
		}},
		{fault: `{"kind":"wrong_id","id":7}`, stored: "abcd", look: func(t *testing.T, _ *http.Response, body string) {
			require.Contains(t, body, `"id":7,`)
		}},
		{fault: `{"kind":"wrong_identifiers","records":1}`, want: []string{"a@x+", "b@x+", "c@x+", "zz-wrong-0-3+"}, stored: "abcd"},
		{fault: `{"kind":"missing_results","records":2}`, want: []string{"a@x+", "b@x+"}, stored: "abcd"},
		{fault: `{"kind":"missing_results"}`, want: []string{}, stored: "abcd"},
		{fault: `{"kind":"repeated_results","records":1}`, want: append(slices.Clone(all), "d@x+"), stored: "abcd"},
		{fault: `{"kind":"contradictory_results","when":{"identifier":"b@x"}}`, want: append(slices.Clone(all), "b@x-"), stored: "abcd"},
		{fault: `{"kind":"extra_results","records":2}`, want: append(slices.Clone(all), "zz-unasked-0-0+", "zz-unasked-0-1+"), stored: "abcd"},
		{fault: `{"kind":"record_failure","message":"no","when":{"field":"age","value":2}}`, want: []string{"a@x+", "b@x+", "c@x-", "d@x+"}, stored: "abd"},
		{fault: `{"kind":"acknowledge_unstored","when":{"identifier":"\u0061@x"}}`, want: all, stored: "bcd"},
		{fault: `{"kind":"refuse_stored","when":{"identifier":"d@x"}}`, want: []string{"a@x+", "b@x+", "c@x+", "d@x-"}, stored: "abcd"},
		{fault: `{"kind":"schema","drift":{"action":"remove_object","object":"contact"}}`, want: []string{`error -32602 invalid params: unknown object "contact"`}},
		{fault: `{"kind":"speed","speeds":[{"maximum_batch_size":1,"maximum_parallel_batches":1,"maximum_records_per_second":1}]}`, want: all, stored: "abcd"},
		{
			fault: `{"kind":"rate_limit","limits":["12/s"]}`, want: all, stored: "abcd",
			look: func(t *testing.T, resp *http.Response, _ string) {
				require.Equal(t, "12/s", resp.Header.Get("X-RateLimit-Limit"))
			},
		},
	}
	seen, plain := map[string]bool{}, newSim(t, Config{})
	for _, c := range cases {
		t.Run(c.fault, func(t *testing.T) {
			clock := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
			s := newSim(t, Config{Clock: clock, Delays: Delays{Hang: time.Millisecond}})
			server := httptest.NewServer(s)
			t.Cleanup(server.Close)
			var fault Fault
			require.NoError(t, json.Unmarshal([]byte(c.fault), &fault))
			seen[fault.Kind] = true
			id := armJSON(t, s, c.fault)

			resp, body, err := httpCall(t, server.URL, rpc.MethodSyncBatch, fourRecords(s, "upsert"))
			if c.want == nil && c.look == nil {
				require.Error(t, err, body)
			} else {
				require.NoError(t, err)
			}
			if c.want != nil {
				require.Equal(t, c.want, results(t, body))
			}
			if c.look != nil {
				c.look(t, resp, body)
			}
			require.Equal(t, c.stored, storedKeys(t, s))

			fired := int64(1)
			if fault.Kind == "speed" {
				fired = 0 // it never touches a batch
			}
			list := s.Faults()
			require.Len(t, list, 1)
			require.Equal(t, id, list[0].ID)
			require.Equal(t, fired, list[0].Fired)
			require.Len(t, s.UnfiredFaults(), int(1-fired))
			// Disarmed, the destination is its old self at once, to the byte.
			require.NoError(t, s.DisarmFault(id))
			for _, method := range rpc.Methods() {
				body := requestBody(method, `{"object":{"object_api_name":"contact"}}`, "x")
				if method == rpc.MethodSyncBatch {
					body = requestBody(method, fourRecords(s, "upsert"), "x")
				}
				never, now := post(plain, body), post(s, body)
				require.Equal(t, never.Header(), now.Header())
				require.Equal(t, never.Body.String(), now.Body.String())
			}
			require.Equal(t, "abcd", storedKeys(t, s))
		})
	}
	for _, kind := range FaultKinds() {
		require.True(t, seen[kind.Name], "no case for %s", kind.Name)
		require.NotEmpty(t, kind.Does)
	}
}

func TestTruncatedBodyAnnouncesItsLength(t *testing.T) {
	s := newSim(t, Config{Compress: "gzip"})
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	armJSON(t, s, `{"kind":"truncate","bytes":9}`)
	resp, body, err := httpCall(t, server.URL, rpc.MethodTestConnection, `{}`)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, `{"jsonrpc`, body)
	require.Greater(t, resp.ContentLength, int64(9))
}

func TestSeveralFaultsActTogether(t *testing.T) {
	s := newSim(t, Config{})
	first := armJSON(t, s, `{"kind":"refuse_stored","message":"lie","when":{"identifier":"a@x"}}`)
	second := armJSON(t, s, `{"kind":"missing_results","when":{"identifier":"b@x"}}`)
	third := armJSON(t, s, `{"kind":"rate_limit","limits":["5"]}`)
	body := invoke(s, rpc.MethodSyncBatch, fourRecords(s, "insert"))
	require.Equal(t, []string{"a@x-", "c@x+", "d@x+"}, results(t, body))
	require.Contains(t, body, `"lie"`)
	entries := s.Journal(JournalFilter{}).Entries
	require.Equal(t, []string{first, second, third}, entries[0].Faults)
}

func TestSpeedsAndLimitsTakeTurns(t *testing.T) {
	s := newSim(t, Config{})
	armJSON(t, s, `{"kind":"speed","speeds":[{"maximum_batch_size":1},{"maximum_batch_size":2}]}`)
	armJSON(t, s, `{"kind":"rate_limit","limits":["10","","x"]}`)
	var sizes, limits []string
	for range 4 {
		w := post(s, string(rpc.EncodeRequest(nil, rpc.MethodGetSyncSpeed, []byte(`{}`), "id-1")))
		var reply struct{ Result rpc.Speed }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &reply))
		sizes = append(sizes, fmt.Sprint(reply.Result.MaximumBatchSize))
		limits = append(limits, w.Header().Get("X-RateLimit-Limit"))
	}
	require.Equal(t, []string{"1", "2", "1", "2"}, sizes)
	require.Equal(t, []string{"10", "", "x", "10"}, limits)
}

func TestDrift(t *testing.T) {
	const object = `{"object":{"object_api_name":"contact"}}`
	cases := []struct {
		drift   string
		method  string
		has     string
		hasNot  string
		results []string
	}{
		{`{"action":"remove_field","field":"age"}`, rpc.MethodListFields, `"email"`, `"age"`, []string{"a@x-", "b@x-", "c@x-", "d@x-"}},
		{`{"action":"add_field","field":"zz_new","type":"integer"}`, rpc.MethodListFields, `"zz_new"`, "", nil},
		{`{"action":"retype_field","field":"age","type":"string"}`, rpc.MethodListFields, `"label":"Age","identifier":false,"required":false,"createable":true,"updateable":true,"type":"string"`, "", []string{"a@x-", "b@x-", "c@x-", "d@x-"}},
		{`{"action":"require_field","field":"first_name"}`, rpc.MethodListFields, `"label":"First name","identifier":false,"required":true`, "", []string{"a@x-", "b@x-", "c@x-", "d@x-"}},
		{`{"action":"require_field","field":"age"}`, rpc.MethodListFields, `"age"`, "", nil},
		{`{"action":"remove_object","object":"contact"}`, rpc.MethodListObjects, `"order"`, `"contact"`, []string{`error -32602 invalid params: unknown object "contact"`}},
		{`{"action":"set_operations","operations":["insert"]}`, rpc.MethodSupportedOperations, `["insert"]`, `"upsert"`, []string{`error -32602 invalid params: object "contact" does not accept batches with the operation "upsert"`}},
		{`{"action":"set_operations","operations":["mirror"]}`, rpc.MethodSupportedOperations, `["mirror"]`, `"update"`, nil},
		{`{"action":"remove_field","object":"order","field":"age"}`, rpc.MethodListFields, `"age"`, "", nil},
	}
	for _, c := range cases {
		t.Run(c.drift, func(t *testing.T) {
			s := newSim(t, Config{})
			clean := invoke(s, c.method, object)
			id := armJSON(t, s, `{"kind":"schema","drift":`+c.drift+`}`)
			shown := invoke(s, c.method, object)
			require.Contains(t, shown, c.has)
			if c.hasNot != "" {
				require.NotContains(t, shown, c.hasNot)
			}
			want := c.results
			if want == nil {
				want = []string{"a@x+", "b@x+", "c@x+", "d@x+"}
			}
			require.Equal(t, want, results(t, invoke(s, rpc.MethodSyncBatch, fourRecords(s, "upsert"))))
			require.NoError(t, s.DisarmFault(id))
			require.Equal(t, clean, invoke(s, c.method, object))
		})
	}
}

// TestDriftIsActedUpon: a changed field is treated as if the destination had
// been changed itself.
func TestDriftIsActedUpon(t *testing.T) {
	s := newSim(t, Config{})
	send := func(fields string) []string {
		return results(t, invoke(s, rpc.MethodSyncBatch, planOf(s, "contact", "insert", "email", `{"email":"a@x","last_name":"L"`+fields+`}`)))
	}
	arm := func(drift string) {
		s.faults.disarmAll()
		armJSON(t, s, `{"kind":"schema","drift":`+drift+`}`)
	}
	arm(`{"action":"require_field","field":"age"}`)
	require.Equal(t, []string{"a@x-"}, send(`,"age":null`))
	arm(`{"action":"retype_field","field":"age","type":"string"}`)
	require.Equal(t, []string{"a@x-"}, send(`,"age":5`))
	require.Equal(t, []string{"a@x+"}, send(`,"age":"five"`))
	require.Contains(t, stored(t, s, "contact", "email", `"a@x"`), `"age":"five"`)
	require.NoError(t, s.store.Drop(""))
	arm(`{"action":"add_field","field":"zz_new"}`)
	require.Equal(t, []string{"a@x+"}, send(`,"zz_new":"v"`))
	require.Contains(t, stored(t, s, "contact", "email", `"a@x"`), `"zz_new":"v"`)
	s.faults.disarmAll()
	require.Equal(t, []string{"a@x-"}, send(`,"zz_new":"v"`), "it never existed")
}

func TestDelayDistributions(t *testing.T) {
	cases := map[string]struct {
		delay              Delay
		least, most, about float64
	}{
		"fixed":       {Delay{MS: 5}, 5, 5, 5},
		"uniform":     {Delay{Distribution: "uniform", MinMS: 10, MaxMS: 30}, 10, 30, 20},
		"normal":      {Delay{Distribution: "normal", MeanMS: 50, StddevMS: 5}, 0, 100, 50},
		"normal at 0": {Delay{Distribution: "normal", StddevMS: 5}, 0, 100, 2},
		"exponential": {Delay{Distribution: "exponential", MeanMS: 10}, 0, 60000, 10},
		"pareto":      {Delay{Distribution: "pareto", ScaleMS: 10, Shape: 3}, 10, 60000, 15},
		"capped":      {Delay{Distribution: "pareto", ScaleMS: 10, Shape: 0.1, CapMS: 20}, 10, 20, 19.3},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.delay.check())
			draws := func(seed uint64) []float64 {
				chance := rand.New(rand.NewPCG(seed, 1))
				list := make([]float64, 20000)
				for i := range list {
					list[i] = c.delay.draw(chance)
				}
				return list
			}
			list, sum := draws(7), 0.0
			for _, v := range list {
				sum += v
			}
			require.GreaterOrEqual(t, slices.Min(list), c.least)
			require.LessOrEqual(t, slices.Max(list), c.most)
			require.InEpsilon(t, c.about, sum/float64(len(list)), .05)
			require.Equal(t, list, draws(7), "the same seed gives the same delays")
		})
	}
}

func TestFaultsNeverTouchControl(t *testing.T) {
	s := newSim(t, Config{})
	armJSON(t, s, `{"kind":"http_status","status":500}`)
	require.Equal(t, 200, control(s, http.MethodGet, "/_control/counts", "").Code)
	require.Equal(t, 200, control(s, http.MethodGet, "/healthz", "").Code)
	require.Len(t, s.UnfiredFaults(), 1)
	require.Equal(t, 500, post(s, testCall).Code)
	require.Empty(t, s.UnfiredFaults())
}
