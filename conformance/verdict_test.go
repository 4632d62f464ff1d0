package conformance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExitStatusPrecedence(t *testing.T) {
	order := []int{2, 1, 3, 4, 5, 6}
	require.Zero(t, exitStatus(nil))
	require.Zero(t, exitStatus([]Problem{{ExitStatus: 0}}))
	for i, first := range order {
		var problems []Problem
		for _, later := range order[i:] {
			// Whatever the order in which the problems were found.
			problems = append([]Problem{{ExitStatus: later}}, problems...)
		}
		require.Equal(t, first, exitStatus(problems))
	}
}

func TestProfilesGate(t *testing.T) {
	type gate struct{ spec, v1, strict bool }
	cases := []struct {
		name string
		c    Check
		want gate
	}{
		{"spec MUST", Check{Level: Must, Authority: []Authority{AuthoritySpec}}, gate{true, true, true}},
		{"jsonrpc MUST", Check{Level: Must, Authority: []Authority{AuthorityJSONRPC}}, gate{true, true, true}},
		{"published MUST", Check{Level: Must, Authority: []Authority{AuthorityPublished}}, gate{false, true, true}},
		{"policy MUST", Check{Level: Must, Authority: []Authority{AuthorityPolicy}}, gate{false, false, true}},
		{"policy and spec MUST", Check{Level: Must, Authority: []Authority{AuthorityPolicy, AuthoritySpec}}, gate{true, true, true}},
		{"published and policy MUST", Check{Level: Must, Authority: []Authority{AuthorityPublished, AuthorityPolicy}}, gate{false, true, true}},
		{"spec SHOULD", Check{Level: Should, Authority: []Authority{AuthoritySpec}}, gate{false, false, true}},
		{"policy SHOULD", Check{Level: Should, Authority: []Authority{AuthorityPolicy}}, gate{false, false, true}},
		{"spec INFO", Check{Level: Info, Authority: []Authority{AuthoritySpec}}, gate{}},
		{"author's own MUST", Check{Level: Must, Authority: []Authority{AuthoritySpec}, Own: true}, gate{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := gate{c.c.Gates(ProfileSpec), c.c.Gates(ProfileV1), c.c.Gates(ProfileStrict)}
			require.Equal(t, c.want, got)
		})
	}
}

// TestProfilesGateTheCatalogue: a wider profile gates on everything that a
// narrower one gates on, and on more.
func TestProfilesGateTheCatalogue(t *testing.T) {
	cat, err := LoadCatalogue(SuiteDestination)
	require.NoError(t, err)
	counts := map[Profile]int{}
	for _, c := range cat.Checks {
		for _, p := range []Profile{ProfileSpec, ProfileV1, ProfileStrict} {
			if c.Gates(p) {
				counts[p]++
			}
		}
		require.False(t, c.Gates(ProfileSpec) && !c.Gates(ProfileV1), c.ID)
		require.Equal(t, c.Level != Info, c.Gates(ProfileStrict), c.ID)
	}
	require.Less(t, counts[ProfileSpec], counts[ProfileV1])
	require.Less(t, counts[ProfileV1], counts[ProfileStrict])
}

// decidedReport sums up made-up results.
func decidedReport(t *testing.T, opts Options, problems []Problem, left int, results ...CheckResult) *Report {
	t.Helper()
	opts = opts.WithDefaults()
	r := opts.NewReport(SuiteDestination, "", time.Now())
	r.Tier = TierProtocol
	r.Checks, r.Problems = results, problems
	for range left {
		r.Residue.Refused = append(r.Residue.Refused, Leftover{Object: "contact", Identifier: `"a"`})
	}
	opts.decide(r, &Catalogue{})
	r.Summary = summary(r)
	return r
}

func gated(id string, status Status) CheckResult {
	return CheckResult{ID: id, Level: Must, Status: status, Gating: true}
}

