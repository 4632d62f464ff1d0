package jsonvalue

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMisses(t *testing.T) {
	for _, c := range []struct{ wanted, got, why string }{
		{`{"a":1}`, `{"a":1.0,"b":2}`, ""},
		{`{"a":{"b":[1,{"c":2}]}}`, `{"a":{"b":[{"c":2,"d":3},1]}}`, ""},
		{`[]`, `[]`, ""},
		{`null`, `null`, ""},
		{`{"a":null}`, `{}`, ""},
		{`{"a":1}`, `{"a":"1"}`, `data.a is "1", not 1`},
		{`{"a":1}`, `[]`, `data is [], not an object`},
		{`[1]`, `{"0":1}`, `data is {"0":1}, not a list`},
		{`[]`, `[1]`, `data has 1 element, not 0: [1]`},
		{`[1,1]`, `[1,2]`, `data has no 1: [1,2]`},
		{`true`, `null`, `data is null, not true`},
	} {
		var wanted, got any
		require.NoError(t, json.Unmarshal([]byte(c.wanted), &wanted))
		require.NoError(t, json.Unmarshal([]byte(c.got), &got))
		require.Equal(t, c.why, Missing(wanted, got, "data"), "%s against %s", c.wanted, c.got)
	}
}

func TestPut(t *testing.T) {
	shared := map[string]any{"type": "triggered"}
	body := map[string]any{"mode": shared}
	Put(body, "mode.triggers.schedule.frequency", "daily")
	Put(body, "paused", true)
	require.JSONEq(t, `{"mode":{"type":"triggered","triggers":{"schedule":{"frequency":"daily"}}},"paused":true}`, string(Encode(body)))
	require.Len(t, shared, 1, "what others hold stays as it is")
}
