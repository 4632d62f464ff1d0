package destination

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

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

// A real simulator over HTTP: acknowledged records are stored, as sent.
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
	reply := sent(t, s, plan, batchOf(`{"name":"Ashley's \u00e9","zip":"48104"}`, `{"name":"B","zip":5}`, `{"name":null}`))
	require.EqualValues(t, 4242, reply.RateLimit)
	require.Equal(t, 200, reply.Status)
	require.Len(t, reply.Results, 3)
	require.True(t, reply.Results[0].Success)
	require.JSONEq(t, `"Ashley's é"`, string(reply.Results[0].Identifier))
	require.False(t, reply.Results[1].Success)
	require.Contains(t, reply.Results[1].ErrorMessage, "zip")
	require.False(t, reply.Results[2].Success)

	reply = sent(t, s, plan.With(rpc.OperationDelete), batchOf(`{"name":"Ashley's é"}`))
	require.True(t, reply.Results[0].Success)

	require.Len(t, seen, 3)
	require.Equal(t, []string{rpc.MethodGetSyncSpeed, rpc.MethodSyncBatch, rpc.MethodSyncBatch}, []string{seen[0].Method, seen[1].Method, seen[2].Method})
	require.NotEmpty(t, seen[1].RequestID)
	require.Positive(t, seen[1].Sent)
	require.Equal(t, []string{"4242"}, seen[1].Header["X-Ratelimit-Limit"])

	// Many senders at once share the pools.
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

// Forms of results of sync_batch and get_sync_speed, and their handling (spec
// 7.2.1, 7.2.4).
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
			failed := failedCall(t, err)
			require.Equal(t, c.message, failed.Message)
			require.Equal(t, failed.Outcome, seen.Outcome, "the journal says what the caller was told")
			require.Equal(t, failed.Message, seen.Error)
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
		failed := failedCall(t, err)
		require.Equal(t, OutcomeMalformed, failed.Outcome)
		require.Equal(t, "unknown error: result."+c.message+" is missing or not an integer", failed.Message)
	}
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
	reply := sent(t, s, plan, batchOf(`{"email":"a@example.com"}`, `{"email":"b@example.com"}`))
	require.True(t, reply.Results[0].Success && reply.Results[1].Success, reply.Results)
	require.NoError(t, s.Close())
}

// batchSender is a Sender or a Swap.
type batchSender interface {
	Send(ctx context.Context, plan *Plan, records [][]byte) (Reply, error)
}

// sent sends a batch, which must be answered.
func sent(t testing.TB, s batchSender, plan *Plan, records [][]byte) Reply {
	t.Helper()
	reply, err := s.Send(t.Context(), plan, records)
	require.NoError(t, err)
	return reply
}
