package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/internal/control"
	"github.com/destkit/destkit/server/testdata/violation"
)

// fidelityMutations keeps what became of each claim that was broken.
const fidelityMutations = "testdata/mutations.json"

// mutation is a row of the table under what contradicts its sentence: violations, and
// alterations such as "/syncs: data.label". It is proven when its tests have failed under
// each of them.
type mutation struct {
	BrokenBy []string `json:"broken_by"`
	Survived []string `json:"survived,omitempty"` // those under which its tests passed
}

// brokenOnPurpose are the violations under which this process tests: those that
// TestFidelityMutations asks of the process it starts, and otherwise none.
func brokenOnPurpose() []string {
	all := strings.FieldsFunc(os.Getenv("DESTKIT_BREAK"), func(r rune) bool { return r == ',' })
	return slices.DeleteFunc(all, isAlteration)
}

// TestFidelityMutations runs the tests of each claim in services that break it. A
// claim whose tests pass all the same is not proven by them.
func TestFidelityMutations(t *testing.T) {
	if os.Getenv("DESTKIT_MUTATIONS") != "1" {
		t.Skip("breaks each claim of the fidelity table, which takes minutes: run make mutations")
	}
	rows, err := control.Fidelity()
	require.NoError(t, err)
	proofs := proofsIn(t, ".")
	program, err := os.Executable()
	require.NoError(t, err)

	passOnTheirOwn(t, program, proofs)
	results := keptMutations(t, rows)
	for id, one := range results {
		results[id] = mutation{BrokenBy: one.BrokenBy}
	}
	for at, failed := range tried(t, program, results, proofs) {
		if !failed {
			one := results[at.row]
			one.Survived = append(one.Survived, at.violation)
			slices.Sort(one.Survived)
			results[at.row] = one
		}
	}
	judged := judgedViolations(t)
	fmt.Println(mutationScore(rows, results, judged))
	for _, row := range rows {
		if left := results[row.ID].unseen(judged); len(left) > 0 {
			fmt.Printf("%s survives %s: %s (%s)\n", row.ID, strings.Join(left, ", "), row.Rule, strings.Join(proofs[row.ID], ", "))
		}
	}
	if *updateLedger {
		text, err := json.MarshalIndent(results, "", "\t")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(fidelityMutations, append(text, '\n'), 0o644))
		require.NoError(t, os.WriteFile(fidelityPage, fidelityTable(rows, proofs, results, judged), 0o644))
	}
}

