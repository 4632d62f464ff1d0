package codec

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// publishedParams is the published example of sync_batch.
const publishedParams = `{"sync_plan":{"object":{"object_api_name":"restaurant","label":"Restaurants"},
"operation":"upsert","sync_run_id":602,"sync_id":309,
"schema":{"name":{"active_identifier":true,"field":{"field_api_name":"name","label":"Name","identifier":true,"required":true,
"createable":true,"updateable":true,"type":"string","array":false}},
"zip":{"active_identifier":false,"field":{"field_api_name":"zip","label":"ZIP","identifier":false,"required":false,
"createable":true,"updateable":true,"type":"string","array":false}},
"tag_list":{"active_identifier":false,"field":{"field_api_name":"tag_list","label":"Tags","identifier":false,"required":true,
"createable":true,"updateable":true,"type":"string","array":true}}}},
"records":[{"name":"Ashley's","zip":"48104","tag_list":["Bar", "Brewpub"]},{"name":"Seva","zip":"48103","tag_list":[]}]}`

func TestDecodeBatchPublished(t *testing.T) {
	var b Batch
	require.NoError(t, DecodeBatch([]byte(publishedParams), &b))
	var want rpc.BatchParams
	require.NoError(t, json.Unmarshal([]byte(publishedParams), &want))
	require.Equal(t, want.SyncPlan, b.Plan)
	require.Equal(t, "name", b.Identifier)
	require.Equal(t, 2, b.Len())
	tags, ok := b.Record(0).Field("tag_list")
	require.True(t, ok)
	require.Equal(t, `["Bar", "Brewpub"]`, string(tags))
	_, ok = b.Record(0).Field("nam")
	require.False(t, ok)
	require.Equal(t, `{"name":"Seva","zip":"48103","tag_list":[]}`, string(b.Record(1).Raw()))
	require.Equal(t, 3, b.Record(1).Len())
	key, raw := b.Record(1).At(1)
	require.Equal(t, "zip", string(key))
	require.Equal(t, `"48103"`, string(raw))
}

// TestValuesPassUnchanged sends every awkward value through the encoder, the
// decoder and a result.
func TestValuesPassUnchanged(t *testing.T) {
	values := []string{
		`9007199254740993`, `-9007199254740993`, `9223372036854775807`, `-9223372036854775808`, `18446744073709551616`,
		`"1234.1234"`, `"0.1000000000000000055511151231257827021181583404541015625"`, `42.42`, `1e400`, `-0.0`,
		`null`, `true`, `false`, `"2021-03-29"`, `"2021-03-29T16:32:23Z"`, `"2021-03-29T16:32:23.123456Z"`,
		`[]`, `["a",null,"b"]`, `[9007199254740993]`, `""`, `" "`, `"😀"`, `"👩‍👩‍👧‍👦"`, `"cafe` + "\u0301" + `"`, `"café"`,
		`"\ud83d\ude00"`, `"\ud800"`, `"\u0000"`, `"a\"b\\c\/d\n"`, `"<script>&"`, "\"\u2028\"", `{"nested":{"x":[1]}}`,
	}
	for _, value := range values {
		body, _, err := (&rpc.Client{}).Encode(rpc.MethodSyncBatch, rpc.BatchParams{SyncPlan: benchPlan(), Records: []rpc.Record{
			{"email": json.RawMessage(value), "ключ": json.RawMessage(value)},
		}})
		require.NoError(t, err)
		var r rpc.Request
		var b Batch
		require.NoError(t, DecodeCall(body, &r, &b))
		for _, name := range []string{"email", "ключ"} {
			raw, ok := b.Record(0).Field(name)
			require.True(t, ok)
			require.Equal(t, value, string(raw))
		}
		raw, _ := b.Record(0).Field(b.Identifier)
		result := append(AppendRecordResult([]byte(`{"record_results":[`), raw, true, ""), "]}"...)
		require.NoError(t, rpc.ScanResults(result, func(identifier []byte, success bool, _ []byte) error {
			require.Equal(t, value, string(identifier))
			require.True(t, success)
			return nil
		}))
	}
}

