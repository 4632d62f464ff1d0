package destination

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
	"github.com/destkit/destkit/server/api"
	"github.com/stretchr/testify/require"
)

// sender opens a custom destination at a URL.
func sender(t testing.TB, g *Gate, url string) Sender {
	t.Helper()
	s, err := g.Sender(1, api.TypeCustomAPI, customCreds(t, g, `{"webhook_url":`+quote(url)+`,"auth_token":"very-secret-9"}`))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// restaurants is a plan for the object of that name.
func restaurants(operation string) *Plan {
	return NewPlan(rpc.SyncPlan{
		Object: rpc.ObjectRef{APIName: "restaurant", Label: "Restaurants"}, Operation: operation, SyncRunID: 602, SyncID: 309,
		Schema: map[string]rpc.SchemaField{
			"name": {ActiveIdentifier: true, Field: rpc.Field{APIName: "name", Label: "Name", Identifier: true, Required: true, Createable: true, Updateable: true, Type: rpc.TypeString}},
			"zip":  {Field: rpc.Field{APIName: "zip", Label: "ZIP <code>", Createable: true, Updateable: true, Type: rpc.TypeString}},
		},
	}, []string{"name", "nothing", "zip"})
}

func batchOf(texts ...string) (records [][]byte) {
	for _, text := range texts {
		records = append(records, []byte(text))
	}
	return records
}

// The params are exactly the published ones.
func TestPlanParams(t *testing.T) {
	p := restaurants(rpc.OperationUpsert)
	params := p.appendParams(nil, batchOf(`{"name":"Ashley's","zip":"48104"}`, `{"name":"B"}`))
	require.Equal(t, `{"sync_plan":{"object":{"object_api_name":"restaurant","label":"Restaurants"},"operation":"upsert",`+
		`"sync_run_id":602,"sync_id":309,"schema":{"name":{"active_identifier":true,"field":{"field_api_name":"name","label":"Name",`+
		`"identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}},`+
		`"zip":{"active_identifier":false,"field":{"field_api_name":"zip","label":"ZIP \u003ccode\u003e","identifier":false,"required":false,`+
		`"createable":true,"updateable":true,"type":"string","array":false}}}},"records":[{"name":"Ashley's","zip":"48104"},{"name":"B"}]}`, string(params))
	var b codec.Batch
	require.NoError(t, codec.DecodeBatch(params, &b))
	require.Equal(t, p.SyncPlan, b.Plan)
	require.Equal(t, 2, b.Len())
	require.NoError(t, codec.DecodeBatch(p.With(rpc.OperationDelete).appendParams(nil, nil), &b))
	require.Equal(t, rpc.OperationDelete, b.Plan.Operation)
	require.Equal(t, rpc.OperationUpsert, p.Operation)
	f := rpc.Field{APIName: "a", Label: "A", Identifier: true, Required: true, Createable: true, Updateable: true, Type: rpc.TypeInteger}
	require.Equal(t, f, WireField(describeField(f, []string{rpc.OperationUpdate})))
}

// A real simulator over HTTP: what is acknowledged is stored, as it was sent.
func TestSendToSimulator(t *testing.T) {
	sim := simulator(t, destsim.Config{
		Token: "very-secret-9", RateLimit: 4242, Speed: rpc.Speed{MaximumBatchSize: 7, MaximumParallelBatches: 99, MaximumRecordsPerSecond: 500},
		Objects: []destsim.ObjectConfig{{
			Name: "restaurant", Label: "Restaurants", Operations: []string{"upsert", "insert", "mirror"},
			Fields: []destsim.FieldConfig{{Name: "name", Type: rpc.TypeString, Identifier: true, Required: true}, {Name: "zip", Type: rpc.TypeString}},
		}},
	})
	url := server(t, sim.ServeHTTP)
	var seen []Exchange
	var mu sync.Mutex
	g := newGate(t, Options{Observe: func(x Exchange) { mu.Lock(); defer mu.Unlock(); seen = append(seen, x) }})
	s := sender(t, g, url)
	speed, err := s.Speed(t.Context())
	require.NoError(t, err)
	require.Equal(t, Speed{Speed: rpc.Speed{MaximumBatchSize: 7, MaximumParallelBatches: 99, MaximumRecordsPerSecond: 500}, RateLimit: 4242}, speed)

	plan := restaurants(rpc.OperationUpsert)
	reply, err := s.Send(t.Context(), plan, batchOf(`{"name":"Ashley's \u00e9","zip":"48104"}`, `{"name":"B","zip":5}`, `{"name":null}`))
	require.NoError(t, err)
	require.EqualValues(t, 4242, reply.RateLimit)
	require.Equal(t, 200, reply.Status)
	require.Len(t, reply.Results, 3)
	require.True(t, reply.Results[0].Success)
	require.JSONEq(t, `"Ashley's é"`, string(reply.Results[0].Identifier))
	require.False(t, reply.Results[1].Success)
	require.Contains(t, reply.Results[1].ErrorMessage, "zip")
	require.False(t, reply.Results[2].Success)

	reply, err = s.Send(t.Context(), plan.With(rpc.OperationDelete), batchOf(`{"name":"Ashley's é"}`))
	require.NoError(t, err)
	require.True(t, reply.Results[0].Success)

	require.Len(t, seen, 3)
	require.Equal(t, []string{rpc.MethodGetSyncSpeed, rpc.MethodSyncBatch, rpc.MethodSyncBatch}, []string{seen[0].Method, seen[1].Method, seen[2].Method})
	require.NotEmpty(t, seen[1].RequestID)
	require.Positive(t, seen[1].Sent)
	require.Equal(t, []string{"4242"}, seen[1].Header["X-Ratelimit-Limit"])

	// Many senders at once share what is pooled.
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 20 {
				id := fmt.Sprintf(`"w%d-%d"`, worker, i)
				reply, err := s.Send(context.Background(), plan, batchOf(`{"name":`+id+`,"zip":"`+strings.Repeat("z", i*worker)+`"}`))
				if err != nil || len(reply.Results) != 1 || !reply.Results[0].Success || string(reply.Results[0].Identifier) != id {
					t.Errorf("%s: %v %v", id, reply, err)
				}
			}
		})
	}
	wg.Wait()
}

