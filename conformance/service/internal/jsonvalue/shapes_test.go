package jsonvalue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/wire"
)

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
