package liquid

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The generators below write templates from parts; words are short, so that
// comparisons come out true often enough.

var (
	columnsDrawn = []string{"a", "b", "c", "First Name"}
	wordsDrawn   = []string{"", "x", "ab", "Ab", " two  words ", "naïve", "<b>&\"it's\"</b>", "line\nline"}
)

func drawRecord(rt *rapid.T) map[string]any {
	value := rapid.OneOf(
		rapid.Map(rapid.SampledFrom(wordsDrawn), func(s string) any { return s }),
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.Int64Range(-3, 3), func(n int64) any { return n }),
		rapid.SampledFrom([]any{nil, true, false, int64(1 << 60)}),
	)
	record := map[string]any{}
	for _, name := range columnsDrawn {
		record[name] = value.Draw(rt, "record."+name)
	}
	return record
}

func drawColumn(rt *rapid.T) string {
	name := rapid.SampledFrom(columnsDrawn).Draw(rt, "column")
	if strings.Contains(name, " ") || rapid.Bool().Draw(rt, "brackets") {
		return fmt.Sprintf("record['%s']", name)
	}
	return "record." + name
}

func drawConstant(rt *rapid.T) string {
	return rapid.SampledFrom([]string{`"x"`, `'ab'`, `"Ab"`, `''`, `" "`, "0", "1", "-2", "true", "false", "nil"}).Draw(rt, "constant")
}

func drawValue(rt *rapid.T) string {
	if rapid.IntRange(0, 2).Draw(rt, "is a constant") == 0 {
		return drawConstant(rt)
	}
	return drawColumn(rt)
}

// drawOutput is a value through filters, each with as many arguments as it takes.
func drawOutput(rt *rapid.T) string {
	out := drawValue(rt)
	for range rapid.IntRange(0, 3).Draw(rt, "filters") {
		name := rapid.SampledFrom(textFiltersOfBoth).Draw(rt, "filter")
		out += " | " + name
		for i := range rapid.IntRange(filters[name].least, min(filters[name].most, 2)).Draw(rt, "arguments") {
			out += []string{": ", ", "}[min(i, 1)] + drawValue(rt)
		}
	}
	return "{{ " + out + " }}"
}

func drawCondition(rt *rapid.T) string {
	one := func() string {
		switch rapid.IntRange(0, 3).Draw(rt, "kind of comparison") {
		case 0:
			return drawValue(rt)
		case 1:
			return drawColumn(rt) + ` contains ` + rapid.SampledFrom([]string{`"x"`, `'a'`, `""`}).Draw(rt, "part")
		}
		return drawValue(rt) + rapid.SampledFrom([]string{" == ", " != "}).Draw(rt, "operator") + drawValue(rt)
	}
	condition := one()
	if rapid.IntRange(0, 2).Draw(rt, "joined") == 0 {
		condition += rapid.SampledFrom([]string{" and ", " or "}).Draw(rt, "word") + one()
	}
	return condition
}

// drawShared writes a template that the check of agreement lets pass.
func drawShared(rt *rapid.T, depth int) string {
	var b strings.Builder
	for range rapid.IntRange(1, 3).Draw(rt, "pieces") {
		switch kind := rapid.IntRange(0, 5).Draw(rt, "piece"); {
		case kind == 0:
			b.WriteString(rapid.SampledFrom([]string{"text", " ", "\n", "}}", "%}", "{ %", "ü", `a\n`}).Draw(rt, "text"))
		case kind < 4 || depth == 0:
			b.WriteString(drawOutput(rt))
		default:
			tag := rapid.SampledFrom([]string{"if", "unless"}).Draw(rt, "tag")
			b.WriteString("{% " + tag + " " + drawCondition(rt) + " %}T" + drawShared(rt, depth-1))
			if tag == "if" && rapid.Bool().Draw(rt, "elsif") {
				b.WriteString("{% elsif " + drawCondition(rt) + " %}E" + drawShared(rt, depth-1))
			}
			if rapid.Bool().Draw(rt, "else") {
				b.WriteString("{% else %}F" + drawShared(rt, depth-1))
			}
			b.WriteString("{% end" + tag + " %}")
		}
	}
	return b.String()
}

