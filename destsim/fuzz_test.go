package destsim

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// FuzzEndpoint: whatever comes, the answer is one well-formed envelope.
func FuzzEndpoint(f *testing.F) {
	s := newSim(f, Config{})
	for _, m := range rpc.Methods() {
		f.Add(rpc.EncodeRequest(nil, m, []byte(`{"object":{"object_api_name":"contact","label":"Contact"}}`), "a"))
	}
	for _, record := range []string{
		`{"email":"a","last_name":"x","age":1,"tags":["a",[{"b":null}]]}`, `{"email":"\ud800","last_name":"\u0000"}`,
		`{"email":{},"last_name":[]}`, `{"\u0065mail":"a","email":"b"}`, `{"email":"a","birth_date":"","last_seen_at":"Z","balance":"-"}`,
	} {
		f.Add(rpc.EncodeRequest(nil, "sync_batch", []byte(planOf(s, "contact", "upsert", "email", record)), "a"))
		f.Add(rpc.EncodeRequest(nil, "sync_batch", []byte(planOf(s, "event", "upsert", "event_id", record)), "a"))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		reply := post(s, string(body)).Body.Bytes()
		require.NoError(t, rawjson.Valid(reply))
		var envelope map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(reply, &envelope))
		require.Len(t, envelope, 3)
		require.Equal(t, `"2.0"`, string(envelope["jsonrpc"]))
		require.NotEqual(t, envelope["result"] == nil, envelope["error"] == nil)
	})
}

// FuzzValue: a value that is accepted means the same after it was stored, and
// storing it once more changes nothing.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{`"a\u00e9\/"`, `[ "a" , null,"b"]`, `9007199254740993`, `-0`, `1e5`, `"2024-02-29"`, `"1.50"`, `"2021-03-29T16:32:23.5Z"`, `true`, `null`, `[[1]]`, `{"a":1}`} {
		f.Add(seed, uint8(0))
		f.Add(seed, uint8(1))
	}
	types := rpc.FieldTypes()
	f.Fuzz(func(t *testing.T, raw string, kind uint8) {
		raw = strings.Trim(raw, " \t\r\n")
		if rawjson.Valid([]byte(raw)) != nil {
			return
		}
		field := newField(FieldConfig{Name: "f", Type: types[int(kind/2)%len(types)], Array: kind%2 == 1})
		value, problem := field.canonical([]byte(raw))
		if problem != "" {
			require.Contains(t, problem, `"f"`)
			return
		}
		require.NoError(t, rawjson.Valid(value))
		if raw != "-0" { // an integer has no minus zero
			require.Equal(t, meaning(t, raw), meaning(t, string(value)))
		}
		again, problem := field.canonical(value)
		require.Empty(t, problem)
		require.Equal(t, string(value), string(again))
		data := encodeCells([]cell{{column: &column{field: field}, raw: value}})
		got, ok := store.Member(data, field.quoted)
		require.True(t, ok)
		require.Equal(t, string(value), string(got))
	})
}

// meaning decodes without losing digits.
func meaning(t *testing.T, raw string) any {
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	var v any
	require.NoError(t, dec.Decode(&v))
	_, err := dec.Token()
	require.ErrorIs(t, err, io.EOF)
	if list, ok := v.([]any); ok {
		for i, n := range list {
			if n == json.Number("-0") {
				list[i] = json.Number("0")
			}
		}
	}
	return v
}
