package conformance

import (
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
		{"author's own MUST", Check{Level: Must, Authority: []Authority{AuthoritySpec}, own: true}, gate{}},
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
	r := opts.newReport(SuiteDestination, "", time.Now())
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
		{"undecided is in part", Options{}, nil, 0, []CheckResult{gated("P-001", Pass), gated("A-001", Inconclusive)}, ConformantInPart, 0},
		{"not run is in part", Options{}, nil, 0, []CheckResult{gated("P-001", Pass), gated("A-001", NotRun)}, ConformantInPart, 0},
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

// TestSummaryCounts: the last line names what failed and counts what stays
// undecided, with exit status 0 too.
func TestSummaryCounts(t *testing.T) {
	open := gated("C-001", Inconclusive)
	open.Decider = "readback"
	r := decidedReport(t, Options{}, nil, 0, gated("A-001", Pass), open, gated("D-001", NotRun))
	require.Zero(t, r.ExitStatus)
	require.Equal(t, []string{"C-001", "D-001"}, r.Undecided)
	require.Contains(t, r.Summary, "none of 3 MUSTs failed")
	require.Contains(t, r.Summary, "conformant in part: 1 of 2 undecided MUSTs needs a read-back hook (--readback-url URL); none of")
	require.Contains(t, r.Summary, "0 records left behind")

	r = decidedReport(t, Options{}, nil, 0, gated("A-001", Pass), open)
	require.Contains(t, r.Summary, "conformant in part: 1 undecided MUST needs a read-back hook (--readback-url URL); none of 2 MUSTs failed")
	other := gated("E-001", Inconclusive)
	other.Decider = "readback"
	r = decidedReport(t, Options{}, nil, 0, gated("A-001", Pass), open, other)
	require.Contains(t, r.Summary, "conformant in part: all 2 undecided MUSTs need a read-back hook (--readback-url URL); none of 3 MUSTs failed")

	r = decidedReport(t, Options{}, nil, 1, gated("A-001", Fail), gated("B-001", Flaky), open)
	require.Equal(t, []string{"A-001", "B-001"}, r.Failed)
	require.Contains(t, r.Summary, "non-conformant: 2 of 3 MUSTs failed (A-001, B-001)")
	require.Contains(t, r.Summary, "1 record left behind")
	require.Equal(t, map[Status]int{Fail: 1, Flaky: 1, Inconclusive: 1}, r.Counts)
}

// TestSummaryNamesWhatDecidesMost: the first clause is what a reader can do about
// most of the open checks, and which failure stands in the way of most others.
func TestSummaryNamesWhatDecidesMost(t *testing.T) {
	open := func(id, decider string) CheckResult {
		r := gated(id, NotRun)
		r.Decider = decider
		return r
	}
	r := decidedReport(t, Options{}, nil, 0, gated("A-001", Pass), open("B-001", "hook restart"), open("B-002", "--write"),
		open("B-003", "--write"), open("B-004", "hook alter_schema"), open("B-005", "--write"), open("B-006", "fixtures"),
		open("B-007", "--load"))
	r.Objects = []string{"two words", "lead"}
	require.Equal(t, "conformant in part: 3 of 7 undecided MUSTs need --write --object lead, 2 need hooks (--hooks FILE), "+
		"1 needs fixtures (--config FILE), and more; none of 8 MUSTs failed; 0 records left behind; tier protocol; 0.0 s", summary(r))
	r.Objects = []string{"two words"}
	require.Contains(t, summary(r), "--write --object NAME,", "what needs quotes is no part of a line to paste")

	blocked := func(id string, by ...string) CheckResult {
		r := gated(id, NotRun)
		r.BlockedBy = by
		return r
	}
	r = decidedReport(t, Options{}, nil, 0, gated("A-001", Fail), gated("A-002", Fail), blocked("B-001", "A-002"),
		blocked("B-002", "A-001", "A-002"))
	require.Contains(t, r.Summary, "2 of 4 MUSTs failed (A-001, A-002); fix A-002 first: 2 checks build on it; 2 MUSTs undecided; ")
}