func TestDecodeBatchShapes(t *testing.T) {
	b := Batch{Plans: new(PlanCache)}
	for text, want := range map[string][]string{ // params to the value of "a" in each record
		`{"records":[{"a":1},{"a":2}],"sync_plan":{}}`:                                 {"1", "2"},
		`{"sync_plan":{},"records":[]}`:                                                {},
		` { "sync_plan" : { } , "records" : [ { } , { "a" : 1 } ] , "x" : [{}] } `:     {"-", "1"},
		`{"sync_plan":{},"records":[{"a":1,"b":2},{"b":3,"a":4},{"a":5}]}`:             {"1", "4", "5"},
		`{"sync_plan":{},"records":[{"a":1},{"b":0,"a":2,"c":9},{"a":{"a":3}}]}`:       {"1", "2", `{"a":3}`},
		`{"sync_plan":{},"records":[{"a":1,"a":2}]}`:                                   {"2"},
		`{"sync_plan":{},"records":[{"a":1,"\u0061":2},{"\u0061":3,"a":4}]}`:           {"2", "4"},
		`{"sync_plan":{},"records":[{"a" :1},{"a" :2},{"a":3}]}`:                       {"1", "2", "3"},
		`{"sync_plan":{},"records":[{"aa":0,"a":1},{"aa":0,"a":2}],"records":[{}]}`:    {"-"},
		`{"sync_plan":{"x":1},"sync_plan":{},"records":[{"a":[1,2]}]}`:                 {"[1,2]"},
		`{"\u0073ync_plan":{},"rec\u006frds":[{"a":1}]}`:                               {"1"},
		`{"sync_plan":{},"records":[{"A":0,"a":1},{"A":0}]}`:                           {"1", "-"},
		`{"sync_plan":{"operation":null,"sync_id":null,"extra":1},"records":[{}, {}]}`: {"-", "-"},
	} {
		require.NoError(t, DecodeBatch([]byte(text), &b), text)
		got := []string{}
		for i := range b.Len() {
			raw, ok := b.Record(i).Field("a")
			if !ok {
				raw = []byte("-")
			}
			got = append(got, string(raw))
		}
		require.Equal(t, want, got, text)
	}
}

func TestDecodeBatchRefuses(t *testing.T) {
	plan := func(s string) string { return `{"sync_plan":` + s + `,"records":[]}` }
	schema := func(s string) string { return plan(`{"schema":` + s + `}`) }
	for text, code := range map[string]int64{
		``: rpc.CodeParseError, `{`: rpc.CodeParseError, `{"sync_plan":{},"records":[{"a":1},{"a":]}`: rpc.CodeParseError,
		`{"sync_plan":{},"records":[{"a":1},{"a":`: rpc.CodeParseError, `{"sync_plan":{},"records":[]}x`: rpc.CodeParseError,
		`{"records":5,"x":tru}`: rpc.CodeParseError, "{\"sync_plan\":{},\"records\":[{\"a\":1},{\"a\":\"\xff\"}]}": rpc.CodeParseError,
		`[]`: rpc.CodeInvalidParams, `null`: rpc.CodeInvalidParams, `{}`: rpc.CodeInvalidParams,
		`{"sync_plan":{}}`: rpc.CodeInvalidParams, `{"records":[]}`: rpc.CodeInvalidParams,
		`{"sync_plan":{},"records":{}}`: rpc.CodeInvalidParams, `{"sync_plan":{},"records":null}`: rpc.CodeInvalidParams,
		`{"sync_plan":{},"records":[{},1]}`: rpc.CodeInvalidParams, `{"sync_plan":{},"records":[null,{}]}`: rpc.CodeInvalidParams,
		plan(`[]`): rpc.CodeInvalidParams, plan(`null`): rpc.CodeInvalidParams, plan(`{"object":"x"}`): rpc.CodeInvalidParams,
		plan(`{"object":{"object_api_name":1}}`): rpc.CodeInvalidParams, plan(`{"object":{"label":[]}}`): rpc.CodeInvalidParams,
		plan(`{"operation":1}`): rpc.CodeInvalidParams, plan(`{"sync_id":"1"}`): rpc.CodeInvalidParams,
		plan(`{"sync_run_id":1.5}`): rpc.CodeInvalidParams, plan(`{"sync_run_id":9223372036854775808}`): rpc.CodeInvalidParams,
		schema(`[]`): rpc.CodeInvalidParams, schema(`{"a":1}`): rpc.CodeInvalidParams, schema(`{"a":{"field":1}}`): rpc.CodeInvalidParams,
		schema(`{"a":{"active_identifier":"yes"}}`): rpc.CodeInvalidParams, schema(`{"a":{"field":{"array":0}}}`): rpc.CodeInvalidParams,
		`{"sync_plan":{},"records":[{"a":` + nested(510) + `}]}`: rpc.CodeParseError,
	} {
		var b Batch
		err := DecodeBatch([]byte(text), &b)
		var rpcErr *rpc.Error
		require.ErrorAs(t, err, &rpcErr, text)
		require.Equal(t, code, rpcErr.Code, "%s: %s", text, rpcErr.Message)
		require.Zero(t, b.Len())
		require.Nil(t, b.RawPlan)
	}
	var b Batch
	err := DecodeBatch([]byte(schema(`{"a":{"active_identifier":"yes"}}`)), &b)
	require.EqualError(t, err, `rpc error -32602: invalid params: sync_plan.schema["a"].active_identifier has the wrong type: "yes"`)
}

