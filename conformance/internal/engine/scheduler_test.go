package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// confirmed is what becomes of a failure by its second run.
func confirmed(t *testing.T, first *Result) conformance.Status {
	t.Helper()
	passes := &scripted{verdicts: map[string][]conformance.Status{"AAA-001": {conformance.Pass}}}
	sched := newScheduler(passes.suite(), &conformance.Options{Profile: conformance.ProfileV1}, []*conformance.Check{{ID: "AAA-001", Level: conformance.Must, Authority: []conformance.Authority{conformance.AuthoritySpec}}})
	c := sched.checks[0]
	sched.pending, sched.active = nil, 1
	sched.results[c.ID+" first"] = first
	sched.confirm(context.Background(), c)
	require.Equal(t, 2, sched.results[c.ID].Attempts)
	return sched.results[c.ID].Status
}

func TestALostConnectionMayBeAcquitted(t *testing.T) {
	lost := conformance.Exchange{Kind: string(wire.KindReset)}
	answered := conformance.Exchange{Kind: string(wire.KindReset), Response: &wire.Response{Status: 200}}
	late := conformance.Exchange{Kind: string(wire.KindTimeout)}
	cases := []struct {
		name      string
		exchanges [][]conformance.Exchange // by finding
		want      conformance.Status
	}{
		{"a reset", [][]conformance.Exchange{{lost}}, conformance.Warn},
		{"two resets", [][]conformance.Exchange{{lost}, {lost}}, conformance.Warn},
		{"a reset after the reply began", [][]conformance.Exchange{{answered}}, conformance.Flaky},
		{"a reset beside another finding", [][]conformance.Exchange{{lost}, {late}}, conformance.Flaky},
		{"no reply in time", [][]conformance.Exchange{{late}}, conformance.Flaky},
		{"no finding", nil, conformance.Flaky},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			first := &Result{CheckResult: conformance.CheckResult{ID: "AAA-001", Status: conformance.Fail, Findings: []conformance.Finding{}}}
			for _, x := range c.exchanges {
				first.Findings = append(first.Findings, conformance.Finding{Exchanges: x})
			}
			require.Equal(t, c.want, confirmed(t, first))
		})
	}
}

// TestASkippedNeedDoesNotBlock: what was not selected cannot hold others back.
func TestASkippedNeedDoesNotBlock(t *testing.T) {
	sched := newScheduler(&Suite{}, &conformance.Options{}, []*conformance.Check{{ID: "BBB-001", Needs: []string{"AAA-001"}}, {ID: "CCC-001", Needs: []string{"BBB-001"}}})
	require.True(t, sched.ready(sched.checks[0]))
	require.False(t, sched.ready(sched.checks[1]))
}

func TestOrderOfChecks(t *testing.T) {
	plain, alone, needy := &conformance.Check{ID: "AAA-001"}, &conformance.Check{ID: "BBB-001", Conditions: conformance.Conditions{Alone: true}}, &conformance.Check{ID: "CCC-001", Needs: []string{"AAA-001"}}
	sched := newScheduler(&Suite{}, &conformance.Options{}, []*conformance.Check{alone, plain, needy})
	want := func(c *conformance.Check, kind turn) {
		t.Helper()
		got, how := sched.next(2)
		require.Equal(t, c, got)
		require.Equal(t, kind, how)
	}
	want(plain, runBeside)
	want(nil, mustWait) // needy builds on plain, alone waits for an empty house
	sched.active, sched.results["AAA-001"] = 0, shown(conformance.Pass)
	want(needy, runBeside)
	want(nil, mustWait)
	sched.active, sched.unconfirmed = 0, []*conformance.Check{plain}
	want(plain, confirmAlone) // a second run is alone too
	want(nil, mustWait)
	sched.active = 0
	want(alone, runAlone)
	want(nil, mustWait)
	sched.active = 0
	want(nil, nothingLeft)
}

