package destsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// firedOn makes twelve calls of a method and returns those on which the fault fired.
func firedOn(t *testing.T, s *Sim, method, params string) string {
	t.Helper()
	out := ""
	for range 12 {
		if strings.Contains(invoke(s, method, params), `"error":{"code":-32099`) {
			out += "x"
		} else {
			out += "."
		}
	}
	return out
}

func TestTriggersCountCalls(t *testing.T) {
	cases := []struct{ when, want string }{
		{`{}`, "xxxxxxxxxxxx"},
		{`{"first":3}`, "xxx........."},
		{`{"every":4}`, "...x...x...x"},
		{`{"from":3,"to":5}`, "..xxx......."},
		{`{"from":10}`, ".........xxx"},
		{`{"to":2}`, "xx.........."},
		{`{"times":2}`, "xx.........."},
		{`{"every":2,"times":3}`, ".x.x.x......"},
		{`{"every":2,"from":5,"to":9}`, ".....x.x...."},
		{`{"probability":1}`, "xxxxxxxxxxxx"},
		{`{"method":"list_objects"}`, "............"},
		{`{"method":"test_connection","first":1}`, "x..........."},
		{`{"object":"contact"}`, "............"},
		{`{"operation":"upsert"}`, "............"},
	}
	for _, c := range cases {
		t.Run(c.when, func(t *testing.T) {
			s := newSim(t, Config{})
			armJSON(t, s, `{"kind":"rpc_error","when":`+c.when+`}`)
			require.Equal(t, c.want, firedOn(t, s, rpc.MethodTestConnection, `{}`))
			fault := s.Faults()[0]
			require.Equal(t, int64(strings.Count(c.want, "x")), fault.Fired)
		})
	}
}

func TestTriggersFilterBeforeTheyCount(t *testing.T) {
	s := newSim(t, Config{})
	armJSON(t, s, `{"kind":"rpc_error","when":{"object":"contact","from":2,"to":2}}`)
	calls := []struct{ method, params string }{
		{rpc.MethodTestConnection, `{}`},
		{rpc.MethodListFields, `{"object":{"object_api_name":"order"}}`},
		{rpc.MethodListFields, `{"object":{"object_api_name":"contact"}}`},
		{rpc.MethodListObjects, `{}`},
		{rpc.MethodSyncBatch, fourRecords(s, "upsert")}, // the second of contact
		{rpc.MethodSyncBatch, fourRecords(s, "upsert")},
	}
	out := ""
	for _, c := range calls {
		out += fmt.Sprint(strings.Contains(invoke(s, c.method, c.params), `"error"`))[:1]
	}
	require.Equal(t, "fffftf", out)
	require.Equal(t, int64(3), s.Faults()[0].Matched)
}

func TestTriggersOfBatches(t *testing.T) {
	cases := []struct {
		fault string
		want  []string
	}{
		{`{"kind":"rpc_error","when":{"operation":"insert"}}`, nil},
		{`{"kind":"rpc_error","when":{"operation":"upsert"}}`, []string{"error -32099 simulated fault"}},
		{`{"kind":"rpc_error","when":{"identifier":"c@x"}}`, []string{"error -32099 simulated fault"}},
		{`{"kind":"rpc_error","when":{"identifier":"nobody"}}`, nil},
		{`{"kind":"rpc_error","when":{"field":"age"}}`, []string{"error -32099 simulated fault"}},
		{`{"kind":"rpc_error","when":{"field":"age","value":9}}`, nil},
		{`{"kind":"rpc_error","when":{"field":"first_name"}}`, nil},
		{`{"kind":"record_failure","when":{"field":"age","value":1,"identifier":"c@x"}}`, nil},
		{`{"kind":"record_failure","when":{"field":"last_name","value":"L2"}}`, []string{"a@x+", "b@x+", "c@x-", "d@x+"}},
		{`{"kind":"record_failure","when":{"count":"records","every":2}}`, []string{"a@x+", "b@x-", "c@x+", "d@x-"}},
		{`{"kind":"record_failure","when":{"count":"records","first":1}}`, []string{"a@x-", "b@x+", "c@x+", "d@x+"}},
		{`{"kind":"record_failure","when":{"count":"records","from":2,"to":3}}`, []string{"a@x+", "b@x-", "c@x-", "d@x+"}},
		{`{"kind":"record_failure","when":{"count":"records","times":3}}`, []string{"a@x-", "b@x-", "c@x-", "d@x+"}},
		{`{"kind":"record_failure","records":2,"when":{"first":1}}`, []string{"a@x+", "b@x+", "c@x-", "d@x-"}},
		{`{"kind":"record_failure","when":{"every":2}}`, nil},
	}
	for _, c := range cases {
		t.Run(c.fault, func(t *testing.T) {
			s := newSim(t, Config{})
			armJSON(t, s, c.fault)
			want := c.want
			if want == nil {
				want = []string{"a@x+", "b@x+", "c@x+", "d@x+"}
			}
			require.Equal(t, want, results(t, invoke(s, rpc.MethodSyncBatch, fourRecords(s, "upsert"))))
			require.Equal(t, c.want == nil, len(s.UnfiredFaults()) == 1)
		})
	}
}

