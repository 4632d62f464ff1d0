package liquid

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTemplateColumns(t *testing.T) {
	for text, want := range map[string][]string{
		`plain`: nil,
		`{{ record.b }}{{ record['A b'] }}{{ record["b"] }}`:                            {"A b", "b"},
		`{% if record.x == record.y.z %}{% for i in record.l %}{% endfor %}{% endif %}`: {"l", "x", "y"},
		`{{ "a" | append: record.c, record.d }}`:                                        {"c", "d"},
		`{% comment %}{{ record.hidden }}{% endcomment %}`:                              nil,
		`{% raw %}{{ record.shown }}{% endraw %}`:                                       nil,
		`{% assign x = record.a %}{{ record.m[record.k] }}{{ x }}`:                      {"a", "k", "m"},
		`{% liquid
		   echo record.inner
		 %}`: {"inner"},
		`{% tablerow i in record.t cols: record.n %}{% endtablerow %}{% cycle record.c1, 2 %}{% case record.s %}{% when record.w %}{% endcase %}`: {"c1", "n", "s", "t", "w"},
	} {
		parsed, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, parsed.Columns(), text)
	}
	_, err := Parse(`{{ record['ID' }}`)
	require.EqualError(t, err, `Liquid syntax error: Expected close_square but found end_of_string in "{{ record['ID' }}"`)
}

// What a template can never reach reads no column, wherever it stands.
func TestTemplateReadsNothingInDeadParts(t *testing.T) {
	for text, want := range map[string][]string{
		`{% comment %}{{ record[record.k] }}{% assign x = record.a | nosuch %}{% endcomment %}{{ record.b }}`:          {"b"},
		`{% if false %}{{ record.a }}{% endif %}{{ record.b }}`:                                                        {"b"},
		`{% if nil %}{{ record.a }}{% elsif record.c %}{{ record.d }}{% else %}{{ record.e }}{% endif %}`:              {"c", "d", "e"},
		`{% if true %}{{ record.a }}{% elsif record.c %}{{ record.d }}{% else %}{{ nosuch }}{% endif %}{{ record.b }}`: {"a", "b"},
		`{% unless true %}{{ record.a }}{% else %}{{ record.b }}{% endunless %}`:                                       {"b"},
		`{% unless 1 == 2 %}{{ record.a }}{% else %}{{ record.b }}{% endunless %}`:                                     {"a"},
		`{% if false and record.c %}{{ record.a }}{% endif %}`:                                                         {"c"},
		`{% if false or record.c %}{{ record.a }}{% endif %}`:                                                          {"a", "c"},
		`{% if false %}{% if true %}{{ record.a }}{% endif %}{{ record.b }}{% endif %}`:                                nil,
		`{% if "a" > 1 %}{{ record.a }}{% endif %}`:                                                                    {"a"}, // fails when it is rendered
	} {
		parsed, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, parsed.Columns(), text)
		require.False(t, parsed.ReadsAll(), text)
	}
	// What a dead part defines is not defined.
	for _, text := range []string{
		`{% comment %}{% assign x = 1 %}{% endcomment %}{{ x }}`, `{% if false %}{% assign x = 1 %}{% endif %}{{ x }}`,
	} {
		_, err := Parse(text)
		require.EqualError(t, err, "Liquid error: [expr] unknown variable `x`", text)
	}
}

// A branch that is not taken may use a variable that only another one sets.
func TestRenderOnlyTheBranchThatIsTaken(t *testing.T) {
	const text = `{% if record.a %}{% assign x = record.a %}{% endif %}{% if record.b %}{{ x }}{% endif %}`
	got, err := renderText(t, text, map[string]any{"a": nil, "b": nil}, Limits{})
	require.NoError(t, err)
	require.Empty(t, got)
	_, err = renderText(t, text, map[string]any{"a": nil, "b": true}, Limits{})
	require.EqualError(t, err, "Liquid error: [expr] unknown variable `x`")
}

func TestTemplateReadsAll(t *testing.T) {
	for text, want := range map[string]bool{
		`{{ record.a }}`: false, `{{ record | json }}`: true, `{{ record[record.k] }}`: true,
		`{% for p in record %}{% endfor %}`: true, `{{ ["record"].x }}`: false, `{{ record.size }}`: true,
	} {
		template, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, template.ReadsAll(), text)
	}
}

func renderText(t *testing.T, text string, record map[string]any, limits Limits) (string, error) {
	t.Helper()
	template, err := Parse(text)
	require.NoError(t, err, text)
	return template.Render(record, limits)
}

