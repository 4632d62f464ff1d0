package liquid

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMemoryIsCountedBeforeItIsTaken: whatever multiplies a text, no rendering
// allocates more than its limits allow, by a small factor, and it reports the
// limit that ended it.
func TestMemoryIsCountedBeforeItIsTaken(t *testing.T) {
	thousand := `{% assign s = "x" %}{% for i in (1..20) %}{% assign s = s | append: s %}{% endfor %}` // 1 MiB
	list := thousand + `{% assign a = s | split: "," %}{% for i in (1..17) %}{% assign a = a | concat: a %}{% endfor %}`
	for name, text := range map[string]string{
		"nested replace":         thousand + `{% assign r = s ` + strings.Repeat(`| replace: "x", "xxxxxxxxxx" `, 10) + ` %}`,
		"replace of nothing":     thousand + `{{ s | replace: "", s }}`,
		"replacing lists":        list + `{{ s | replace: "x", a }}`,
		"append":                 thousand + strings.Repeat(`{% assign s = s | append: s %}`, 12),
		"join":                   list + `{{ a | join }}`,
		"join by a long text":    thousand + `{{ (1..100000) | join: "," | split: "," | join: s }}`,
		"an array as a text":     list + `{{ a | append: "" }}`,
		"an array as an output":  list + `{{ a }}`,
		"an array as JSON":       list + `{{ a | json }}`,
		"an array as a name":     list + `{{ record[a] }}`,
		"an array as a cycle":    list + `{% cycle a: "x", "y" %}`,
		"an array in a text":     list + `{% if s contains a %}{% endif %}`,
		"unique by notation":     list + `{{ a | uniq }}`,
		"wide dates":             `{{ "now" | date: "%999999999Y" }}`,
		"many wide dates":        `{{ "now" | date: "` + strings.Repeat(`%1000000Y`, 100) + `" }}`,
		"escapes":                thousand + `{{ s | replace: "x", "<" | escape | escape | escape | escape | escape }}`,
		"codes":                  thousand + `{{ s | replace: "x", "<" | url_encode | url_encode | url_encode }}`,
		"base64 again and again": thousand + `{{ s ` + strings.Repeat(`| base64 `, 20) + `}}`,
		"split into characters":  thousand + `{{ s | split: "" | join: "" }}`,
		"captures in captures":   strings.Repeat(`{% capture a %}`, 60) + thousand + `{{ s }}{{ s }}` + strings.Repeat(`{% endcapture %}{{ a }}`, 60),
		"kept values":            thousand + strings.Repeat(`{% for i in (1..90) %}{% assign k = s | append: i %}{% cycle k: 1 %}{% endfor %}`, 1),
		"outputs in lines":       thousand + `{% for i in (1..100000) %}{{ s }}{% endfor %}`,
	} {
		t.Run(name, func(t *testing.T) {
			template, err := Parse(text)
			require.NoError(t, err)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = template.RenderEscaped(map[string]any{"long": "x"}, Limits{})
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, errLimit)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(140<<20), "bytes that were allocated")
		})
	}
}

// TestRenderingEndsWithItsContext: a rendering that is not waited for any more stops,
// and its error is not one of the template.
func TestRenderingEndsWithItsContext(t *testing.T) {
	template, err := Parse(`{% for i in (1..200) %}{% for j in (1..200) %}x{% endfor %}{% endfor %}`)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.DeadlineExceeded)
	_, err = template.Render(nil, Limits{Context: ctx})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var mistake *Error
	require.NotErrorAs(t, err, &mistake)
	_, err = template.Render(nil, Limits{Context: t.Context()})
	require.NoError(t, err)
}

// TestNestedColumnsAreReadOnce: a loop over a large value ends soon.
func TestNestedColumnsAreReadOnce(t *testing.T) {
	template, err := Parse(`{% for i in (1..40000) %}{% if record.list[0] == 1 and record["list"].size > 5 %}{% endif %}{% endfor %}`)
	require.NoError(t, err)
	began := time.Now()
	_, err = template.Render(map[string]any{"list": make([]any, 1<<20)}, Limits{})
	require.NoError(t, err)
	require.Less(t, time.Since(began), 10*time.Second)
}

// TestLargeRenderingsTakeTurns: every large one waits for a place, which it gives
// back, and one that waits ends with its context.
func TestLargeRenderingsTakeTurns(t *testing.T) {
	template, err := Parse(`{% assign s = record.long %}{% for i in (1..8) %}{% assign t = s | append: i %}{% endfor %}`)
	require.NoError(t, err)
	record := map[string]any{"long": strings.Repeat("x", 1<<20)}
	for range 2 * heavies {
		_, err = template.Render(record, Limits{})
		require.NoError(t, err)
	}
	require.NoError(t, heavy.Acquire(t.Context(), heavies))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = template.Render(record, Limits{Context: ctx})
	require.ErrorIs(t, err, context.Canceled)
	heavy.Release(heavies)
	_, err = template.Render(record, Limits{})
	require.NoError(t, err)
}
