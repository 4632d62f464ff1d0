package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	c "github.com/destkit/destkit/conformance"
)

func written(t *testing.T, format string, r *c.Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Options{}.Write(format, &b, r))
	return b.String()
}

// TestTheFirstLineSaysWhyNothingWasJudged: with the fix, unbroken and once.
func TestTheFirstLineSaysWhyNothingWasJudged(t *testing.T) {
	r := &c.Report{
		Target: "https://example.com/d", Verdict: c.Unknown, ExitStatus: 3, Summary: "unknown: nothing",
		Problems: []c.Problem{
			{Kind: "unauthorized", ExitStatus: 3, Message: "every call is refused with HTTP status 401\x1b[2J, and no token was given", Fix: "give it with --token-env NAME"},
			{Kind: "waiver", ExitStatus: 4, Message: "the waiver is stale"},
		},
		Checks: []c.CheckResult{{ID: "RPC-001", Status: c.NotRun, Reason: "the run ended before it"}},
	}
	text := written(t, Text, r)
	first, rest, _ := strings.Cut(text, "\n")
	require.Equal(t, `not judged: every call is refused with HTTP status 401\x1b[2J, and no token was given. Fix: give it with --token-env NAME`, first)
	require.NotContains(t, rest, "every call is refused")
	require.Contains(t, rest, "the waiver is stale")
	for _, format := range []string{Markdown, JUnit, GitHub, HTML, SARIF, JSON} {
		require.Contains(t, written(t, format, r), "every call is refused", format)
	}

	r.Checks[0].Status = c.Pass
	text = written(t, Text, r)
	require.False(t, strings.HasPrefix(text, "not judged"), "something was judged")
	require.Contains(t, text, "every call is refused")
}

// TestABrokenHookBelowTheGate is a warning in every format: a red panel next to an exit status of 0
// misleads.
func TestABrokenHookBelowTheGate(t *testing.T) {
	broken := c.CheckResult{ID: "DAT-006", Title: "Floats", Level: c.Should, Status: c.HarnessError, Reason: "call hook readback: gone"}
	r := &c.Report{Target: "https://example.com/d", Profile: c.ProfileV1, Verdict: c.Conformant, Checks: []c.CheckResult{broken}}
	require.Contains(t, written(t, Text, r), "Warnings")
	require.Contains(t, written(t, Text, r), "call hook readback: gone")
	require.Contains(t, written(t, GitHub, r), "::warning title=HARNESS_ERROR DAT-006")
	junit := written(t, JUnit, r)
	require.NotContains(t, junit, "<error")
	require.Contains(t, junit, "call hook readback: gone")

	r.Checks[0].Gating = true
	require.Contains(t, written(t, GitHub, r), "::error title=HARNESS_ERROR DAT-006")
	require.Contains(t, written(t, JUnit, r), "<error")
}
