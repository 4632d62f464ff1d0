package openapi

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestDecodeJSON(t *testing.T) {
	text := ` { "a" : [ 1 , -2.5e+3, true , false , null , "x\u00e9\n" ] , "b" : { } , "c" : [ ] , "é" : "ü" } ` + "\r\n\t"
	value, repeated, err := decodeJSON([]byte(text), false)
	require.NoError(t, err)
	require.Empty(t, repeated)
	require.Equal(t, map[string]any{
		"a": []any{json.Number("1"), json.Number("-2.5e+3"), true, false, nil, "xé\n"},
		"b": map[string]any{}, "c": []any{}, "é": "ü",
	}, value)

	value, _, err = decodeJSON([]byte(`[1,1.0,1e2,-9223372036854775808,9223372036854775808]`), true)
	require.NoError(t, err)
	require.Equal(t, []any{json.Number("1"), inexact("1.0"), inexact("1e2"), json.Number("-9223372036854775808"), inexact("9223372036854775808")}, value)

	value, repeated, err = decodeJSON([]byte(`{"a":1,"b":[{"c":1,"c":2}],"a":3}`), false)
	require.NoError(t, err)
	require.Equal(t, json.Number("3"), value.(map[string]any)["a"])
	require.Equal(t, []string{"b[0].c", "a"}, []string{repeated[0].field, repeated[1].field})

	most := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	_, _, err = decodeJSON([]byte(most), false)
	require.NoError(t, err)
}

// FuzzDecodeJSON: our reader takes what encoding/json takes, as the same value,
// but for depth and bytes that are no UTF-8.
func FuzzDecodeJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"\ud83d\ude00",null,true]}`, `{"a":1,"a":2}`, `[[[]]]`, `"\u0000"`, `-0`, `01`, `1e`, "\"\xff\"", `{"a":}`, ` 1 `, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value, _, err := decodeJSON(text, false)
		var want any
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		valid := json.Valid(text) && utf8.Valid(text)
		switch {
		case err == nil:
			require.True(t, json.Valid(text), "%q", text)
			require.NoError(t, decoder.Decode(&want))
			require.Equal(t, want, value)
		case valid:
			require.ErrorContains(t, err, "nests more than")
		}
		if err != nil {
			line, column := at(text, err.(*syntaxError).offset)
			require.Positive(t, line)
			require.Positive(t, column)
		}
	})
}