// passOnTheirOwn runs every test of the table without violations: one that fails
// or is skipped there would tell nothing of a claim.
func passOnTheirOwn(t *testing.T, program string, proofs map[string][]string) {
	t.Helper()
	var all []string
	for _, tests := range proofs {
		all = append(all, tests...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	text, err := testsUnder(t, program, "", all, "-test.v")
	require.NoError(t, err, text)
	for _, name := range all {
		require.Contains(t, text, "--- PASS: "+name+" ", "without violations")
	}
}

// trial is one claim under one violation.
type trial struct{ row, violation string }

// tried tells of each claim under each of its violations whether its tests failed;
// two run at a time.
func tried(t *testing.T, program string, mutations map[string]mutation, proofs map[string][]string) map[trial]bool {
	t.Helper()
	var (
		trials  = make(chan trial)
		mu      sync.Mutex
		failed  = map[trial]bool{}
		broke   []string
		workers sync.WaitGroup
	)
	for range 2 {
		workers.Go(func() {
			for one := range trials {
				text, err := testsUnder(t, program, one.violation, proofs[one.row])
				mu.Lock()
				failed[one] = haveFailed(text, err)
				if err != nil && !failed[one] {
					broke = append(broke, fmt.Sprintf("%s under %s: %v\n%s", one.row, one.violation, err, text))
				}
				mu.Unlock()
			}
		})
	}
	for row, one := range mutations {
		for _, violation := range one.BrokenBy {
			trials <- trial{row, violation}
		}
	}
	close(trials)
	workers.Wait()
	for _, text := range broke {
		t.Log("the tests broke off, which counts as survived: ", foreign.Clip(text, 2000))
	}
	return failed
}

// haveFailed tells that tests have found something wrong: the process ends with 1,
// or it ends because they wait for what never comes. One that panics has not held
// the claim against what was answered.
func haveFailed(text string, err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	return exit.ExitCode() == 1 && strings.Contains(text, "--- FAIL: ") || strings.Contains(text, "panic: test timed out after ")
}

// testsUnder runs tests in a process of their own whose worlds have a violation,
// none where that is empty.
func testsUnder(t *testing.T, program, violation string, tests []string, flags ...string) (string, error) {
	t.Helper()
	args := append([]string{"-test.run", "^(" + strings.Join(tests, "|") + ")$", "-test.count=1", "-test.timeout=3m"}, flags...)
	run := exec.CommandContext(t.Context(), program, args...)
	run.Env = append(os.Environ(), "DESTKIT_MUTATIONS=", "DESTKIT_BREAK="+violation)
	text, err := run.CombinedOutput()
	return string(text), err
}

// keptMutations are what breaks each claim, and the results of the last run.
func keptMutations(t *testing.T, rows []control.FidelityRow) map[string]mutation {
	t.Helper()
	text, err := os.ReadFile(fidelityMutations)
	require.NoError(t, err)
	results := map[string]mutation{}
	require.NoError(t, json.Unmarshal(text, &results))
	for id, one := range results {
		require.True(t, slices.ContainsFunc(rows, func(row control.FidelityRow) bool { return row.ID == id }), "the table has no row %s", id)
		require.NotEmpty(t, one.BrokenBy, id)
		for _, text := range one.BrokenBy {
			if isAlteration(text) {
				_, err := readAlteration(text)
				require.NoError(t, err, id)
			} else {
				require.NoError(t, violation.Check([]string{text}), id)
			}
		}
	}
	return results
}

// mutationScore says how many claims are proven and by what, and what keeps the
// others from it.
func mutationScore(rows []control.FidelityRow, results map[string]mutation, judged map[string]bool) string {
	proven, byJudge, survived := 0, 0, 0
	bare := map[string]int{} // rows without a mutation by state
	for _, row := range rows {
		switch one, broken := results[row.ID]; {
		case !broken:
			bare[row.State]++
		case len(one.Survived) == 0:
			proven++
		case len(one.unseen(judged)) == 0:
			byJudge++
		default:
			survived++
		}
	}
	var states []string
	for _, state := range control.FidelityStates {
		states = append(states, fmt.Sprintf("%d %s", bare[state], state))
	}
	all := proven + byJudge
	return fmt.Sprintf("%d of %d claims have something that fails when they are broken (%d %%): for %d it is their\n"+
		"tests, for %d a check of `destkit conform service`, which `make test` runs against this service.\n"+
		"For %d nothing fails. %d have no mutation: %s.",
		all, len(rows), 100*all/len(rows), proven, byJudge, survived, len(rows)-all-survived, strings.Join(states, ", "))
}

// unseen are the violations under which neither the tests of a claim fail nor the
// judge.
func (m mutation) unseen(judged map[string]bool) (left []string) {
	for _, violation := range m.Survived {
		if !judged[violation] {
			left = append(left, violation)
		}
	}
	return left
}

// brokenOnce is the cell of a row in the column of the same name.
func brokenOnce(one mutation, judged map[string]bool) string {
	left := one.unseen(judged)
	switch {
	case len(one.BrokenBy) == 0:
		return "no mutation"
	case len(one.Survived) == 0:
		return "proven"
	case len(left) > 0:
		return "survived: `" + strings.Join(left, "`, `") + "`"
	default:
		return "proven by the judge under " + strings.Join(one.Survived, ", ")
	}
}

// judgedViolations are those under which destkit conform service fails: the rows
// of its kill matrix, which make matrix measures and compares.
func judgedViolations(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../docs/evidence/service-kill-matrix.md")
	require.NoError(t, err)
	judged := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) > 4 && strings.TrimSpace(cells[3]) == "FAIL" {
			judged[strings.TrimSpace(cells[1])] = true
		}
	}
	require.NotEmpty(t, judged)
	return judged
}
