package fileformat_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/internal/source/internal/fileformat"
	"github.com/destkit/destkit/internal/testkit"
)

func TestJSONLColumns(t *testing.T) {
	path := testkit.WriteFile(t, "a.jsonl", "\ufeff"+`{"id": 1, "name": "x", "tags": [1], "at": "2024-01-02T03:04:05Z", "on": "2024-01-02", "n": null}

{"id": 2.5, "extra": true, "deep": {"a": {"b": [1, 2]}}, "tags": [], "mixed": 1, "e": 1e3}
  {"id": 3, "mixed": "x", "\u00e4 \"q\"": "2024-01-02", "e": 2, "name": "2024-01-02"}`)
	src := open(t, "jsonl", map[string]any{"path": path}, source.Options{})
	columns, err := src.Columns(t.Context(), source.Object{Name: "a"})
	require.NoError(t, err)
	require.Equal(t, []string{"id decimal decimal", "name string string", "tags array array", "at date_time date_time", "on date date", "n any any",
		"extra boolean boolean", "deep object object", "mixed any any", "e float float", `ä "q" date date`}, short(columns))
	require.Equal(t, []string{
		`["x",1,null,null]`,
		`[null,2.5,{"a":{"b":[1,2]}},null]`,
		`["2024-01-02",3,null,"2024-01-02"]`,
	}, readAll(t, src, source.Object{Name: "a"}, []string{"name", "id", "deep", `ä "q"`}, nil))
}

func TestJSONLValuesAreCanonical(t *testing.T) {
	src := open(t, "jsonl", map[string]any{"path": testkit.WriteFile(t, "a.jsonl", `{"k":"\u0041\/\u00e4\ud83d\ude00\n\u0001", "v" : { "a" : [ 1 , "\u0062 c" , 1.50 , 1E+2 ] } }`)}, source.Options{})
	require.Equal(t, []string{`["A/ä😀\n\u0001",{"a":[1,"b c",1.50,1E+2]}]`}, readAll(t, src, source.Object{Name: "a"}, nil, nil))
}

func TestJSONLRefuses(t *testing.T) {
	for content, says := range map[string]string{
		"":                                     "no columns",
		"\n\n":                                 "no columns",
		"{}\n{}":                               "no columns",
		"[1]":                                  "line 1: not a JSON object",
		"{\"a\":1}\n\n{\"a\":}":                "line 3: not JSON at byte 6",
		"{\"a\":1}\n{\"a\":1":                  "line 2: not JSON",
		"{\"a\":1} {\"a\":2}":                  "line 1: not JSON",
		"{\"a\":\"\xff\"}":                     "line 1: not UTF-8",
		`{"a":1,"b":2,"\u0061":3}`:             `line 1: key "a" twice`,
		strings.Repeat("[", 100):               "line 1: not a JSON object",
		"{\"a\":" + strings.Repeat("[", 20000): "line 1: not JSON",
		"{\"a\":\"" + strings.Repeat("x", fileformat.LongestRecord+(1<<20)) + "\"}": "line 1: longer than 16 MiB",
	} {
		path := testkit.WriteFile(t, "a.jsonl", content)
		_, err := open(t, "jsonl", map[string]any{"path": path}, source.Options{}).Tables(t.Context())
		require.ErrorContains(t, err, "read "+path+": "+says, "%.40q", content)
	}
	late := `{"a":1}` + strings.Repeat("\n{\"a\":1}", fileformat.Sampled) + "\n{\"a\":1,\"a\":2}"
	rows, err := open(t, "jsonl", map[string]any{"path": testkit.WriteFile(t, "a.jsonl", late)}, source.Options{}).(source.Reader).Rows(t.Context(), source.Object{Name: "a"}, nil, nil)
	require.NoError(t, err)
	defer rows.Close()
	for err == nil {
		_, err = rows.Next()
	}
	require.ErrorContains(t, err, `line 1002: key "a" twice`)
}

// TestJSONLLongLines: lines over the buffer, and a last line without its end.
func TestJSONLLongLines(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	src := open(t, "jsonl", map[string]any{"path": testkit.WriteFile(t, "a.jsonl", `{"a":"`+long+`"}`+"\n"+`{"a":"y"}`+"\n"+`{"a":"`+long+`z"}`)}, source.Options{})
	require.Equal(t, []string{`["` + long + `"]`, `["` + long + `z"]`, `["y"]`}, readAll(t, src, source.Object{Name: "a"}, nil, []string{"a"}))
}

func FuzzJSONL(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":"\u0041"}` + "\n" + `{"b":[{}]}`, "{\"a\":1,\"a\":1}", `{"":null}`, "\xff", `{"a":{"b":"]}"}}`, `{"\ud800":1}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) { fuzzFile(t, fileformat.JSONLines{}, "a.jsonl", content) })
}