func TestIntegerIdentifiersMatchByValue(t *testing.T) {
	s := newSim(t, Config{})
	armJSON(t, s, `{"kind":"acknowledge_unstored","when":{"identifier":9007199254740993}}`)
	require.Equal(t, []string{"ok", "ok"}, words(t, invoke(s, rpc.MethodSyncBatch, planOf(s, "order", "upsert", "order_id",
		`{"order_id":9007199254740993,"order_number":"x"}`, `{"order_id":9007199254740992,"order_number":"y"}`))))
	require.Empty(t, stored(t, s, "order", "order_id", `9007199254740993`))
	require.NotEmpty(t, stored(t, s, "order", "order_id", `9007199254740992`))
}

func TestProbabilityFollowsItsSeed(t *testing.T) {
	run := func(config Config, when string) string {
		s := newSim(t, config)
		armJSON(t, s, `{"kind":"rpc_error","when":`+when+`}`)
		out := ""
		for range 20 {
			out += firedOn(t, s, rpc.MethodTestConnection, `{}`)
		}
		return out
	}
	half := run(Config{}, `{"probability":0.5,"seed":11}`)
	require.Equal(t, half, run(Config{Seed: 99}, `{"probability":0.5,"seed":11}`))
	require.NotEqual(t, half, run(Config{}, `{"probability":0.5,"seed":12}`))
	require.InDelta(t, 120, strings.Count(half, "x"), 45)
	require.Equal(t, run(Config{Seed: 5}, `{"probability":0.5}`), run(Config{Seed: 5}, `{"probability":0.5}`))
	require.InDelta(t, 24, strings.Count(run(Config{}, `{"probability":0.1,"seed":1}`), "x"), 20)
}

func TestParallelCallsCountExactly(t *testing.T) {
	s := newSim(t, Config{})
	armJSON(t, s, `{"kind":"rpc_error","when":{"first":50,"every":5}}`)
	armJSON(t, s, `{"kind":"record_failure","when":{"count":"records","times":7}}`)
	params := fourRecords(s, "upsert")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 25 {
				invoke(s, rpc.MethodSyncBatch, params)
			}
		})
	}
	group.Wait()
	list := s.Faults()
	require.Equal(t, int64(200), list[0].Matched)
	require.Equal(t, int64(10), list[0].Fired)
	require.Equal(t, int64(7), list[1].Fired)
}

