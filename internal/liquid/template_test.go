package liquid

import (
	"encoding/json"
	"fmt"
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
		`{% for i in record.t limit: record.n %}{% endfor %}{% cycle record.c1, 2 %}{% case record.s %}{% when record.w %}{% endcase %}`: {"c1", "n", "s", "t", "w"},
	} {
		parsed, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, parsed.Columns(), text)
	}
	_, err := Parse(`{{ record['ID' }}`)
	require.EqualError(t, err, `Liquid syntax error: Expected close_square but found end_of_string in "{{ record['ID' }}"`)
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
		`{% for p in record %}{% endfor %}`: true, `{{ record.size }}`: true,
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

// Numbers keep the digits that they came with.
func TestRenderNumbers(t *testing.T) {
	record := map[string]any{
		"int": json.Number("5"), "huge": json.Number("123456789012345678901234567890"), "number": json.Number("12345678901234567.10"), "price": json.Number("2.50"),
	}
	for text, want := range map[string]string{
		`{{ record.int | plus: 1 }}`:             "6",
		`{{ record.huge | plus: 1 }}`:            "123456789012345678901234567891",
		`{{ record.number }} {{ record.price }}`: "12345678901234567.10 2.50",
		`{{ record.price | append: " EUR" }}`:    "2.50 EUR",
		`{{ record.price | times: 2 }}`:          "5.0",
		`{{ "now" | date: "%Y-%m-%d" }}`:         "2026-01-02",
		`{% if record.number > 1 and record.huge > record.int and 3 > record.price %}a{% endif %}`:               "a",
		`{% if record.price == 2.5 and record.int >= 5 and 5 == record.int and "5" != record.int %}a{% endif %}`: "a",
		`{% case record.int %}{% when 4, 5 %}a{% endcase %}`:                                                     "a",
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
		"comparing all":    {`{% for i in (1..1000) %}{% case record.long %}{% when i %}{% endcase %}{% endfor %}`, Limits{Work: 100_000}, "bytes of work"},
		"output":           {`{% for i in (1..100) %}0123456789{% endfor %}`, Limits{Output: 500}, "an output of more than 500 bytes"},
		"a capture":        {`{% capture x %}{% for i in (1..100) %}0123456789{% endfor %}{% endcapture %}`, Limits{Output: 500}, "500 bytes"},
		"doubling":         {double, Limits{}, "a value of more than 4194304 bytes"},
		"many tags":        {`{% for i in (1..100) %}` + strings.Repeat(`{% assign a = 1 %}`, 50) + `{% endfor %}`, Limits{Memory: 50_000}, "50000 bytes together"},
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
		require.Error(t, err)
		require.Less(t, len(err.Error()), 500)
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

// Mistakes of the text are found when it is parsed, with their lines; mistakes of
// values have none.
func TestErrorsHaveLines(t *testing.T) {
	for text, want := range map[string]struct {
		line int
		text string
	}{
		"a\n\n{{ record['ID' }}":                                                  {3, `Liquid syntax error: Expected close_square but found end_of_string in "{{ record['ID' }}"`},
		"{% if true %}\n{% if record.a %}\n{% endif %}\n":                         {1, `Liquid syntax error: unterminated "if" block in {% if true %}`},
		"{% if true %}\n{% what %}{% endif %}":                                    {2, `Liquid syntax error: undefined tag "what" in {% what %}`},
		"\n{{ record.a\n | shout }}":                                              {2, "Liquid error: undefined filter shout"},
		"{{ record.a }}\n{{ nobody }}":                                            {2, "Liquid error: [expr] unknown variable `nobody`"},
		"{% liquid\n assign a = 1\n assign b = nobody\n%}":                        {3, "Liquid error: [expr] unknown variable `nobody`"},
		"{% comment %}\n{% endcomment %}\n{% raw %}x":                             {3, "Liquid syntax error: 'raw' tag was never closed"},
		"{{ record.a }}\n{{ record.a":                                             {2, "Liquid syntax error: a tag or an output is not closed"},
		"{% for i in (1..2) %}\n\n{{ i | divided_by: 0 }}{% endfor %}":            {0, "Liquid error: divided by 0"},
		"{{ record.a }}\n{% if record.a %}x\n{{ record.missing }}\n{% endif %}\n": {0, "Liquid error: Column being referenced in template can't be found in data source [missing]"},
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
				got, err := template.Render(map[string]any{"l": []any{1, 2, k}, "k": k}, Limits{})
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
	record := map[string]any{"l": []any{2, 1}, "m": map[string]any{"a": 1}}
	_, err := renderText(t, `{% assign x = record.l | sort | reverse | concat: record.l | uniq %}{% for i in record.l reversed %}{% assign l = i %}{% endfor %}{{ record.m | except: "a" | json }}`, record, Limits{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"l": []any{2, 1}, "m": map[string]any{"a": 1}}, record)
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
	})
}