func TestActiveIdentifier(t *testing.T) {
	on, off := rpc.SchemaField{ActiveIdentifier: true}, rpc.SchemaField{}
	for _, tc := range []struct {
		schema map[string]rpc.SchemaField
		name   string
		ok     bool
	}{
		{nil, "", false},
		{map[string]rpc.SchemaField{"a": off}, "", false},
		{map[string]rpc.SchemaField{"a": off, "b": on}, "b", true},
		{map[string]rpc.SchemaField{"a": on, "b": on}, "", false},
	} {
		name, ok := rpc.SyncPlan{Schema: tc.schema}.ActiveIdentifier()
		require.Equal(t, tc.name, name)
		require.Equal(t, tc.ok, ok)
	}
}

func TestPlanCache(t *testing.T) {
	var cache PlanCache
	params := func(id int) []byte {
		return fmt.Appendf(nil, `{"sync_plan":{"sync_id":%d},"records":[{"a":%d}]}`, id, id)
	}
	for id := range 2 * planSlots {
		b := Batch{Plans: &cache}
		require.NoError(t, DecodeBatch(params(id), &b))
		require.EqualValues(t, id, b.Plan.SyncID)
	}
	require.Len(t, *cache.entries.Load(), planSlots)
	require.Nil(t, cache.find([]byte(`{"sync_id":1}`)), "the oldest are dropped")
	require.NotNil(t, cache.find(fmt.Appendf(nil, `{"sync_id":%d}`, 2*planSlots-1)))

	// A body changed after it was decoded must not change the remembered plan.
	own := params(7777)
	b := Batch{Plans: &cache}
	require.NoError(t, DecodeBatch(own, &b))
	clear(own)
	require.NoError(t, DecodeBatch(params(7777), &b))
	require.EqualValues(t, 7777, b.Plan.SyncID)

	large := append([]byte(`{"sync_plan":{"x":"`), make([]byte, planBytes)...)
	for i := range large[len(`{"sync_plan":{"x":"`):] {
		large[len(`{"sync_plan":{"x":"`)+i] = 'x'
	}
	large = append(large, `"},"records":[]}`...)
	require.NoError(t, DecodeBatch(large, &b))
	require.Less(t, len((*cache.entries.Load())[0].raw), planBytes, "long plans are not kept")
}