func TestBadFaults(t *testing.T) {
	cases := []struct{ fault, want string }{
		{`{`, "the body is not JSON: it ends too early"},
		{` `, "the body is empty: send a JSON object"},
		{"{\n \"kind\" \"x\"}", "the body is not JSON: line 2, column 9: a colon must follow the key"},
		{`[]`, "the body: must be an object, not a list"},
		{`{"kind":"throttle","seconds":"2"}`, "seconds: must be a whole number, not a string"},
		{`{"kind":"throttle","when":{"first":1.5}}`, "when.first: must be a whole number, not 1.5"},
		{`{"kind":"throttle","when":{"metod":"sync_batch"}}`, `when.metod: unknown field (did you mean "method"?)`},
		{`{}`, "kind: is missing (one of delay, hang, "},
		{`{"kind":"bogus"}`, `kind: unknown kind "bogus" (one of delay, hang, `},
		{`{"kind":"delay","delay":{"ms":1}} {}`, "more than one JSON value"},
		{`{"kind":"delay","dely":{"ms":1}}`, `dely: unknown field (did you mean "delay"?)`},
		{`{"kind":"dely"}`, `kind: unknown kind "dely" (did you mean "delay"?)`},
		{`{"kind":"delay"}`, "delay: is missing"},
		{`{"kind":"delay","delay":{"distribution":"paretto"}}`, `did you mean "pareto"?`},
		{`{"kind":"delay","delay":{"distribution":"uniform","ms":3}}`, "ms: delay.uniform does not take it"},
		{`{"kind":"delay","delay":{"distribution":"uniform","min_ms":3,"max_ms":1}}`, "delay.max_ms"},
		{`{"kind":"delay","delay":{"distribution":"pareto","scale_ms":3}}`, "delay.shape"},
		{`{"kind":"delay","delay":{"ms":-1}}`, "between 0 and 3600000"},
		{`{"kind":"delay","at":"between","delay":{"ms":1}}`, `at: unknown value "between"`},
		{`{"kind":"wrong_id","at":"before"}`, "at: wrong_id does not take it"},
		{`{"kind":"reset","code":3}`, "code: reset does not take it"},
		{`{"kind":"reset","records":3}`, "records: counts with at between only"},
		{`{"kind":"reset","at":"between","when":{"method":"list_objects"}}`, "at: list_objects has no records"},
		{`{"kind":"http_status"}`, "status: must be between 200 and 599, not 0"},
		{`{"kind":"http_status","status":500,"headers":{"a b":"c"}}`, `headers["a b"]`},
		{`{"kind":"http_status","status":500,"headers":{"a":"c\r\nX: y"}}`, `headers["a"]`},
		{`{"kind":"throttle","retry_after":"dat"}`, `did you mean "date"?`},
		{`{"kind":"throttle","seconds":-1}`, "must not be negative"},
		{`{"kind":"schema"}`, "drift: is missing"},
		{`{"kind":"schema","drift":{"action":"drop_field"}}`, "drift.action: unknown action"},
		{`{"kind":"schema","drift":{"action":"remove_field"}}`, "drift.field: is missing"},
		{`{"kind":"schema","drift":{"action":"remove_object"}}`, "drift.object: is missing"},
		{`{"kind":"schema","drift":{"action":"remove_object","object":"x","type":"string"}}`, "type: drift.remove_object does not take it"},
		{`{"kind":"schema","drift":{"action":"retype_field","field":"x"}}`, "drift.type: is missing"},
		{`{"kind":"schema","drift":{"action":"add_field","field":"x","type":"text"}}`, `unknown type "text"`},
		{`{"kind":"schema","drift":{"action":"set_operations"}}`, "drift.operations"},
		{`{"kind":"schema","drift":{"action":"set_operations","operations":["append"]}}`, `unknown operation "append"`},
		{`{"kind":"speed"}`, "speeds: must have"},
		{`{"kind":"rate_limit"}`, "limits: must have"},
		{`{"kind":"rate_limit","limits":["a\nb"]}`, "limits[0]"},
		{`{"kind":"rpc_error","when":{"method":"sync_batches"}}`, `when.method: unknown method "sync_batches" (did you mean "sync_batch"?)`},
		{`{"kind":"speed","speeds":[{}],"when":{"method":"sync_batch"}}`, "never touches sync_batch"},
		{`{"kind":"speed","speeds":[{}],"when":{"operation":"upsert"}}`, "touches no batch"},
		{`{"kind":"rpc_error","when":{"operation":"mirror"}}`, "when.operation: unknown operation"},
		{`{"kind":"rpc_error","when":{"operation":"insert","method":"list_objects"}}`, "list_objects has no operation"},
		{`{"kind":"rpc_error","when":{"value":3}}`, "when.value: needs when.field"},
		{`{"kind":"rpc_error","when":{"count":"records"}}`, "when.count: this kind of fault acts on calls"},
		{`{"kind":"rpc_error","when":{"count":"record"}}`, "when.count: unknown value"},
		{`{"kind":"rpc_error","when":{"first":-1}}`, "must not be negative"},
		{`{"kind":"rpc_error","when":{"from":5,"to":4}}`, "when.to: 4 comes before from"},
		{`{"kind":"rpc_error","when":{"probability":1.5}}`, "when.probability"},
	}
	s := newSim(t, Config{})
	for _, c := range cases {
		w := control(s, http.MethodPost, "/_control/faults", c.fault)
		require.Equal(t, 400, w.Code, c.fault)
		var reply controlError
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &reply))
		require.Contains(t, reply.Error, c.want, c.fault)
	}
	require.Empty(t, s.Faults())
	_, err := s.ArmFault(Fault{Kind: "wrong_id", ID: json.RawMessage(`{`)})
	require.ErrorContains(t, err, "id: is not a JSON value")
}