func TestVerdictAndExitStatus(t *testing.T) {
	below := CheckResult{ID: "Z-003", Level: Should, Status: Warn}
	brokenHook := CheckResult{ID: "A-001", Level: Should, Status: HarnessError}
	all := []CheckResult{gated("A-001", HarnessError), gated("B-001", Fail), gated("C-001", Inconclusive)}
	lost := []Problem{{Kind: "unreachable", ExitStatus: 3, Message: "no HTTP response"}}
	complete, clean := Options{RequireComplete: true}, Options{RequireClean: true}
	stale := Options{Waivers: []Waiver{{Check: "NOP-001", Reason: "r"}}}
	everything := Options{RequireComplete: true, RequireClean: true, Waivers: stale.Waivers}
	cases := []struct {
		name     string
		opts     Options
		problems []Problem
		left     int
		results  []CheckResult
		verdict  Verdict
		exit     int
	}{
		{"all pass", Options{}, nil, 0, []CheckResult{gated("A-001", Pass)}, Conformant, 0},
		{"warnings do not gate", Options{}, nil, 0, []CheckResult{gated("A-001", Pass), below}, Conformant, 0},
		{"not applicable is whole", complete, nil, 0, []CheckResult{gated("A-001", NotApplicable)}, Conformant, 0},
		{"waived does not gate", Options{}, nil, 0, []CheckResult{gated("A-001", Waived)}, Conformant, 0},
		{"an acquitted MUST does not gate", Options{}, nil, 0, []CheckResult{gated("A-001", Warn)}, Conformant, 0},
		{"fail", Options{}, nil, 0, []CheckResult{gated("A-001", Fail)}, NonConformant, 1},
		{"flaky gates", Options{}, nil, 0, []CheckResult{gated("A-001", Flaky)}, NonConformant, 1},
		{"undecided without a record is in part", Options{}, nil, 0, []CheckResult{gated("P-001", Pass), gated("A-001", Inconclusive)}, ConformantInPart, 0},
		{"not run without a record is in part", Options{}, nil, 0, []CheckResult{gated("P-001", Pass), gated("A-001", NotRun)}, ConformantInPart, 0},
		{"undecided with records", Options{}, nil, 0, []CheckResult{looked("P-001", Pass), gated("A-001", Inconclusive), gated("B-001", NotRun)}, Conformant, 0},
		{"a selection is in part", Options{Select: []string{"A-*"}}, nil, 0, []CheckResult{gated("A-001", Pass)}, ConformantInPart, 0},
		{"a skip is in part", Options{Skip: []string{"A-*"}}, nil, 0, []CheckResult{gated("A-001", Pass)}, ConformantInPart, 0},
		{"undecided, and complete is asked for", complete, nil, 0, []CheckResult{gated("P-001", Pass), gated("A-001", Inconclusive)}, ConformantInPart, 6},
		{"an undecided SHOULD is complete", complete, nil, 0, []CheckResult{{ID: "A-001", Level: Should, Status: NotRun}}, Conformant, 0},
		{"residue is allowed", Options{}, nil, 2, []CheckResult{gated("A-001", Pass)}, Conformant, 0},
		{"residue, and clean is asked for", clean, nil, 2, []CheckResult{gated("A-001", Pass)}, Conformant, 5},
		{"an unknown waiver", stale, nil, 0, []CheckResult{gated("A-001", Pass)}, Conformant, 4},
		{"harness error is unknown", Options{}, nil, 0, []CheckResult{gated("A-001", HarnessError)}, Unknown, 3},
		{"harness error below the gate", Options{}, nil, 0, []CheckResult{gated("P-001", Pass), brokenHook}, Conformant, 0},
		{"harness error below the gate, and a failure", Options{}, nil, 0, []CheckResult{gated("P-001", Fail), brokenHook}, NonConformant, 1},
		{"harness error below the gate, and nothing else", Options{}, nil, 0, []CheckResult{brokenHook, gated("A-001", Inconclusive)}, Unknown, 3},
		{"unreachable is unknown", Options{}, lost, 0, []CheckResult{gated("A-001", NotRun)}, Unknown, 3},
		{"nothing could be decided", Options{}, nil, 0, []CheckResult{gated("A-001", Inconclusive), gated("B-001", NotRun), below}, Unknown, 3},
		{"nothing could be decided, and complete is asked for", complete, nil, 0, []CheckResult{gated("A-001", NotRun)}, Unknown, 3},
		{"a failed gate beats a harness error", Options{}, nil, 0, all, NonConformant, 1},
		{"1 before everything else", everything, lost, 1, all, NonConformant, 1},
		{"3 before 4, 5 and 6", everything, lost, 1, []CheckResult{gated("C-001", Inconclusive)}, Unknown, 3},
		{"4 before 5 and 6", everything, nil, 1, []CheckResult{gated("P-001", Pass), gated("C-001", Inconclusive)}, ConformantInPart, 4},
		{"5 before 6", Options{RequireComplete: true, RequireClean: true}, nil, 1, []CheckResult{gated("P-001", Pass), gated("C-001", Inconclusive)}, ConformantInPart, 5},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := decidedReport(t, c.opts, c.problems, c.left, c.results...)
			require.Equal(t, c.verdict, r.Verdict)
			require.Equal(t, c.exit, r.ExitStatus, "%v", r.Problems)
		})
	}
}