// TestWaitersHaveRoomOfTheirOwn: checks that mostly wait run in parallel, also those that would
// else run alone, and take no place of the others.
func TestWaitersHaveRoomOfTheirOwn(t *testing.T) {
	var checks []*conformance.Check
	for n := range parallelWaits + 1 {
		checks = append(checks, &conformance.Check{ID: fmt.Sprintf("AAA-%03d", n), Conditions: conformance.Conditions{Clock: true, Alone: true}})
	}
	plain, alone := &conformance.Check{ID: "BBB-001"}, &conformance.Check{ID: "BBB-002", Conditions: conformance.Conditions{Alone: true}}
	sched := newScheduler(&Suite{}, &conformance.Options{}, append([]*conformance.Check{plain, alone}, checks...))
	sched.suite.Waits = func(c *conformance.Check) bool { return c.Clock }
	want := func(c *conformance.Check, kind turn) {
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

	sched = newScheduler(&Suite{}, &conformance.Options{Serial: true}, checks[:2])
	sched.suite.Waits = func(c *conformance.Check) bool { return c.Clock }
	want(checks[0], runAlone)
	want(nil, mustWait) // one at a time is one at a time
}

func TestACircleOfNeedsIsAFaultOfTheCatalogue(t *testing.T) {
	sched := newScheduler(&Suite{}, &conformance.Options{}, []*conformance.Check{{ID: "AAA-001", Needs: []string{"BBB-001"}}, {ID: "BBB-001", Needs: []string{"AAA-001"}}})
	require.Panics(t, func() { sched.next(1) })
}

func TestMergeOfObjects(t *testing.T) {
	c := &conformance.Check{ID: "AAA-001"}
	part := func(s conformance.Status) *Result {
		return &Result{CheckResult: conformance.CheckResult{ID: c.ID, Status: s, Evidence: "seen"}}
	}
	cases := []struct {
		parts []conformance.Status
		want  conformance.Status
	}{
		{[]conformance.Status{conformance.Pass, conformance.Fail}, conformance.Fail},
		{[]conformance.Status{conformance.HarnessError, conformance.Fail}, conformance.Fail},
		{[]conformance.Status{conformance.Pass, conformance.HarnessError, conformance.Inconclusive}, conformance.HarnessError},
		{[]conformance.Status{conformance.Pass, conformance.Inconclusive}, conformance.Inconclusive},
		{[]conformance.Status{conformance.NotRun, conformance.Inconclusive}, conformance.Inconclusive},
		{[]conformance.Status{conformance.Pass, conformance.NotRun}, conformance.NotRun}, // a pass must not hide what was not judged
		{[]conformance.Status{conformance.NotApplicable, conformance.NotRun}, conformance.NotRun},
		{[]conformance.Status{conformance.NotApplicable, conformance.Pass}, conformance.Pass},
		{[]conformance.Status{conformance.Pass, conformance.Pass}, conformance.Pass},
		{[]conformance.Status{conformance.NotApplicable}, conformance.NotApplicable},
	}
	for _, x := range cases {
		var parts []*Result
		for _, s := range x.parts {
			parts = append(parts, part(s))
		}
		got := merge(c, parts)
		require.Equal(t, x.want, got.Status, "%v", x.parts)
	}
	none := merge(c, nil)
	require.Equal(t, conformance.NotRun, none.Status)
	require.Equal(t, "--object", none.Decider)
}

// scripted is a suite whose verdicts are written down: those of the runs of each check.
type scripted struct {
	mu       sync.Mutex
	verdicts map[string][]conformance.Status
}

func (v *scripted) suite() *Suite {
	return &Suite{Stages: Stages{Before: func(c *conformance.Check) error {
		v.mu.Lock()
		defer v.mu.Unlock()
		status := v.verdicts[c.ID][0]
		v.verdicts[c.ID] = v.verdicts[c.ID][1:]
		return Outcome(status, "", "as written down")
	}}}
}

// TestUndecidedIsRunAgainAlone: where calls disturb each other, a check that was undecided in
// parallel runs once more; else it stays as it is, and so does what the end of the run leaves open.
func TestUndecidedIsRunAgainAlone(t *testing.T) {
	for name, c := range map[string]struct {
		unsteady, undecided, want []conformance.Status
	}{
		"disturbed, found alone":  {[]conformance.Status{conformance.Fail, conformance.Pass}, []conformance.Status{conformance.Inconclusive, conformance.Fail}, []conformance.Status{conformance.Flaky, conformance.Fail}},
		"disturbed, holds alone":  {[]conformance.Status{conformance.Fail, conformance.Pass}, []conformance.Status{conformance.Inconclusive, conformance.Pass}, []conformance.Status{conformance.Flaky, conformance.Pass}},
		"disturbed, open for all": {[]conformance.Status{conformance.Fail, conformance.Pass}, []conformance.Status{conformance.Inconclusive, conformance.Inconclusive}, []conformance.Status{conformance.Flaky, conformance.Inconclusive}},
		"at the end of the run":   {[]conformance.Status{conformance.Fail, conformance.Pass}, []conformance.Status{conformance.Inconclusive, conformance.NotRun}, []conformance.Status{conformance.Flaky, conformance.Inconclusive}},
		"a failure is steady":     {[]conformance.Status{conformance.Fail, conformance.Fail}, []conformance.Status{conformance.Inconclusive}, []conformance.Status{conformance.Fail, conformance.Inconclusive}},
		"nothing disturbs":        {[]conformance.Status{conformance.Pass}, []conformance.Status{conformance.Inconclusive}, []conformance.Status{conformance.Pass, conformance.Inconclusive}},
	} {
		t.Run(name, func(t *testing.T) {
			checks := []*conformance.Check{{ID: "AAA-001", Level: conformance.Must, Conditions: conformance.Conditions{Write: true}}, {ID: "BBB-001", Level: conformance.Must, Conditions: conformance.Conditions{Write: true}}}
			var last conformance.Progress
			runs := &scripted{verdicts: map[string][]conformance.Status{"AAA-001": c.unsteady, "BBB-001": c.undecided}}
			sched := newScheduler(runs.suite(), &conformance.Options{Profile: conformance.ProfileStrict, Progress: func(p conformance.Progress) { last = p }}, checks)
			sched.run(t.Context())
			require.Equal(t, c.want, []conformance.Status{sched.results["AAA-001"].Status, sched.results["BBB-001"].Status})
			require.Empty(t, runs.verdicts["AAA-001"])
			require.Empty(t, runs.verdicts["BBB-001"])
			require.Equal(t, 2, last.Done)
		})
	}
}

// TestAWarningExplainsNoLoss: a lost record fails the run, unless another failed check explains it.
func TestAWarningExplainsNoLoss(t *testing.T) {
	for by, want := range map[conformance.Status]conformance.Status{conformance.Warn: conformance.Fail, conformance.Fail: conformance.NotRun} {
		sched := newScheduler(&Suite{}, &conformance.Options{}, []*conformance.Check{{ID: "PAR-003"}, {ID: "DUR-006"}})
		sched.results["PAR-003"] = shown(by)
		sched.results["DUR-006"] = shown(conformance.Fail)
		sched.results["DUR-006"].Symptoms = []string{"changed"}
		sched.foldLost()
		require.Equal(t, want, sched.results["DUR-006"].Status, by)
	}
}

// TestALossHasTheCauseOfItsCheck: the check about such records, which only warns, lends its
// cause to each finding of a loss and is folded under the run.
func TestALossHasTheCauseOfItsCheck(t *testing.T) {
	sched := newScheduler(&Suite{}, &conformance.Options{}, []*conformance.Check{{ID: "DAT-002"}, {ID: "DUR-006"}})
	warned, lost := shown(conformance.Warn), shown(conformance.Fail)
	warned.Symptoms, warned.Findings = []string{lostSymptom}, []conformance.Finding{{Cause: "a text that cannot be stored"}}
	lost.Symptoms = []string{lostSymptom, "changed"} // each once, however many findings there are
	for _, symptom := range []string{lostSymptom, lostSymptom, "changed"} {
		lost.Findings, lost.marks = append(lost.Findings, conformance.Finding{Cause: "general"}), append(lost.marks, mark{symptom: symptom})
	}
	sched.results["DAT-002"], sched.results["DUR-006"] = warned, lost
	sched.foldLost()
	require.Equal(t, conformance.NotRun, sched.results["DAT-002"].Status)
	var causes []string
	for _, f := range lost.Findings {
		causes = append(causes, f.Cause)
	}
	require.Equal(t, []string{"a text that cannot be stored", "a text that cannot be stored", "general"}, causes)
}

// TestNotesOfSeveralObjects: a note about every object appears once, and one about some of them
// with their names.
func TestNotesOfSeveralObjects(t *testing.T) {
	part := func(status conformance.Status, notes ...string) *Result {
		return &Result{CheckResult: conformance.CheckResult{Status: status, Notes: notes}}
	}
	objects := []string{"contact", "order", "event"}
	require.Equal(t, []string{"no success carries a message"},
		notesOf(objects, []*Result{part(conformance.Pass, "no success carries a message"), part(conformance.Pass, "no success carries a message"), part(conformance.NotApplicable)}))
	require.Equal(t, []string{"contact, event: the last arrival counts", "order: the newer values stay", "the hook shows no record of order"},
		notesOf(objects, []*Result{
			part(conformance.Pass, "the last arrival counts"),
			part(conformance.Pass, "the newer values stay", "the hook shows no record of order"),
			part(conformance.Pass, "the last arrival counts"),
		}))
	require.Equal(t, []string{"the newer values stay"}, notesOf(objects[:1], []*Result{part(conformance.Pass, "the newer values stay")}))
}