func TestFaultsOverControl(t *testing.T) {
	s := newSim(t, Config{})
	first := armJSON(t, s, `{"kind":"rpc_error","when":{"method":"list_objects"}}`)
	second := armJSON(t, s, `{"kind":"rate_limit","limits":["7"]}`)
	require.NotEqual(t, first, second)
	invoke(s, rpc.MethodTestConnection, `{}`)
	type list struct{ Faults []ArmedFault }
	get := func(query string) (l list) {
		w := control(s, http.MethodGet, "/_control/faults"+query, "")
		require.Equal(t, 200, w.Code)
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &l))
		return l
	}
	require.Len(t, get("").Faults, 2)
	unfired := get("?unfired=true").Faults
	require.Len(t, unfired, 1)
	require.Equal(t, first, unfired[0].ID)
	require.Equal(t, "list_objects", unfired[0].Fault.When.Method)
	require.Equal(t, 400, control(s, http.MethodGet, "/_control/faults?unfired=yes", "").Code)

	require.Equal(t, 200, control(s, http.MethodDelete, "/_control/faults/"+second, "").Code)
	require.Equal(t, 404, control(s, http.MethodDelete, "/_control/faults/"+second, "").Code)
	require.Equal(t, 404, control(s, http.MethodDelete, "/_control/faults/f99", "").Code)
	all := get("").Faults
	require.False(t, all[1].Armed)
	require.Equal(t, int64(1), all[1].Fired, "a disarmed fault is still told of")
	require.JSONEq(t, `{"ok":true,"disarmed":1}`, control(s, http.MethodDelete, "/_control/faults", "").Body.String())
	require.Len(t, get("?unfired=true").Faults, 1, "disarmed and never fired")

	require.Contains(t, control(s, http.MethodGet, "/_control/faults/kinds", "").Body.String(), `"acknowledge_unstored"`)
	require.Contains(t, control(s, http.MethodGet, "/_control/", "").Body.String(), `/_control/faults/{id}`)
	require.NoError(t, s.Reset())
	require.Empty(t, s.Faults())
}

func TestTheBoardIsBounded(t *testing.T) {
	s := newSim(t, Config{})
	fault := Fault{Kind: "rate_limit", Limits: []string{"1"}}
	for range maxArmed {
		_, err := s.ArmFault(fault)
		require.NoError(t, err)
	}
	_, err := s.ArmFault(fault)
	require.ErrorContains(t, err, "1000 faults are armed already")
	require.Equal(t, maxArmed, s.faults.disarmAll())
	last := ""
	for range maxArmed {
		last, err = s.ArmFault(fault)
		require.NoError(t, err)
	}
	require.Equal(t, maxArmed, s.faults.disarmAll())
	list := s.Faults()
	require.Len(t, list, maxDisarmed)
	require.Equal(t, last, list[len(list)-1].ID)
	require.ErrorIs(t, s.DisarmFault(last), ErrUnknownFault)
}
