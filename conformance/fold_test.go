package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// symptomatic is a suite whose findings carry symptoms.
var symptomatic = &Suite{Symptoms: true}

// TestWhatBlocks: only what would use up the run, and certificates, keep a check
// from being run; of what a failed check found else, the rest can be judged.
func TestWhatBlocks(t *testing.T) {
	late := []string{"list_objects: " + string(wire.KindTimeout)}
	for status, blocks := range map[Status]bool{
		Fail: true, Warn: true, Flaky: true, Waived: true,
		Pass: false, NotApplicable: false, NotRun: false, Inconclusive: false, HarnessError: false,
	} {
		needy := &Check{ID: "BBB-001", Needs: []string{"AAA-001", "GONE-001"}}
		sched := &scheduler{suite: symptomatic, results: map[string]*CheckResult{"AAA-001": {Status: status, symptoms: late}}}
		require.Equal(t, blocks, len(sched.blockers(needy)) == 1, status)
		sched = &scheduler{suite: symptomatic, results: map[string]*CheckResult{"AAA-001": {Status: status, symptoms: []string{"a record is missing"}}}}
		require.Empty(t, sched.blockers(needy), status)
		sched = &scheduler{suite: symptomatic, results: map[string]*CheckResult{"TLS-002": {Status: status}}}
		require.Equal(t, blocks, len(sched.blockers(&Check{ID: "BBB-001", Needs: []string{"TLS-002"}})) == 1, status)
	}
	two := &scheduler{suite: symptomatic, results: map[string]*CheckResult{
		"AAA-001": {Status: Fail, symptoms: late}, "BBB-001": {Status: NotRun, BlockedBy: []string{"AAA-001"}}, "CCC-001": {Status: Warn, symptoms: late},
	}}
	got := two.blockers(&Check{ID: "DDD-001", Needs: []string{"BBB-001", "AAA-001", "CCC-001"}})
	require.Equal(t, []string{"AAA-001", "CCC-001"}, got, "each cause once")
}

// TestWhatExplains: every symptom of a failure must be one of a failed check that
// it builds on, directly or through others.
func TestWhatExplains(t *testing.T) {
	checks := []*Check{{ID: "AAA-001"}, {ID: "BBB-001", Needs: []string{"AAA-001"}}, {ID: "CCC-001", Needs: []string{"BBB-001"}}, {ID: "DDD-001"}}
	failing := func(status Status, symptoms ...string) *CheckResult {
		return &CheckResult{Status: status, Findings: []Finding{{Actual: "seen"}}, symptoms: symptoms}
	}
	cases := []struct {
		name string
		need *CheckResult // of AAA-001
		mid  *CheckResult // of BBB-001
		own  *CheckResult // of CCC-001
		want []string
	}{
		{"the same through another", failing(Fail, "x", "y"), &CheckResult{Status: Pass}, failing(Fail, "x"), []string{"AAA-001"}},
		{"the same of the nearest", failing(Fail, "x"), failing(Fail, "x"), failing(Fail, "x"), []string{"BBB-001"}},
		{"one from each", failing(Fail, "x"), failing(Warn, "y"), failing(Fail, "x", "y"), []string{"AAA-001", "BBB-001"}},
		{"one symptom more", failing(Fail, "x"), &CheckResult{Status: Pass}, failing(Fail, "x", "y"), nil},
		{"none that is named", failing(Fail, ""), &CheckResult{Status: Pass}, failing(Fail, ""), nil},
		{"the need passed", &CheckResult{Status: Pass, symptoms: []string{"x"}}, &CheckResult{Status: Pass}, failing(Fail, "x"), nil},
		{"the need is undecided", &CheckResult{Status: Inconclusive, symptoms: []string{"x"}}, &CheckResult{Status: Pass}, failing(Fail, "x"), nil},
		{"it did not fail", failing(Fail, "x"), &CheckResult{Status: Pass}, &CheckResult{Status: Inconclusive, symptoms: []string{"x"}}, nil},
		{"it failed without a finding", failing(Fail, "x"), &CheckResult{Status: Pass}, &CheckResult{Status: Fail, symptoms: []string{"x"}}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			sched := &scheduler{suite: symptomatic, checks: checks, results: map[string]*CheckResult{"AAA-001": c.need, "BBB-001": c.mid, "DDD-001": failing(Fail, "x", "y")}}
			require.ElementsMatch(t, c.want, sched.explained(checks[2], c.own), "what DDD-001 shows is no reason, since nothing builds on it")
		})
	}
}

// TestWarningsAboutBodiesWithoutJSON are folded under RPC-001 where each reply has such a
// body: an empty one breaks no rule of RPC-001, and a failure stays one.
func TestWarningsAboutBodiesWithoutJSON(t *testing.T) {
	result := func(status Status, body string, symptoms ...string) *CheckResult {
		x := Exchange{Response: &wire.Response{Status: 500, Body: wire.Body{Text: body}}}
		return &CheckResult{Status: status, Findings: []Finding{{Actual: "seen", Exchanges: []Exchange{x}}}, symptoms: symptoms}
	}
	const page = "list_fields: HTTP 500 without JSON"
	for name, tc := range map[string]struct {
		first, own *CheckResult
		folded     bool
	}{
		"a page":                 {result(Fail, "<html>", page), result(Warn, "<html>", ": HTTP 500 without JSON"), true},
		"an empty body":          {result(Fail, "<html>", page), result(Warn, "", page), false},
		"a failure":              {result(Fail, "<html>", page), result(Fail, "<html>", page), false},
		"something else, too":    {result(Fail, "<html>", page), result(Warn, "<html>", page, "another id"), false},
		"RPC-001 has not failed": {result(Pass, ""), result(Warn, "<html>", page), false},
	} {
		checks := []*Check{{ID: "RPC-001"}, {ID: "HTTP-010"}, {ID: "HTTP-009"}}
		sched := &scheduler{suite: symptomatic, opts: &Options{}, checks: checks, results: map[string]*CheckResult{
			"RPC-001": tc.first, "HTTP-010": tc.own, "HTTP-009": checks[2].blocked([]string{"HTTP-010"}),
		}}
		sched.foldLate()
		want := []string{"HTTP-010"}
		if tc.folded {
			want = []string{"RPC-001"}
			require.Equal(t, want, sched.results["HTTP-010"].BlockedBy, name)
		} else {
			require.Empty(t, sched.results["HTTP-010"].BlockedBy, name)
		}
		require.Equal(t, want, sched.results["HTTP-009"].BlockedBy, name)
	}
}