// What a result of sync_batch or get_sync_speed may look like, and what becomes
// of it (spec 7.2.1, 7.2.4).
func TestSendResults(t *testing.T) {
	cases := []struct {
		name, answer string
		want         []rpc.RecordResult
		message      string
	}{
		{"in another order", `"result":{"record_results":[{"success":true,"identifier":2},{"identifier":1,"success":false,"error_message":"no"}]}`,
			[]rpc.RecordResult{{Identifier: json.RawMessage(`2`), Success: true}, {Identifier: json.RawMessage(`1`), ErrorMessage: "no"}}, ""},
		{"none", `"result":{"record_results":[]}`, []rpc.RecordResult{}, ""},
		{"no explicit success", `"result":{"record_results":[{"identifier":1},{"identifier":2,"success":"true"}]}`,
			[]rpc.RecordResult{{Identifier: json.RawMessage(`1`)}, {Identifier: json.RawMessage(`2`)}}, ""},
		{"message is an object", `"result":{"record_results":[{"identifier":1,"success":false,"error_message":{"a": 1}}]}`,
			[]rpc.RecordResult{{Identifier: json.RawMessage(`1`), ErrorMessage: `{"a": 1}`}}, ""},
		{"message is null", `"result":{"record_results":[{"identifier":1,"success":true,"error_message":null}]}`,
			[]rpc.RecordResult{{Identifier: json.RawMessage(`1`), Success: true}}, ""},
		{"message with the token", `"result":{"record_results":[{"identifier":1,"success":false,"error_message":"refused very-secret-9\nhere"}]}`,
			[]rpc.RecordResult{{Identifier: json.RawMessage(`1`), ErrorMessage: "refused [hidden] here"}}, ""},
		{"no record_results", `"result":{}`, nil, "unknown error: record_results is missing"},
		{"twice", `"result":{"record_results":[],"record_results":[]}`, nil, "unknown error: record_results is repeated"},
		{"not an array", `"result":{"record_results":{}}`, nil, "unknown error: record_results is not an array"},
		{"entries are no objects", `"result":{"record_results":[1]}`, nil, "unknown error: an entry is not an object"},
		{"error", `"error":{"code":-32000,"message":"down very-secret-9"}`, nil, "rpc error -32000: down [hidden]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var seen Exchange
			g := newGate(t, Options{Observe: func(x Exchange) { seen = x }})
			s := sender(t, g, server(t, endpoint(t, map[string]string{rpc.MethodSyncBatch: c.answer})))
			reply, err := s.Send(t.Context(), restaurants(rpc.OperationUpsert), batchOf(`{"name":1}`))
			if c.message == "" {
				require.NoError(t, err)
				require.Equal(t, c.want, reply.Results)
				require.Equal(t, OutcomeOK, seen.Outcome)
				return
			}
			var failed *CallError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, c.message, failed.Message)
			require.Equal(t, failed.Outcome, seen.Outcome, "the journal says what the caller was told")
			require.Equal(t, failed.Message, seen.Error)
			require.True(t, failed.Reached())
			require.Nil(t, reply.Results)
		})
	}
}