// TestHarnessErrorsAreReported: below the gate they are in a note, above it in a
// problem; neither is silent.
func TestHarnessErrorsAreReported(t *testing.T) {
	r := decidedReport(t, Options{}, nil, 0, gated("P-001", Pass), CheckResult{ID: "A-001", Level: Should, Status: HarnessError})
	require.Empty(t, r.Problems)
	require.Equal(t, []string{"the judge or a hook failed in A-001, below the gate of profile v1: the verdict is made from the other checks"}, r.Notes)
	require.Equal(t, 1, r.Counts[HarnessError])

	r = decidedReport(t, Options{}, nil, 0, gated("P-001", Pass), gated("B-001", HarnessError), CheckResult{ID: "A-001", Level: Should, Status: HarnessError})
	require.Len(t, r.Problems, 1)
	require.Equal(t, "harness", r.Problems[0].Kind)
	require.Contains(t, r.Problems[0].Message, "failed in B-001: the verdict is unknown")
	require.Len(t, r.Notes, 1)
}

// opened is a check that was not decided, and what would decide it.
func opened(id, decider string) CheckResult {
	r := gated(id, NotRun)
	r.Decider = decider
	return r
}

// looked is a check that saw an accepted record.
func looked(id string, status Status) CheckResult {
	r := gated(id, status)
	r.Seen = map[Evidence]int{SeenAccepted: 1}
	return r
}

// TestSummaryOfWhatWasNotTested: a run that found nothing is conformant, and reports how much it
// could not test; "in part" is one that saw no record.
func TestSummaryOfWhatWasNotTested(t *testing.T) {
	for name, tt := range map[string]struct {
		checks []CheckResult
		want   string
	}{
		"all of it": {[]CheckResult{looked("A-001", Pass)}, "conformant: none of 1 MUSTs failed; 0 records left behind; "},
		"something is missing": {[]CheckResult{looked("A-001", Pass), opened("TLS-001", "tls"), opened("TLS-002", "tls"), opened("SPD-008", "load")},
			"conformant; 3 rules not tested (TLS, load): 2 need --development off or --tls-roots FILE, 1 needs --load; none of 4 MUSTs failed; 0 records left behind; "},
		"nothing would decide it": {[]CheckResult{looked("A-001", Pass), gated("A-002", Inconclusive)}, "conformant; 1 rule not tested; none of 2 MUSTs failed; "},
		"many things are missing": {[]CheckResult{looked("A-001", Pass), opened("B-001", "hook restart"), opened("B-002", "readback"), opened("B-003", "readback"),
			opened("B-004", "hook alter_schema"), opened("B-005", "readback"), opened("B-006", "fixtures"), opened("B-007", "--load")},
			"conformant; 7 rules not tested (read-back, hooks, values, …): 3 need a read-back hook (--readback-url URL), 2 need hooks (--hooks FILE), 1 needs fixtures (--config FILE), and more; none of 8 "},
		"no record": {[]CheckResult{gated("A-001", Pass), opened("B-001", "--write")},
			"conformant in part: 1 rule not tested (writes): 1 needs --write --object NAME; none of 2 MUSTs failed; "},
	} {
		t.Run(name, func(t *testing.T) {
			r := decidedReport(t, Options{}, nil, 0, tt.checks...)
			require.Zero(t, r.ExitStatus)
			require.True(t, strings.HasPrefix(r.Summary, tt.want), r.Summary)
		})
	}
	r := decidedReport(t, Options{}, nil, 0, gated("A-001", Pass), opened("B-001", "--write"))
	r.Objects = []string{"two words", "lead"}
	require.Contains(t, summary(r), "--write --object lead;")
	r.Objects = []string{"two words"}
	require.Contains(t, summary(r), "--write --object NAME;", "what needs quotes is no part of a line to paste")
}

