package jsonvalue

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/wire"
)

func TestBelow(t *testing.T) {
	root, err := wire.Parse([]byte(`{"params":{"records":[{"id":1},{"id":2}],"plan":{"a":{"x":1},"b":{}}}}`))
	require.NoError(t, err)
	for path, want := range map[string][]string{
		"the request":          {" object"},
		"params.records":       {"params.records array"},
		"params.records.*.id":  {"params.records.0.id number", "params.records.1.id number"},
		"params.plan.*.x":      {"params.plan.a.x number", "params.plan.b.x absent"},
		"params.missing.*":     {"params.missing.* absent"},
		"params.records.*.*":   {"params.records.0.id number", "params.records.1.id number"},
		"params.missing.deep":  {"params.missing.deep absent"},
		"params.records.*.y.z": {"params.records.0.y.z absent", "params.records.1.y.z absent"},
	} {
		var got []string
		for _, at := range ValuesAt(root, path) {
			got = append(got, at.Place+" "+at.Node.Type().String())
		}
		require.Equal(t, want, got, path)
	}
}

func TestSameValue(t *testing.T) {
	for _, row := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[true,null]}`, `{"b":[true,null],"a":1}`, true},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":"\u00e9"}`, `{"a":"é"}`, true},
		{`[1,2]`, `[2,1]`, false},
		{`1`, `"1"`, false},
		{`1`, `1.0`, false},
		{`{"a":1,"a":1}`, `{"a":1}`, false},
	} {
		a, err := wire.Parse([]byte(row.a))
		require.NoError(t, err)
		b, err := wire.Parse([]byte(row.b))
		require.NoError(t, err)
		require.Equal(t, row.same, SameValue(a, b), "%s and %s", row.a, row.b)
	}
	require.True(t, SameValue(nil, nil))
	a, err := wire.Parse([]byte(`null`))
	require.NoError(t, err)
	require.False(t, SameValue(a, nil))
}

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

func TestShapes(t *testing.T) {
	for _, c := range []struct {
		what string
		yes  []string
		no   []string // "": the member is absent
	}{
		{"string", []string{`""`, `"a"`}, []string{"1", "null", "[]", ""}},
		{"integer", []string{"7", "-1", "123456789012345678901"}, []string{"7.0", "1e3", `"7"`, ""}},
		{"number", []string{"7", "0.5"}, []string{`"0.5"`, "true"}},
		{"boolean", []string{"true", "false"}, []string{`"true"`, "0", "null"}},
		{"timestamp", []string{`"2026-01-05T09:00:00Z"`, `"2026-01-05T09:00:00.123Z"`, `"2026-01-05T09:00:00+00:00"`},
			[]string{`"2026-01-05"`, `"2026-01-05 09:00:00Z"`, `"2026-01-05T09:00:00"`, `"2026-01-05T09:00:00+01:00"`, "1767603600", "null"}},
		{"text", []string{`"a"`}, []string{`""`, "1", "null", ""}},
		{"regular expression", []string{`""`, `"^[a-z]+$"`, `"^(?!x)"`, `"\\A[0-9]+\\z"`}, []string{`"^([0-9]+$"`, "null"}},
		{"array of string", []string{"[]", `["a","b"]`}, []string{`["a",1]`, `{"0":"a"}`, "null", ""}},
		{"map of string", []string{"{}", `{"a":"b"}`}, []string{`{"a":1}`, `["a"]`, ""}},
		{"object of a, b", []string{`{"b":1,"a":null}`}, []string{`{"a":1}`, `{"a":1,"b":2,"c":3}`, "[]"}},
		{"string or null", []string{`"a"`, "null"}, []string{"1", ""}},
		{"optional string", []string{"", `"a"`}, []string{"null", "1"}},
		{"optional object or null", []string{"", "{}", "null"}, []string{"false"}},
	} {
		for i, text := range append(append([]string{}, c.yes...), c.no...) {
			var n *wire.Node
			if text != "" {
				var err error
				n, err = wire.Parse([]byte(text))
				require.NoError(t, err, text)
			}
			ok, err := Fits(c.what, n)
			require.NoError(t, err, c.what)
			require.Equal(t, i < len(c.yes), ok, "%s is %s", text, c.what)
		}
	}
	for _, what := range []string{"texts", "array of texts", "map of texts"} {
		_, err := Fits(what, nil)
		require.ErrorContains(t, err, "no type", what)
	}
}