func TestSpeedAnswers(t *testing.T) {
	cases := []struct{ answer, message string }{
		{`"result":{"maximum_batch_size":1,"maximum_parallel_batches":2,"maximum_records_per_second":3,"more":1}`, ""},
		{`"result":{"maximum_batch_size":0,"maximum_parallel_batches":-2,"maximum_records_per_second":3}`, ""},
		{`"result":{"maximum_batch_size":1,"maximum_parallel_batches":2}`, "maximum_records_per_second"},
		{`"result":{"maximum_batch_size":"1","maximum_parallel_batches":2,"maximum_records_per_second":3}`, "maximum_batch_size"},
		{`"result":{"maximum_batch_size":1,"maximum_parallel_batches":1.5,"maximum_records_per_second":3}`, "maximum_parallel_batches"},
		{`"result":{"maximum_batch_size":1,"maximum_parallel_batches":99999999999999999999,"maximum_records_per_second":3}`, "maximum_parallel_batches"},
	}
	for _, c := range cases {
		s := sender(t, newGate(t, Options{}), server(t, endpoint(t, map[string]string{rpc.MethodGetSyncSpeed: c.answer})))
		speed, err := s.Speed(t.Context())
		if c.message == "" {
			require.NoError(t, err)
			require.EqualValues(t, 3, speed.MaximumRecordsPerSecond)
			continue
		}
		var failed *CallError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, OutcomeMalformed, failed.Outcome)
		require.Equal(t, "unknown error: result."+c.message+" is missing or not an integer", failed.Message)
	}
}

