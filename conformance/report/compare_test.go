package report

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// newer is a later run of the sample: one repaired, one broken, one out of
// sight, one with another finding.
func newer() *c.Report {
	r := sample()
	r.RunID, r.Seed = "c0de", 7
	for i := range r.Checks {
		x := &r.Checks[i]
		switch x.ID {
		case "RPC-001":
			x.Status, x.Reason = c.Fail, "HTML came"
			x.Findings = []c.Finding{{Rule: "one JSON value", Expected: "JSON", Actual: "<html>"}}
		case "SEM-005":
			x.Status, x.Reason, x.Findings = c.Pass, "", nil
		case "RES-010":
			x.Status = c.Inconclusive
		case "RES-002":
			x.Findings = append([]c.Finding{}, x.Findings...)
			// The key of another run and another time are no change.
			x.Findings[0].Actual = strings.ReplaceAll(x.Findings[0].Actual, "7f3a", "c0de")
			x.Findings[1].Actual = "3 results"
		case "STA-001":
			x.ID = "STA-009"
		}
	}
	r.Settings.BatchTimeoutMS, r.Settings.SkipConvention = 60000, "failure"
	return r
}

func TestCompare(t *testing.T) {
	d := Compare(sample(), newer())
	pick := func(list []Change) []string {
		var out []string
		for _, x := range list {
			out = append(out, x.ID+" "+string(x.From)+" "+string(x.To))
		}
		return out
	}
	require.Equal(t, []string{"RPC-001 PASS FAIL"}, pick(d.NewlyFailing))
	require.Equal(t, []string{"SEM-005 FLAKY PASS"}, pick(d.Fixed))
	require.Equal(t, []string{"RES-010 WAIVED INCONCLUSIVE"}, pick(d.Changed), "out of sight is not fixed")
	require.Equal(t, []string{"STA-001"}, d.OnlyA)
	require.Equal(t, []string{"STA-009"}, d.OnlyB)
	require.Equal(t, []Difference{{"batch_timeout_ms", "30000", "60000"}, {"skip_convention", "", `"failure"`}}, d.Unfair)
	require.Len(t, d.Findings, 2)
	require.True(t, d.Findings[0].New)
	require.Equal(t, "3 results", d.Findings[0].Finding.Actual)
	require.False(t, d.Findings[1].New)
	require.True(t, d.Regressed())
	require.False(t, d.Same())
	for _, format := range []string{Text, Markdown} {
		var b strings.Builder
		require.NoError(t, WriteComparison(format, &b, d))
		golden(t, "diff."+map[string]string{Text: "txt", Markdown: "md"}[format], []byte(b.String()))
	}
	require.EqualError(t, WriteComparison(HTML, nil, d), `write comparison: unknown format "html", known are text, markdown`)
}

// Checks that wait for a failure are one line with the failure, and another URL is no difference.
func TestCompareFoldsWhatIsBlocked(t *testing.T) {
	of := func(target string, a, b c.Status, blocked ...string) *c.Report {
		r := &c.Report{Target: target, Checks: []c.CheckResult{check("RES-002", "x", "x", c.Must, a)}}
		r.Checks[0].Gating = true
		for _, id := range []string{"SEM-001", "SEM-002", "SEM-003"} {
			x := check(id, "x", "x", c.Must, b)
			x.BlockedBy = blocked
			r.Checks = append(r.Checks, x)
		}
		return r
	}
	good, bad := of("http://127.0.0.1:1/", c.Pass, c.Pass), of("http://127.0.0.1:2/", c.Fail, c.NotRun, "RES-002")
	text := func(format string, d Comparison) string {
		var b strings.Builder
		require.NoError(t, WriteComparison(format, &b, d))
		return b.String()
	}
	worse := text(Text, Compare(good, bad))
	require.Contains(t, worse, "\ntwo URLs were judged: http://127.0.0.1:1/, then http://127.0.0.1:2/\n")
	require.Contains(t, worse, "\nBlocked by a failure (1)\n  RES-002    3 checks blocked now\n")
	require.NotContains(t, worse, "SEM-001")
	require.NotContains(t, worse, "not fair")
	require.Less(t, strings.Index(worse, "Newly failing (1)"), strings.Index(worse, "Blocked by"))
	better := text(Markdown, Compare(bad, good))
	require.Contains(t, better, "RES-002: 3 checks no longer blocked, now PASS")
	require.NotContains(t, better, "SEM-001")
	require.Less(t, strings.Index(better, "Got better"), strings.Index(better, "Blocked by a failure"))
	require.True(t, Compare(good, of("http://127.0.0.1:9/", c.Pass, c.Pass)).Same())
}

