package conformance

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// confirmed is what becomes of a failure by its second run.
func confirmed(t *testing.T, first *CheckResult) Status {
	t.Helper()
	passes := &scripted{verdicts: map[string][]Status{"AAA-001": {Pass}}}
	sched := newScheduler(passes.suite(), &Options{Profile: ProfileV1}, []*Check{{ID: "AAA-001", Level: Must, Authority: []Authority{AuthoritySpec}}})
	c := sched.checks[0]
	sched.pending, sched.active = nil, 1
	sched.results[c.ID+" first"] = first
	sched.confirm(context.Background(), c)
	require.Equal(t, 2, sched.results[c.ID].Attempts)
	return sched.results[c.ID].Status
}

func TestALostConnectionMayBeAcquitted(t *testing.T) {
	lost := Exchange{Kind: string(wire.KindReset)}
	answered := Exchange{Kind: string(wire.KindReset), Response: &wire.Response{Status: 200}}
	late := Exchange{Kind: string(wire.KindTimeout)}
	cases := []struct {
		name      string
		exchanges [][]Exchange // by finding
		want      Status
	}{
		{"a reset", [][]Exchange{{lost}}, Warn},
		{"two resets", [][]Exchange{{lost}, {lost}}, Warn},
		{"a reset after the reply began", [][]Exchange{{answered}}, Flaky},
		{"a reset beside another finding", [][]Exchange{{lost}, {late}}, Flaky},
		{"no reply in time", [][]Exchange{{late}}, Flaky},
		{"no finding", nil, Flaky},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			first := &CheckResult{ID: "AAA-001", Status: Fail, Findings: []Finding{}}
			for _, x := range c.exchanges {
				first.Findings = append(first.Findings, Finding{Exchanges: x})
			}
			require.Equal(t, c.want, confirmed(t, first))
		})
	}
}

// TestASkippedNeedDoesNotBlock: what was not selected cannot hold others back.
func TestASkippedNeedDoesNotBlock(t *testing.T) {
	sched := newScheduler(&Suite{}, &Options{}, []*Check{{ID: "BBB-001", Needs: []string{"AAA-001"}}, {ID: "CCC-001", Needs: []string{"BBB-001"}}})
	require.True(t, sched.ready(sched.checks[0]))
	require.False(t, sched.ready(sched.checks[1]))
}

func TestOrderOfChecks(t *testing.T) {
	plain, alone, needy := &Check{ID: "AAA-001"}, &Check{ID: "BBB-001", Alone: true}, &Check{ID: "CCC-001", Needs: []string{"AAA-001"}}
	sched := newScheduler(&Suite{}, &Options{}, []*Check{alone, plain, needy})
	want := func(c *Check, kind turn) {
		t.Helper()
		got, how := sched.next(2)
		require.Equal(t, c, got)
		require.Equal(t, kind, how)
	}
	want(plain, runBeside)
	want(nil, mustWait) // needy builds on plain, alone waits for an empty house
	sched.active, sched.results["AAA-001"] = 0, &CheckResult{Status: Pass}
	want(needy, runBeside)
	want(nil, mustWait)
	sched.active, sched.unconfirmed = 0, []*Check{plain}
	want(plain, confirmAlone) // a second run is alone too
	want(nil, mustWait)
	sched.active = 0
	want(alone, runAlone)
	want(nil, mustWait)
	sched.active = 0
	want(nil, nothingLeft)
}

// TestWaitersHaveRoomOfTheirOwn: checks that mostly wait run side by side, also those
// that would else run alone, and take no place of the others.
func TestWaitersHaveRoomOfTheirOwn(t *testing.T) {
	var checks []*Check
	for n := range parallelWaits + 1 {
		checks = append(checks, &Check{ID: fmt.Sprintf("AAA-%03d", n), Clock: true, Alone: true})
	}
	plain, alone := &Check{ID: "BBB-001"}, &Check{ID: "BBB-002", Alone: true}
	sched := newScheduler(&Suite{}, &Options{}, append([]*Check{plain, alone}, checks...))
	sched.suite.Waits = func(c *Check) bool { return c.Clock }
	want := func(c *Check, kind turn) {
		t.Helper()
		got, how := sched.next(1)
		require.Equal(t, c, got)
		require.Equal(t, kind, how)
	}
	for _, c := range checks[:parallelWaits] {
		want(c, runBeside)
	}
	want(plain, runBeside)
	want(nil, mustWait) // no room, and alone waits for an empty house
	sched.active, sched.idle = sched.active-1, sched.idle-1
	want(checks[parallelWaits], runBeside)
	sched.active, sched.idle = 0, 0
	want(alone, runAlone)

	sched = newScheduler(&Suite{}, &Options{Serial: true}, checks[:2])
	sched.suite.Waits = func(c *Check) bool { return c.Clock }
	want(checks[0], runAlone)
	want(nil, mustWait) // one at a time is one at a time
}