// Values that JSON does not have, as sources give them.
func TestRenderSourceValues(t *testing.T) {
	moment := time.Date(2021, 3, 29, 16, 32, 23, 5000000, time.UTC)
	huge, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	record := map[string]any{
		"time": moment, "zoned": moment.In(time.FixedZone("", 7200)), "bytes": []byte("raw"), "int": 5, "i8": int8(-3),
		"u64": uint64(1 << 63), "f32": float32(0.1), "huge": huge, "number": json.Number("12345678901234567.10"),
	}
	for text, want := range map[string]string{
		`{{ record.time }}`:                                          "2021-03-29 16:32:23 UTC",
		`{{ record.zoned }}`:                                         "2021-03-29 18:32:23 +0200",
		`{{ record.zoned | date: "%H:%M %z" }}`:                      "18:32 +0200",
		`{{ record.bytes | upcase }}`:                                "RAW",
		`{{ record.int | plus: 1 }}`:                                 "6",
		`{{ record.i8 | abs }}`:                                      "3",
		`{{ record.u64 | plus: 1 }}`:                                 "9223372036854775809",
		`{{ record.f32 }}`:                                           "0.1",
		`{{ record.huge | plus: 1 }}`:                                "123456789012345678901234567891",
		`{{ record.number }}`:                                        "12345678901234567.10",
		`{% if record.time > record.zoned %}a{% else %}b{% endif %}`: "b",
		`{% if record.number > 1 and record.huge > record.int %}a{% endif %}`: "a",
		`{{ "now" | date: "%Y-%m-%d" }}`:                                      "2026-01-02",
	} {
		got, err := renderText(t, text, record, Limits{Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

// Templates that loop for ever, or write without end, end with an error.
func TestLimits(t *testing.T) {
	double := `{% assign s = "xxxxxxxxxxxxxxxx" %}{% for i in (1..60) %}{% assign s = s | append: s %}{% endfor %}`
	for name, c := range map[string]struct {
		text   string
		limits Limits
		part   string
	}{
		"a long loop":      {`{% for i in (1..1000000000) %}x{% endfor %}`, Limits{}, "100000 iterations"},
		"loops in loops":   {strings.Repeat(`{% for i in (1..100) %}`, 4) + strings.Repeat(`{% endfor %}`, 4), Limits{}, "iterations"},
		"a range as array": {`{{ (1..1000000000) | join: "" }}`, Limits{}, "iterations"},
		"a table":          {`{% tablerow i in (1..1000000000) %}{% endtablerow %}`, Limits{}, "iterations"},
		"output":           {`{% for i in (1..100) %}0123456789{% endfor %}`, Limits{Output: 500}, "an output of more than 500 bytes"},
		"a capture":        {`{% capture x %}{% for i in (1..100) %}0123456789{% endfor %}{% endcapture %}`, Limits{Output: 500}, "500 bytes"},
		"doubling":         {double, Limits{}, "a value of more than 4194304 bytes"},
		"many tags":        {`{% for i in (1..100) %}` + strings.Repeat(`{% assign a = 1 %}`, 50) + `{% endfor %}`, Limits{Iterations: 200}, "2000 steps"},
		"huge numbers":     {`{% assign n = 9 %}{% for i in (1..60) %}{% assign n = n | times: n %}{% endfor %}`, Limits{}, "Memory limits exceeded"},
		"comparing":        {`{% assign s = "" %}{% for i in (1..1000) %}{% if record.long contains "y" %}{% endif %}{% endfor %}`, Limits{Work: 100_000}, "bytes of work"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := renderText(t, c.text, map[string]any{"long": strings.Repeat("x", 1000)}, c.limits)
			require.ErrorContains(t, err, "Liquid error: Memory limits exceeded")
			require.ErrorContains(t, err, c.part)
			require.ErrorIs(t, err, errLimit)
		})
	}
}

func TestNestingIsBounded(t *testing.T) {
	for _, text := range []string{
		strings.Repeat(`{% if true %}`, 200) + strings.Repeat(`{% endif %}`, 200),
		`{{ ` + strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000) + ` }}`,
		`{{ ` + strings.Repeat(`(1..`, 5000) + ` }}`,
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, "Nesting too deep")
	}
	_, err := Parse(strings.Repeat("x", Longest+1))
	require.ErrorContains(t, err, "more than 131072 bytes")
}

func TestRenderEscaped(t *testing.T) {
	record := map[string]any{"quote": `say "hi"` + "\n", "list": []any{"a", `b"c`}}
	for text, want := range map[string]string{
		`{"a": "{{ record.quote }}"}`: `{"a": "say \"hi\"\n"}`,
		`{{ record.quote | raw }}`:    `say "hi"` + "\n",
		`{{ record.list | json }}`:    `["a","b\"c"]`,
	} {
		template, err := Parse(text)
		require.NoError(t, err, text)
		got, err := template.RenderEscaped(record, Limits{})
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

// The texts of errors are the published ones, which name no line.
func TestErrorsHaveLines(t *testing.T) {
	for text, want := range map[string]struct {
		line int
		text string
	}{
		"a\n\n{{ record['ID' }}":                                                  {3, `Liquid syntax error: Expected close_square but found end_of_string in "{{ record['ID' }}"`},
		"{% if true %}\n{% if record.a %}\n{% endif %}\n":                         {1, "Liquid syntax error: 'if' tag was never closed"},
		"{% if true %}\n{% what %}{% endif %}":                                    {2, "Liquid syntax error: Unknown tag 'what'"},
		"\n{{ record.a\n | shout }}":                                              {2, "Liquid error: undefined filter shout"},
		"{{ record.a }}\n{{ nobody }}":                                            {2, "Liquid error: [expr] unknown variable `nobody`"},
		"{% liquid\n assign a = 1\n echo nobody\n%}":                              {3, "Liquid error: [expr] unknown variable `nobody`"},
		"{% for i in (1..2) %}\n\n{{ i | divided_by: 0 }}{% endfor %}":            {3, "Liquid error: divided by 0"},
		"{{ record.a }}\n{% if record.a %}x\n{{ record.missing }}\n{% endif %}\n": {3, "Liquid error: Column being referenced in template can't be found in data source [missing]"},
	} {
		template, err := Parse(text)
		if err == nil {
			_, err = template.Render(map[string]any{"a": "x"}, Limits{})
		}
		var ours *Error
		require.ErrorAs(t, err, &ours, text)
		require.Equal(t, want.text, err.Error(), text)
		require.Equal(t, want.line, ours.Line, text)
	}
}

// One template for many goroutines: nothing of one rendering is seen by another.
func TestRenderInParallel(t *testing.T) {
	template, err := Parse(`{% for i in record.l %}{% cycle "a", "b" %}{% increment n %}{% assign x = i %}{% endfor %}{{ x }}{% ifchanged %}{{ record.k }}{% endifchanged %}`)
	require.NoError(t, err)
	var wait sync.WaitGroup
	for k := range 8 {
		wait.Go(func() {
			for range 100 {
				got, err := template.Render(map[string]any{"l": []any{int64(1), int64(2), int64(k)}, "k": int64(k)}, Limits{})
				if err != nil || got != fmt.Sprintf("a0b1a2%d%d", k, k) {
					t.Errorf("rendered %q, %v", got, err)
				}
			}
		})
	}
	wait.Wait()
}

// The record that a template is given is never changed.
func TestRenderLeavesTheRecord(t *testing.T) {
	record := map[string]any{"l": []any{int64(2), int64(1)}, "m": map[string]any{"a": int64(1)}}
	_, err := renderText(t, `{% assign x = record.l | sort | reverse | concat: record.l | uniq %}{% for i in record.l reversed %}{% assign l = i %}{% endfor %}{{ record.m | except: "a" | json }}`, record, Limits{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"l": []any{int64(2), int64(1)}, "m": map[string]any{"a": int64(1)}}, record)
}

func FuzzTemplate(f *testing.F) {
	for _, cases := range readLiquidCases(f) {
		for _, c := range cases {
			f.Add(c.Template)
		}
	}
	record := readRecord(f)
	limits := Limits{Iterations: 200, Output: 1 << 16, Work: 1 << 18}
	f.Fuzz(func(t *testing.T, text string) {
		template, err := Parse(text)
		if err != nil {
			return
		}
		first, err := template.Render(record, limits)
		again, errAgain := template.Render(record, limits)
		require.Equal(t, err == nil, errAgain == nil, text)
		if err == nil && !strings.Contains(text, "now") && !strings.Contains(text, "date") {
			require.Equal(t, first, again)
		}
		_, _ = template.RenderEscaped(record, limits)
		if shared, ok := template.shared.render(record, limits); ok {
			own, err := template.render(newRun(record, limits))
			require.NoError(t, err, text)
			require.Equal(t, own, shared, text)
		}
	})
}