// TestFingerprint covers what two runs of the same endpoint can report differently.
func TestFingerprint(t *testing.T) {
	a := c.Finding{Rule: "r", Actual: `zz-conf-7f3a-RES-002-1 after 12.1 s: {"id":"02fa1663f31afd9477703f228e3646a2"} "id-of-run-a"`,
		Exchanges: []wire.Exchange{{RPCID: "id-of-run-a"}}}
	b := c.Finding{Rule: "r", Actual: `zz-conf-c0de-RES-002-1 after 40 ms: {"id":"2c78ee8c2fa3ead85911210135be9d4b"} "id-of-run-b"`,
		Exchanges: []wire.Exchange{{RPCID: "id-of-run-b"}}}
	require.Equal(t, fingerprint(a, "7f3a"), fingerprint(b, "c0de"))
	for _, change := range []func(*c.Finding){
		func(f *c.Finding) { f.Object = "order" },
		func(f *c.Finding) { f.Operation = "insert" },
		func(f *c.Finding) { f.Rule = "another" },
		func(f *c.Finding) { f.Actual += " and more" },
	} {
		other := a
		change(&other)
		require.NotEqual(t, fingerprint(a, "7f3a"), fingerprint(other, "7f3a"))
	}
}

func TestCompareStatuses(t *testing.T) {
	tests := []struct {
		from, to c.Status
		gating   bool
		want     string
	}{
		{c.Pass, c.Fail, true, "failing, regressed"},
		{c.Pass, c.Flaky, true, "failing, regressed"},
		{c.Pass, c.Warn, false, "failing"},
		{c.Pass, c.Waived, true, "failing"},
		{c.Waived, c.Fail, true, "failing, regressed"},
		{c.Warn, c.Fail, true, "failing, regressed"},
		{c.Inconclusive, c.Fail, true, "failing, regressed"},
		{c.Fail, c.Flaky, true, "changed"},
		{c.Fail, c.Pass, true, "fixed"},
		{c.Warn, c.Pass, false, "fixed"},
		{c.Fail, c.NotRun, true, "changed"},
		{c.Fail, c.NotApplicable, true, "changed"},
		{c.Pass, c.Inconclusive, true, "changed"},
		{c.Pass, c.HarnessError, true, "changed"},
		{c.Fail, c.Fail, true, ""},
	}
	for _, tt := range tests {
		t.Run(string(tt.from)+" "+string(tt.to), func(t *testing.T) {
			a, b := check("X-001", "x", "x", c.Must, tt.from), check("X-001", "x", "x", c.Must, tt.to)
			a.Gating, b.Gating = tt.gating, tt.gating
			d := Compare(&c.Report{Checks: []c.CheckResult{a}}, &c.Report{Checks: []c.CheckResult{b}})
			var got []string
			for _, p := range []struct {
				word string
				n    int
			}{{"failing", len(d.NewlyFailing)}, {"fixed", len(d.Fixed)}, {"changed", len(d.Changed)}} {
				if p.n > 0 {
					got = append(got, p.word)
				}
			}
			if d.Regressed() {
				got = append(got, "regressed")
			}
			require.Equal(t, tt.want, strings.Join(got, ", "))
		})
	}
}