// TestAgreement: where the check says that the library prints the same, it does.
// The generator writes nothing else, so most of its templates must pass the check.
func TestAgreement(t *testing.T) {
	templates, passed, rendered := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		text, record := drawShared(rt, 2), drawRecord(rt)
		template, err := Parse(text)
		require.NoError(rt, err, text)
		templates++
		if template.shared == nil {
			return
		}
		passed++
		got, ok := template.shared.render(record, Limits{})
		if !ok {
			return // the engine renders it
		}
		rendered++
		want, err := template.render(newRun(record, Limits{}))
		require.NoError(rt, err, text)
		require.Equal(rt, want, got, text)
	})
	t.Logf("%d of %d templates pass the check, %d are rendered by the library", passed, templates, rendered)
	require.Greater(t, passed, templates*8/10)
	require.Greater(t, rendered, passed*8/10)
}

// TestOnlySurelyEqualTemplatesAreShared: what both read or print in another way
// stays with the engine.
func TestOnlySurelyEqualTemplatesAreShared(t *testing.T) {
	for text, want := range map[string]bool{
		`plain`:                                  true,
		`{{ record.a }}`:                         true,
		`{{record['a b']}}`:                      true,
		`{{ record.a | upcase | append: "x", }}`: false, // no template at all
		`{{ record.a | append: record.b }}`:      true,
		`{% if record.a == 1 or record.b %}x{% else %}y{% endif %}`: true,
		`{% unless record.a contains "x" %}x{% endunless %}`:        true,
		`{% if record.a or record.b and record.c %}x{% endif %}`:    false, // read from the other side
		`{% if record.a > 1 %}x{% endif %}`:                         false,
		`{% if record.a == empty %}x{% endif %}`:                    false,
		`{% if record.a %} {% endif %}`:                             false, // prints nothing
		`{% if record.a %}x{% else %}y{% else %}z{% endif %}`:       false,
		`{{- record.a }}`:             false,
		`{{ record.a -}} x`:           false,
		"{{ record.a\n}}":             false,
		`{{ "a\nb" }}`:                false, // the library knows escapes
		`{{ record.a.b }}`:            false,
		`{{ record.size }}`:           false,
		`{{ record }}`:                false,
		`{{ 1.0 }}`:                   false, // printed as 1
		`{{ record.a | plus: 1 }}`:    false,
		`{{ record.a | date: "%Y" }}`: false,
		`{{ record.a | escape }}`:     false, // may make much of little
		`{{ record.a | upcase | upcase | upcase | upcase | upcase }}`: false,
		`{% assign x = record.a %}{{ x }}`:                            false,
		`{% for i in (1..3) %}{{ i }}{% endfor %}`:                    false,
		`{% raw %}{{ x }}{% endraw %}`:                                false,
		"{% liquid\n echo record.a\n%}":                               false,
	} {
		template, err := Parse(text)
		require.Equal(t, want, err == nil && template.shared != nil, text)
	}
}

// TestLibraryRendersWithinLimits: the library is not asked where a limit could
// matter, nor for values that it prints in its own way.
func TestLibraryRendersWithinLimits(t *testing.T) {
	template, err := Parse(`{{ record.a }}{{ record.a }}`)
	require.NoError(t, err)
	long := strings.Repeat("x", 1000)
	for name, c := range map[string]struct {
		value  any
		limits Limits
		want   bool
	}{
		"a text":           {long, Limits{}, true},
		"a small output":   {long, Limits{Output: 1500}, false},
		"little work":      {long, Limits{Work: 1500}, false},
		"few iterations":   {long, Limits{Iterations: 1}, false},
		"a fraction":       {2.5, Limits{}, false},
		"an array":         {[]any{"a"}, Limits{}, false},
		"a map":            {map[string]any{}, Limits{}, false},
		"a missing column": {nil, Limits{}, false},
	} {
		record := map[string]any{"a": c.value}
		if c.value == nil {
			delete(record, "a")
		}
		_, ok := template.shared.render(record, c.limits)
		require.Equal(t, c.want, ok, name)
	}
	_, err = template.Render(map[string]any{}, Limits{})
	require.EqualError(t, err, "Liquid error: Column being referenced in template can't be found in data source [a]")
}