// TestSummaryBeginsWithTheWorst: the consequence for the service comes first, and what to
// fix first has it, whatever waits for other checks.
func TestSummaryBeginsWithTheWorst(t *testing.T) {
	cat, err := LoadCatalogue(SuiteDestination)
	require.NoError(t, err)
	failed := func(id string, status Status, calls ...string) CheckResult {
		at := slices.IndexFunc(cat.Checks, func(c *Check) bool { return c.ID == id })
		r := CheckResult{ID: id, Level: cat.Checks[at].Level, Status: status, Gating: status == Fail}
		for _, call := range calls {
			r.Findings = append(r.Findings, Finding{Exchanges: []Exchange{{RPC: call}}})
		}
		return r
	}
	blocked := func(id string, by ...string) CheckResult {
		r := failed(id, NotRun)
		r.BlockedBy = by
		return r
	}
	lost, every, some, advice := failed("SEM-006", Fail), failed("RPC-003", Fail, "test_connection", "list_fields"), failed("RES-012", Fail, "sync_batch"), failed("RES-003", Warn)
	full := failed("SPD-006", Fail, "sync_batch")
	full.Symptoms = []string{"no value of tags"}
	for name, tt := range map[string]struct {
		checks    []CheckResult
		head, fix string
	}{
		"records":                      {[]CheckResult{every, some, advice, lost}, "records lost or wrong: non-conformant; 3 of 3 MUSTs failed (RPC-003, RES-012, SEM-006); 1 warning; ", "fix SEM-006 first; "},
		"records of a full batch":      {[]CheckResult{every, full}, "records lost or wrong: ", "fix SPD-006 first; "},
		"records, and others wait":     {[]CheckResult{every, lost, blocked("RES-001", "RPC-003"), blocked("RES-002", "RPC-003")}, "records lost or wrong: ", "fix SEM-006 first; "},
		"every call":                   {[]CheckResult{advice, some, every}, "every call fails: non-conformant; ", "fix RPC-003 first; "},
		"one method":                   {[]CheckResult{failed("RPC-003", Fail, "list_fields", "list_fields"), advice}, "some calls fail: non-conformant; ", ""},
		"a method that nobody calls":   {[]CheckResult{failed("RPC-001", Fail, "no_such_method")}, "some calls fail: non-conformant; ", ""},
		"a call of every run":          {[]CheckResult{some, failed("CON-001", Fail, "test_connection")}, "every call fails: ", "fix CON-001 first; "},
		"some calls":                   {[]CheckResult{advice, some, blocked("RES-002", "RES-012")}, "some calls fail: ", "fix RES-012 first: 1 check builds on it; "},
		"a recommendation":             {[]CheckResult{looked("A-001", Pass), advice}, "recommendations not followed: conformant; none of 1 MUSTs failed; 1 warning; 0 records", ""},
		"a recommendation about data":  {[]CheckResult{looked("A-001", Pass), failed("SEM-014", Warn)}, "recommendations not followed: ", ""},
		"an acknowledged bad record":   {[]CheckResult{every, failed("RES-009", Fail, "sync_batch")}, "records lost or wrong: ", "fix RES-009 first; "},
		"two records, one blocks more": {[]CheckResult{lost, failed("SEM-001", Fail), blocked("SEM-002", "SEM-001")}, "records lost or wrong: ", "fix SEM-001 first: 1 check builds on it; "},
	} {
		t.Run(name, func(t *testing.T) {
			opts := Options{}.WithDefaults()
			r := opts.NewReport(SuiteDestination, "", time.Now())
			r.Checks = tt.checks
			opts.decide(r, cat)
			said := summary(r)
			require.True(t, strings.HasPrefix(said, tt.head), said)
			require.Contains(t, said, tt.fix)
			require.Equal(t, tt.fix != "", strings.Contains(said, "fix "), said)
		})
	}
}

// TestSummarySaysWhyTheExitStatusIs: 4, 5 and 6 are explained in the line that all read.
func TestSummarySaysWhyTheExitStatusIs(t *testing.T) {
	passed, open := looked("P-001", Pass), gated("A-001", Inconclusive)
	for _, tt := range []struct {
		opts   Options
		left   int
		status int
		want   string
	}{
		{Options{Waivers: []Waiver{{Check: "P-001", Reason: "r"}}}, 0, 4, "conformant; exit status 4: the waiver of P-001 "},
		{Options{RequireClean: true}, 2, 5, "conformant; exit status 5: 2 records are left behind, and --require-clean asks for none; "},
		{Options{RequireComplete: true}, 0, 6, "conformant; exit status 6: 1 MUST stays undecided, and --require-complete asks for none; "},
	} {
		r := decidedReport(t, tt.opts, nil, tt.left, passed, open)
		require.Equal(t, tt.status, r.ExitStatus)
		require.True(t, strings.HasPrefix(r.Summary, tt.want), r.Summary)
	}
}

// TestSummaryHasOneVerdict: a hook that breaks next to a failure makes nothing unknown.
func TestSummaryHasOneVerdict(t *testing.T) {
	r := decidedReport(t, Options{}, nil, 1, gated("A-001", Fail), gated("B-001", HarnessError), gated("B-002", Flaky))
	require.Equal(t, "some calls fail: non-conformant; the judge or a hook failed in B-001; 2 of 3 MUSTs failed (A-001, B-002); fix A-001 first; 1 record left behind; tier protocol; 0.0 s", r.Summary)
	require.Equal(t, map[Status]int{Fail: 1, Flaky: 1, HarnessError: 1}, r.Counts)
	r = decidedReport(t, Options{}, nil, 0, gated("P-001", Pass), gated("B-001", HarnessError))
	require.True(t, strings.HasPrefix(r.Summary, "unknown: the judge or a hook failed in B-001: the verdict is unknown; "), r.Summary)
}
