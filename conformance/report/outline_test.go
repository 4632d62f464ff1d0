package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	pagestyle "github.com/destkit/destkit/internal/page"
)

// TestOutlineIsTheReport: the HTML report has the contents of an outline with the same words, and
// every check that the report singles out is in one of its lists.
func TestOutlineIsTheReport(t *testing.T) {
	r := sample()
	o := Options{}.Outline(r)
	page := pageOf(t, r)
	require.Equal(t, "bad", o.Tone)
	listed := map[string]bool{}
	for _, list := range [][]pagestyle.Check{o.Failures, o.Warnings, o.Waived} {
		for _, k := range list {
			listed[k.ID] = true
			require.Contains(t, page, `id="`+k.ID+`"`)
		}
	}
	for _, g := range o.Undecided {
		require.Contains(t, page, g.What)
		require.NotEmpty(t, g.Checks)
		for _, k := range g.Checks {
			listed[k.ID] = true
		}
	}
	n := 0
	for _, count := range o.Counts {
		n += count.Checks
	}
	require.Equal(t, len(r.Checks), n)
	for _, k := range r.Checks {
		require.Equal(t, k.Status != c.Pass && k.Status != c.NotApplicable, listed[k.ID], "%s %s", k.ID, k.Status)
	}
	require.NotEmpty(t, o.Failures[0].Causes)
	require.False(t, strings.HasPrefix(o.Summary, string(r.Verdict)))
}

// TestOutlineGroupsFindings: one group for each cause, with the exchanges of all its findings, and
// each finding separately.
func TestOutlineGroupsFindings(t *testing.T) {
	r := sample()
	r.Checks = r.Checks[3:4]
	one, again, third := answered("a", "b\x1b[31m", `{}`), answered("a", "b\x1b[31m", `{}`, `{}`), answered("a", "c", `{}`)
	third.Cause = "another cause"
	third.Exchanges[0].ID = 9
	r.Checks[0].Findings = []c.Finding{one, again, third}
	got := Options{}.Outline(r).Failures[0]
	require.Len(t, got.Causes, 2)
	require.Equal(t, []int{1, 2}, got.Causes[0].Exchanges)
	require.Equal(t, []int{9}, got.Causes[1].Exchanges)
	require.Len(t, got.Causes[0].Examples, 1)
	require.Equal(t, 2, got.Causes[0].Examples[0].Times)
	require.Equal(t, "one cause", got.Causes[0].Cause)
	require.Equal(t, "Possible cause", got.Causes[0].CauseLabel)
	require.Len(t, got.Findings, 3)
	require.Equal(t, []int{1, 2}, got.Findings[1].Exchanges)
	require.NotContains(t, got.Findings[0].Actual, "\x1b")
}

// TestCurlHasTheWholeBody: a command that is pasted needs no file, and a part of a request
// is none.
func TestCurlHasTheWholeBody(t *testing.T) {
	e := sampleExchange()
	long := strings.Repeat("x", 5000)
	e.Request.Body = wire.Body{Text: `{"a":"` + long + `'$DESTKIT_TOKEN"}`, Size: int64(len(long)) + 23}
	got := e.Curl()
	require.Contains(t, got, long)
	require.Contains(t, got, "$DESTKIT_TOKEN")
	require.NotContains(t, got, wire.BodyFolder)
	cut := e
	cut.Request.Body.Truncated = true
	require.Empty(t, cut.Curl())
	binary := e
	binary.Request.Body = wire.Body{Base64: "AAE=", Size: 2}
	require.Empty(t, binary.Curl())
}