func TestDifferencesCoverEverySetting(t *testing.T) {
	a, b := sample(), sample()
	b.Target, b.Profile, b.Tool.Version = "https://other.example", c.ProfileStrict, "2"
	b.Settings = c.Settings{Readback: true, Load: true, Development: true, WaiverCount: 9, Selected: []string{"RPC-*"}, Skipped: []string{"X"}, SkipConvention: "s"}
	got := map[string]bool{}
	for _, d := range Compare(a, b).Unfair {
		got[d.Setting] = true
	}
	require.False(t, got["target"], "another URL is normal")
	want := members(b.Settings)
	maps.Copy(want, members(a.Settings))
	delete(want, "readback_window_ms") // the same in both
	for name := range want {
		require.True(t, got[name], name)
	}
	for _, name := range []string{"profile", "tool"} {
		require.True(t, got[name], name)
	}
}

// TestCompareNewGate holds that a check which only the newer run has and which
// gates is a regression, and one that passes or warns is none.
func TestCompareNewGate(t *testing.T) {
	for status, want := range map[c.Status]bool{c.Fail: true, c.Flaky: true, c.Warn: false, c.Pass: false, c.NotRun: false} {
		x := check("X-001", "x", "x", c.Must, status)
		d := Compare(&c.Report{}, &c.Report{Checks: []c.CheckResult{x}})
		require.Equal(t, want, d.Regressed(), status)
		require.Equal(t, []string{"X-001"}, d.OnlyB)
		if want {
			require.Contains(t, comparisonText(d), "new → "+string(status))
		}
	}
}

func TestMarker(t *testing.T) {
	for name, want := range map[string]string{
		"service":        "<!-- destkit diff: service -->",
		"":               "<!-- destkit diff: destination -->",
		"nightly/crm.v2": "<!-- destkit diff: nightly/crm.v2 -->",
		"a --> b\n# c":   "<!-- destkit diff: a-b-c -->",
		"--->":           "<!-- destkit diff: destination -->",
	} {
		require.Equal(t, want, Marker(name), "%q", name)
	}
}

func TestComparisonMarkdown(t *testing.T) {
	show := func(d Comparison) string {
		var b strings.Builder
		require.NoError(t, WriteComparison(Markdown, &b, d))
		return b.String()
	}
	t.Run("one line is enough for the same", func(t *testing.T) {
		s := show(Compare(conformant(), conformant()))
		require.Contains(t, s, "### destkit: conformant, as before")
		require.Contains(t, s, "**no difference**")
		require.NotContains(t, s, "<details>")
	})
	t.Run("a verdict that changes stands in the heading", func(t *testing.T) {
		b := conformant()
		b.Verdict, b.Checks[0].Status, b.Suite = c.Unknown, c.NotRun, "service"
		s := show(Compare(conformant(), b))
		require.True(t, strings.HasPrefix(s, Marker("service")+"\n"), "the marker is the first line")
		require.Contains(t, s, "### destkit: unknown, was conformant")
		require.Contains(t, s, "1 no longer decided")
		require.Contains(t, s, "> Settings that differ: 1.")
	})
	t.Run("it fits into a comment", func(t *testing.T) {
		for _, h := range []string{hostile, strings.Repeat("@", 5000), strings.Repeat("ü", 5000)} {
			a, b := &c.Report{}, &c.Report{Summary: h}
			for i := range 400 {
				x := check(fmt.Sprintf("X-%04d", i), h, "x", c.Must, c.Pass)
				a.Checks = append(a.Checks, x)
				x.Status, x.Reason = []c.Status{c.Fail, c.Warn, c.NotRun, c.NotApplicable}[i%4], h
				b.Checks = append(b.Checks, x)
			}
			s := show(Compare(a, b))
			require.Less(t, len(s), 65_000)
			require.Contains(t, s, "more, in `destkit diff --json`")
			require.Equal(t, strings.Count(s, "\n<details>"), strings.Count(s, "\n</details>"), "every fold is closed")
			structureOf(t, []byte(s))
		}
	})
}
