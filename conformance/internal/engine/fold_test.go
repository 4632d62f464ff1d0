package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// symptomatic is a suite whose findings carry symptoms.
var symptomatic = &Suite{Symptoms: true}

// shown is a result with these symptoms.
func shown(status conformance.Status, symptoms ...string) *Result {
	return &Result{CheckResult: conformance.CheckResult{Status: status, Symptoms: symptoms}}
}

// TestWhatBlocks: only what would use up the run, and certificates, keep a check
// from being run; of what a failed check found else, the rest can be judged.
func TestWhatBlocks(t *testing.T) {
	late := "list_objects: " + string(wire.KindTimeout)
	for status, blocks := range map[conformance.Status]bool{
		conformance.Fail: true, conformance.Warn: true, conformance.Flaky: true, conformance.Waived: true,
		conformance.Pass: false, conformance.NotApplicable: false, conformance.NotRun: false, conformance.Inconclusive: false, conformance.HarnessError: false,
	} {
		needy := &conformance.Check{ID: "BBB-001", Needs: []string{"AAA-001", "GONE-001"}}
		sched := &scheduler{suite: symptomatic, results: map[string]*Result{"AAA-001": shown(status, late)}}
		require.Equal(t, blocks, len(sched.failed(needy, symptomatic.blocks)) == 1, status)
		sched = &scheduler{suite: symptomatic, results: map[string]*Result{"AAA-001": shown(status, "a record is missing")}}
		require.Empty(t, sched.failed(needy, symptomatic.blocks), status)
		sched = &scheduler{suite: symptomatic, results: map[string]*Result{"TLS-002": shown(status)}}
		require.Equal(t, blocks, len(sched.failed(&conformance.Check{ID: "BBB-001", Needs: []string{"TLS-002"}}, symptomatic.blocks)) == 1, status)
	}
	two := &scheduler{suite: symptomatic, results: map[string]*Result{
		"AAA-001": shown(conformance.Fail, late), "BBB-001": blocked(&conformance.Check{}, []string{"AAA-001"}), "CCC-001": shown(conformance.Warn, late),
	}}
	got := two.failed(&conformance.Check{ID: "DDD-001", Needs: []string{"BBB-001", "AAA-001", "CCC-001"}}, symptomatic.blocks)
	require.Equal(t, []string{"AAA-001", "CCC-001"}, got, "each cause once")
}

// TestWhatExplains: every symptom of a failure must be one of a failed check that
// it builds on, directly or through others.
func TestWhatExplains(t *testing.T) {
	checks := []*conformance.Check{{ID: "AAA-001"}, {ID: "BBB-001", Needs: []string{"AAA-001"}}, {ID: "CCC-001", Needs: []string{"BBB-001"}}, {ID: "DDD-001"}}
	failing := func(status conformance.Status, symptoms ...string) *Result {
		return &Result{CheckResult: conformance.CheckResult{Status: status, Findings: []conformance.Finding{{Actual: "seen"}}, Symptoms: symptoms}}
	}
	cases := []struct {
		name string
		need *Result // of AAA-001
		mid  *Result // of BBB-001
		own  *Result // of CCC-001
		want []string
	}{
		{"the same through another", failing(conformance.Fail, "x", "y"), shown(conformance.Pass), failing(conformance.Fail, "x"), []string{"AAA-001"}},
		{"the same of the nearest", failing(conformance.Fail, "x"), failing(conformance.Fail, "x"), failing(conformance.Fail, "x"), []string{"BBB-001"}},
		{"one from each", failing(conformance.Fail, "x"), failing(conformance.Warn, "y"), failing(conformance.Fail, "x", "y"), []string{"AAA-001", "BBB-001"}},
		{"one symptom more", failing(conformance.Fail, "x"), shown(conformance.Pass), failing(conformance.Fail, "x", "y"), nil},
		{"none that is named", failing(conformance.Fail, ""), shown(conformance.Pass), failing(conformance.Fail, ""), nil},
		{"the need passed", shown(conformance.Pass, "x"), shown(conformance.Pass), failing(conformance.Fail, "x"), nil},
		{"the need is undecided", shown(conformance.Inconclusive, "x"), shown(conformance.Pass), failing(conformance.Fail, "x"), nil},
		{"it did not fail", failing(conformance.Fail, "x"), shown(conformance.Pass), shown(conformance.Inconclusive, "x"), nil},
		{"it failed without a finding", failing(conformance.Fail, "x"), shown(conformance.Pass), shown(conformance.Fail, "x"), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			sched := &scheduler{suite: symptomatic, checks: checks, results: map[string]*Result{"AAA-001": c.need, "BBB-001": c.mid, "DDD-001": failing(conformance.Fail, "x", "y")}}
			require.ElementsMatch(t, c.want, sched.explained(checks[2], c.own), "what DDD-001 shows is no reason, since nothing builds on it")
		})
	}
}

// TestWarningsAboutBodiesWithoutJSON are folded under RPC-001 where each reply has such a
// body: an empty one breaks no rule of RPC-001, and a failure stays one.
func TestWarningsAboutBodiesWithoutJSON(t *testing.T) {
	result := func(status conformance.Status, body string, symptoms ...string) *Result {
		x := conformance.Exchange{Response: &wire.Response{Status: 500, Body: wire.Body{Text: body}}}
		findings := []conformance.Finding{{Actual: "seen", Exchanges: []conformance.Exchange{x}}}
		return &Result{CheckResult: conformance.CheckResult{Status: status, Findings: findings, Symptoms: symptoms}}
	}
	const page = "list_fields: HTTP 500 without JSON"
	for name, tc := range map[string]struct {
		first, own *Result
		folded     bool
	}{
		"a page":                 {result(conformance.Fail, "<html>", page), result(conformance.Warn, "<html>", ": HTTP 500 without JSON"), true},
		"an empty body":          {result(conformance.Fail, "<html>", page), result(conformance.Warn, "", page), false},
		"a failure":              {result(conformance.Fail, "<html>", page), result(conformance.Fail, "<html>", page), false},
		"something else, too":    {result(conformance.Fail, "<html>", page), result(conformance.Warn, "<html>", page, "another id"), false},
		"RPC-001 has not failed": {result(conformance.Pass, ""), result(conformance.Warn, "<html>", page), false},
	} {
		checks := []*conformance.Check{{ID: "RPC-001"}, {ID: "HTTP-010"}, {ID: "HTTP-009"}}
		sched := &scheduler{suite: symptomatic, opts: &conformance.Options{}, checks: checks, results: map[string]*Result{
			"RPC-001": tc.first, "HTTP-010": tc.own, "HTTP-009": blocked(checks[2], []string{"HTTP-010"}),
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