// Every outcome of a batch, with the headers that any reply may carry (spec 8).
func TestSendOutcomes(t *testing.T) {
	answer := func(status int, header map[string]string, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			for name, value := range header {
				w.Header()[name] = []string{value}
			}
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	limited := map[string]string{"X-Ratelimit-Limit": " 77 ", "Retry-After": "120"}
	cases := []struct {
		name    string
		handler http.HandlerFunc
		want    CallError
	}{
		{"throttled", answer(429, limited, ""), CallError{Outcome: OutcomeStatus, Status: 429, RetryAfter: "120", RateLimit: 77}},
		{"throttled with an error object", answer(429, limited, `{"jsonrpc":"2.0","id":null,"error":{"code":5,"message":"slow"}}`),
			CallError{Outcome: OutcomeRPCError, Status: 429, Code: 5, RetryAfter: "120", RateLimit: 77}},
		{"refused", answer(401, limited, ""), CallError{Outcome: OutcomeRefused, Status: 401, RetryAfter: "120", RateLimit: 77}},
		{"server error", answer(503, map[string]string{"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, "x"),
			CallError{Outcome: OutcomeStatus, Status: 503, RetryAfter: "Wed, 21 Oct 2026 07:28:00 GMT"}},
		{"no JSON", answer(200, limited, "<html>"), CallError{Outcome: OutcomeMalformed, Status: 200, RetryAfter: "120", RateLimit: 77}},
		{"the misspelt header", answer(500, map[string]string{"X-Ratelimit_limit": "9"}, ""), CallError{Outcome: OutcomeStatus, Status: 500, RateLimit: 9}},
		{"a limit of nothing", answer(500, map[string]string{"X-Ratelimit-Limit": "0"}, ""), CallError{Outcome: OutcomeStatus, Status: 500}},
		{"a limit in words", answer(500, map[string]string{"X-Ratelimit-Limit": "many"}, ""), CallError{Outcome: OutcomeStatus, Status: 500}},
		{"a negative limit", answer(500, map[string]string{"X-Ratelimit-Limit": "-5"}, ""), CallError{Outcome: OutcomeStatus, Status: 500}},
		{"too large", answer(200, limited, strings.Repeat(" ", 5000)), CallError{Outcome: OutcomeTooLarge, Status: 200, RetryAfter: "120", RateLimit: 77}},
		{"cut off", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, CallError{Outcome: OutcomeNetwork}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := sender(t, newGate(t, Options{MaxReply: 4096}), server(t, c.handler))
			_, err := s.Send(t.Context(), restaurants(rpc.OperationUpsert), batchOf(`{"name":"a"}`))
			var failed *CallError
			require.ErrorAs(t, err, &failed)
			require.NotEmpty(t, failed.Message)
			require.True(t, failed.Reached())
			got := *failed
			require.Equal(t, rpc.MethodSyncBatch, got.Method)
			require.Len(t, got.Call, 32)
			got.Method, got.Message, got.Call = "", "", ""
			require.Equal(t, c.want, got)
		})
	}
	_, err := sender(t, newGate(t, Options{}), server(t, answer(200, limited, ``))).Speed(t.Context())
	var failed *CallError
	require.ErrorAs(t, err, &failed)
	require.EqualValues(t, 77, failed.RateLimit, "any reply")
}

// Calls that never arrived, or whose answer never came.
func TestSendWithoutReply(t *testing.T) {
	send := func(t *testing.T, ctx context.Context, options Options, url string) *CallError {
		options.AllowPlainHTTP = true
		_, err := sender(t, newGate(t, options), url).Send(ctx, restaurants(rpc.OperationUpsert), batchOf(`{"name":"a"}`))
		var failed *CallError
		require.ErrorAs(t, err, &failed)
		return failed
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	refused := send(t, t.Context(), Options{}, gone.URL)
	require.Equal(t, OutcomeConnect, refused.Outcome)
	require.False(t, refused.Reached(), "nobody can have seen the batch")

	missing := send(t, t.Context(), Options{}, "http://nobody.invalid/")
	require.Equal(t, OutcomeDNS, missing.Outcome)
	require.False(t, missing.Reached(), "nobody can have seen the batch")

	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	secure.Config.ErrorLog = discardLog
	untrusted := send(t, t.Context(), Options{}, secure.URL)
	require.Equal(t, OutcomeTLS, untrusted.Outcome)
	require.False(t, untrusted.Reached())

	arrived, release := make(chan struct{}, 8), make(chan struct{})
	t.Cleanup(func() { close(release) })
	slow := server(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	late := send(t, t.Context(), Options{BatchTimeout: 20 * time.Millisecond}, slow)
	require.Equal(t, OutcomeTimeout, late.Outcome)
	require.Contains(t, late.Message, "20ms in all")
	require.True(t, late.Reached())
	<-arrived
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	require.Equal(t, OutcomeCanceled, send(t, ctx, Options{}, slow).Outcome)
}

// Emulated types answer in process, with their hidden identifier.
func TestSendToEmulated(t *testing.T) {
	e := &simulators{}
	g := newGate(t, Options{Emulate: e.emulate})
	merged, problems := g.CheckConnection("google_ads", creds(t, emulatedCreds["google_ads"]), nil)
	require.Empty(t, problems)
	s, err := g.Sender(7, "google_ads", merged)
	require.NoError(t, err)
	speed, err := s.Speed(t.Context())
	require.NoError(t, err)
	require.Positive(t, speed.MaximumBatchSize)
	require.Equal(t, "unique_id", g.HiddenIdentifier("google_ads", "offline_conversion"))
	require.Empty(t, g.HiddenIdentifier("google_ads", "customer_match_email"))
	require.Empty(t, g.HiddenIdentifier(api.TypeCustomAPI, "x"))
	require.Equal(t, "unique_id", g.HiddenIdentifier(api.TypeLocalFiles, "x"))
	plan := NewPlan(rpc.SyncPlan{
		Object: rpc.ObjectRef{APIName: "customer_match_email"}, Operation: rpc.OperationUpsert,
		Schema: map[string]rpc.SchemaField{"email": {ActiveIdentifier: true, Field: rpc.Field{APIName: "email", Type: rpc.TypeString, Identifier: true}}},
	}, nil)
	reply, err := s.Send(t.Context(), plan, batchOf(`{"email":"a@example.com"}`, `{"email":"b@example.com"}`))
	require.NoError(t, err)
	require.True(t, reply.Results[0].Success && reply.Results[1].Success, reply.Results)
	require.NoError(t, s.Close())
}

func TestSenderOfUnknownType(t *testing.T) {
	_, err := newGate(t, Options{}).Sender(1, "fax", nil)
	require.ErrorContains(t, err, `unknown type "fax"`)
}

// BenchmarkSend posts batches of 1,000 records to a handler in process that
// answers each of them.
func BenchmarkSend(b *testing.B) {
	for _, size := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var records [][]byte
			var answer []byte
			for i := range size {
				records = append(records, fmt.Appendf(nil, `{"name":"name %d","zip":"%s"}`, i, strings.Repeat("z", 190)))
				answer = codec.AppendRecordResult(append(answer, ','), fmt.Appendf(nil, `"name %d"`, i), true, "")
			}
			answer = append(append([]byte(`{"record_results":[`), answer[1:]...), ']', '}')
			g := newGate(b, Options{})
			s := sender(b, g, server(b, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				q, _ := rpc.DecodeRequest(body)
				w.Write(rpc.AppendResponse(nil, q.RawID, answer))
			}))
			plan := restaurants(rpc.OperationUpsert)
			b.ReportAllocs()
			for b.Loop() {
				if reply, err := s.Send(context.Background(), plan, records); err != nil || len(reply.Results) != size {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