func TestPlanCacheParallel(t *testing.T) {
	var cache PlanCache
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			b := Batch{Plans: &cache}
			for i := range 200 {
				id := (i*7 + g) % (planSlots + 8)
				if err := DecodeBatch(fmt.Appendf(nil, `{"sync_plan":{"sync_id":%d},"records":[]}`, id), &b); err != nil || b.Plan.SyncID != int64(id) {
					t.Errorf("plan %d: got %d, %v", id, b.Plan.SyncID, err)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzDecodeBatch(f *testing.F) {
	f.Add([]byte(publishedParams))
	f.Add([]byte(`{"sync_plan":{},"records":[{"a":1,"\u0061":2},{"a":3,"b":[{}]},{"b":1,"a":"\ud800"}]}`))
	f.Add([]byte(`{"records":[{"\ud800":1},{"\ud800":2},{}],"sync_plan":{"schema":{"a":{"active_identifier":true}}}}`))
	f.Add([]byte(`{"sync_plan":{},"records":[{"a" :1},{"a" :2}],"records":[]}`))
	f.Add([]byte(`{"sync_plan":{},"records":[{"a":"x","b":true,"c":-1,"d":1.5,"e":"1","f":"2024-02-29","g":"2024-02-29T23:59:59.5Z"},` +
		`{"a":"y","b":null,"c":01,"d":1e5,"e":"+1e-5","f":"2023-02-29","g":"2024-02-29T24:59:59Z"}]}`))
	f.Add([]byte(`{"sync_plan":{},"records":[{"a":["x",null],"b":[true],"c":[]},{"a":["\\u0041"],"b":[ ],"c":[1,2]}]}`))
	reused := Batch{Plans: new(PlanCache)}
	f.Fuzz(func(t *testing.T, params []byte) {
		var b Batch
		err := DecodeBatch(params, &b)
		require.Equal(t, err, DecodeBatch(params, &reused), "a reused batch decides alike")
		requireSameBatch(t, &b, &reused)
		requireSameExpecting(t, params, &reused)
		if rawjson.Valid(params) != nil {
			require.Equal(t, int64(rpc.CodeParseError), err.(*rpc.Error).Code)
			return
		}
		var m struct {
			plan    json.RawMessage
			records []json.RawMessage
		}
		var top map[string]json.RawMessage
		_ = json.Unmarshal(params, &top)
		m.plan = top["sync_plan"]
		arrayErr := json.Unmarshal(top["records"], &m.records)
		good := arrayErr == nil && len(m.plan) > 0 && m.plan[0] == '{' && top["records"][0] == '['
		for _, raw := range m.records {
			good = good && raw[0] == '{'
		}
		if !good {
			require.Equal(t, int64(rpc.CodeInvalidParams), err.(*rpc.Error).Code)
			return
		}
		if err != nil { // a plan of the wrong types, or an earlier member of the same name
			require.Equal(t, int64(rpc.CodeInvalidParams), err.(*rpc.Error).Code)
			return
		}
		require.Equal(t, string(m.plan), string(b.RawPlan))
		require.Equal(t, len(m.records), b.Len())
		for i, raw := range m.records {
			requireRecord(t, raw, b.Record(i))
		}
	})
}

func requireRecord(t *testing.T, raw json.RawMessage, r RawRecord) {
	require.Equal(t, string(raw), string(r.Raw()))
	var want rpc.Record
	require.NoError(t, json.Unmarshal(raw, &want))
	for name, value := range want {
		got, ok := r.Field(name)
		require.True(t, ok, "%q", name)
		require.Equal(t, string(value), string(got), "%q", name)
	}
	walked := rpc.Record{}
	for j := range r.Len() {
		name, value := r.At(j)
		walked[string(name)] = value
	}
	require.Len(t, walked, len(want))
}

// TestRecordsAlike: what Same and Tight promise, whatever is between two
// records that are alike.
func TestRecordsAlike(t *testing.T) {
	for records, want := range map[string]string{
		`{"a":1,"b":"x"},{"a":2,"b":"yy"},{"a":null,"b":[1, {"c": 2}]}`: "t st st",
		`{"a":1,"b":2},{"b":2,"a":1},{"b":3,"a":4}`:                     "t t st",
		`{"a":1,"b":2},{"a":1},{"a":3},{"a":3,"b":4}`:                   "t t st t",
		`{"a":1},{"a" :1},{"a": 1},{"a":1 },{ "a":1},{"a":1}`:           "t - - - - t",
		`{"a":1},{"\u0061":1},{"\u0061":2},{"a":1}`:                     "t t st t",
		`{},{},{"a":1}`: "- - t",
		`{"a":"say \"é\" 😀 ,\"b\":1}"},{"a":"\\"},{"a":"\u00e9"},{"a":""}`: "t st st st",
		`{"a":-1.5e3},{"a":true},{"a":0},{"a":{"a":1}},{"a":[]}`:           "t st st st st",
		`{"a":1,"a":2},{"a":3,"a":4}`:                                      "t st",
	} {
		var b Batch
		require.NoError(t, DecodeBatch([]byte(`{"sync_plan":{},"records":[`+records+`],"more":0}`), &b))
		var got []string
		for i := range b.Len() {
			word := ""
			if b.Record(i).Same() {
				word += "s"
			}
			if b.Record(i).Tight() {
				word += "t"
			}
			if word == "" {
				word = "-"
			}
			got = append(got, word)
			for j := range b.Record(i).Len() {
				_, raw := b.Record(i).At(j)
				var members Members
				b.Record(i).Members(&members)
				require.Equal(t, string(raw), string(members.Value(j)))
				require.Equal(t, string(b.Record(i).Raw()[members.Offset(j):])[:len(raw)], string(raw))
				require.Equal(t, raw[0] == '"' && !strings.Contains(string(raw), `\`), members.Plain(j, &Want{}), string(raw))
			}
		}
		require.Equal(t, want, strings.Join(got, " "), records)
	}
	for _, broken := range []string{
		`{"a":1},{"a":01}`, `{"a":1},{"a":}`, `{"a":1},{"a":1`, `{"a":1},{"a":"x}`, `{"a":1},{"a":1,}`, `{"a":1},{"a":1;`,
		`{"a":1},{"a":tru}`, `{"a":1},{"a":1]`, "{\"a\":\"x\"},{\"a\":\"\x01\"}", "{\"a\":\"x\"},{\"a\":\"\xff\"}", `{"a":"x"},{"a":"\x"}`,
	} {
		var b Batch
		whole := `{"sync_plan":{},"records":[` + broken + `]}`
		err := DecodeBatch([]byte(whole), &b)
		require.Error(t, err, broken)
		require.Equal(t, "rpc error -32700: parse error: "+rawjson.Valid([]byte(whole)).Error(), err.Error())
	}
}

// TestPatternOutlivesItsBatch: a batch is scanned by the names of the batch
// before it, escapes in them included.
func TestPatternOutlivesItsBatch(t *testing.T) {
	var b Batch
	for _, records := range []string{
		`{"\u0061":1,"b":"x"},{"\u0061":2,"b":"y"}`, `{"\u0061":3,"b":"z"}`, `{"a":4,"b":"x"}`, `{"\u0061":5,"b":"z"}`, `{"a":6}`,
	} {
		require.NoError(t, DecodeBatch([]byte(`{"sync_plan":{},"records":[`+records+`],"more":0}`), &b))
		for i := range b.Len() {
			var want map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(b.Record(i).Raw(), &want))
			require.Equal(t, len(want), b.Record(i).Len())
			for name, value := range want {
				raw, ok := b.Record(i).Field(name)
				require.True(t, ok, "%s in %s", name, records)
				require.Equal(t, string(value), string(raw))
			}
			require.Equal(t, i > 0, b.Record(i).Same(), records)
		}
	}
}

// TestPatternChangesNothing: a Batch that has seen others decodes damaged text
// as a new one does.
func TestPatternChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	body := string(benchBody(t, 4))
	pieces := []string{`"`, `\`, `,`, `:`, ` `, `{`, `}`, `[]`, `null`, `"é"`, "\xff", "\x00", `\u0041`, `1e5`, `"email":"x",`, `-`, `0`}
	var used Batch
	good := 0
	for range 1500 {
		at := len(body)/2 + r.IntN(len(body)/2)
		text := []byte(body[:at] + pieces[r.IntN(len(pieces))] + body[min(at+r.IntN(3), len(body)):])
		var fresh Batch
		var q, p rpc.Request
		errFresh, errUsed := DecodeCall(text, &q, &fresh), DecodeCall(text, &p, &used)
		require.Equal(t, errFresh, errUsed, "%s", text)
		require.Equal(t, fresh.Len(), used.Len())
		for i := range fresh.Len() {
			require.Equal(t, string(fresh.Record(i).Raw()), string(used.Record(i).Raw()))
			require.Equal(t, fresh.Record(i).Len(), used.Record(i).Len())
			require.Equal(t, fresh.Record(i).Tight(), used.Record(i).Tight())
			for j := range fresh.Record(i).Len() {
				name, raw := fresh.Record(i).At(j)
				name2, raw2 := used.Record(i).At(j)
				require.Equal(t, string(name), string(name2))
				require.Equal(t, string(raw), string(raw2))
			}
		}
		if errFresh == nil {
			good++
		}
		require.NoError(t, DecodeCall([]byte(body), &p, &used))
	}
	require.Greater(t, good, 50)
}

// requireSameExpecting decodes params again into a batch that has decoded them,
// with something expected of the values: that changes nothing but the reports
// about them, and those are true.
func requireSameExpecting(t *testing.T, params []byte, b *Batch) {
	if b.Len() == 0 {
		return
	}
	for first := range KindDateTime + 1 {
		e := &Expectation{}
		for j := range b.Record(b.Len() - 1).Len() {
			e.Wants = append(e.Wants, Want{Kind: (first + Kind(j)) % (KindDateTime + 1), Array: j%3 == 2 && first%2 == 0, Null: j%2 == 0})
		}
		var fresh Batch
		require.NoError(t, DecodeBatch(params, &fresh))
		b.Expect(e)
		require.NoError(t, DecodeBatch(params, b))
		requireSameBatch(t, &fresh, b)
		for i := range b.Len() {
			r := b.Record(i)
			require.Equal(t, [2]bool{fresh.Record(i).Tight(), fresh.Record(i).Same()}, [2]bool{r.Tight(), r.Same()})
			if !r.As(e) {
				continue
			}
			var members Members
			r.Members(&members)
			require.True(t, r.Tight())
			for j := range members.Len() {
				require.True(t, members.Plain(j, &e.Wants[j]))
			}
		}
	}
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