func TestACircleOfNeedsIsAFaultOfTheCatalogue(t *testing.T) {
	sched := newScheduler(&Suite{}, &Options{}, []*Check{{ID: "AAA-001", Needs: []string{"BBB-001"}}, {ID: "BBB-001", Needs: []string{"AAA-001"}}})
	require.Panics(t, func() { sched.next(1) })
}

func TestMergeOfObjects(t *testing.T) {
	c := &Check{ID: "AAA-001"}
	part := func(s Status) *CheckResult {
		return &CheckResult{ID: c.ID, Status: s, Notes: []string{"note of " + string(s)}, Evidence: "seen"}
	}
	cases := []struct {
		parts []Status
		want  Status
	}{
		{[]Status{Pass, Fail}, Fail},
		{[]Status{HarnessError, Fail}, Fail},
		{[]Status{Pass, HarnessError, Inconclusive}, HarnessError},
		{[]Status{Pass, Inconclusive}, Inconclusive},
		{[]Status{NotRun, Inconclusive}, Inconclusive},
		{[]Status{Pass, NotRun}, NotRun}, // a pass must not hide what was not judged
		{[]Status{NotApplicable, NotRun}, NotRun},
		{[]Status{NotApplicable, Pass}, Pass},
		{[]Status{Pass, Pass}, Pass},
		{[]Status{NotApplicable}, NotApplicable},
	}
	for _, x := range cases {
		var parts []*CheckResult
		for _, s := range x.parts {
			parts = append(parts, part(s))
		}
		got := merge(c, parts)
		require.Equal(t, x.want, got.Status, "%v", x.parts)
		require.Len(t, got.Notes, len(x.parts))
	}
	none := merge(c, nil)
	require.Equal(t, NotRun, none.Status)
	require.Equal(t, "--object", none.Decider)
}

// scripted is a suite whose verdicts are written down: those of the runs of each check.
type scripted struct {
	mu       sync.Mutex
	verdicts map[string][]Status
}

func (v *scripted) suite() *Suite {
	return &Suite{Before: func(c *Check) error {
		v.mu.Lock()
		defer v.mu.Unlock()
		status := v.verdicts[c.ID][0]
		v.verdicts[c.ID] = v.verdicts[c.ID][1:]
		return Outcome(status, "", "as written down")
	}}
}

// TestUndecidedIsRunAgainAlone: where calls disturb each other, what was undecided
// beside them is run once more; else it stays as it is, and so does what the end of the
// run leaves open.
func TestUndecidedIsRunAgainAlone(t *testing.T) {
	for name, c := range map[string]struct {
		unsteady, undecided, want []Status
	}{
		"disturbed, found alone":  {[]Status{Fail, Pass}, []Status{Inconclusive, Fail}, []Status{Flaky, Fail}},
		"disturbed, holds alone":  {[]Status{Fail, Pass}, []Status{Inconclusive, Pass}, []Status{Flaky, Pass}},
		"disturbed, open for all": {[]Status{Fail, Pass}, []Status{Inconclusive, Inconclusive}, []Status{Flaky, Inconclusive}},
		"at the end of the run":   {[]Status{Fail, Pass}, []Status{Inconclusive, NotRun}, []Status{Flaky, Inconclusive}},
		"a failure is steady":     {[]Status{Fail, Fail}, []Status{Inconclusive}, []Status{Fail, Inconclusive}},
		"nothing disturbs":        {[]Status{Pass}, []Status{Inconclusive}, []Status{Pass, Inconclusive}},
	} {
		t.Run(name, func(t *testing.T) {
			checks := []*Check{{ID: "AAA-001", Level: Must, Write: true}, {ID: "BBB-001", Level: Must, Write: true}}
			var last Progress
			runs := &scripted{verdicts: map[string][]Status{"AAA-001": c.unsteady, "BBB-001": c.undecided}}
			sched := newScheduler(runs.suite(), &Options{Profile: ProfileStrict, Progress: func(p Progress) { last = p }}, checks)
			sched.run(t.Context())
			require.Equal(t, c.want, []Status{sched.results["AAA-001"].Status, sched.results["BBB-001"].Status})
			require.Empty(t, runs.verdicts["AAA-001"])
			require.Empty(t, runs.verdicts["BBB-001"])
			require.Equal(t, 2, last.Done)
		})
	}
}
