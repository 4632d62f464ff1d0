package zoo_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/matrixtest"
)

var update = flag.Bool("update", false, "write docs/evidence/zoo.md")

// broken are the statuses of a check that reports a broken rule.
var broken = []conformance.Status{conformance.Fail, conformance.Flaky}

// TestZoo judges every mistake and every habit, without and with read-back, and
// servers with two mistakes; all at once, since most of a run of a slow server is
// waiting. A sample is judged with read-back.
func TestZoo(t *testing.T) {
	matrixtest.NotEveryDay(t)
	matrixtest.NotShort(t)
	t.Run("of", func(t *testing.T) {
		for name, judged := range map[string]func(*testing.T){"base": base, "habit": habits, "mistake": mistakes, "pair": pairs} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				judged(t)
			})
		}
	})
	if !matrixtest.Whole() || matrixtest.Named() {
		return
	}
	t.Log(results.shares())
	if !*update {
		results.requireNoStale(t)
	}
	both, all := results.bothFound()
	require.Equal(t, 45, all)
	require.GreaterOrEqual(t, float64(both)/float64(all), 0.95, "pairs of which both mistakes are found in one run: %d of %d: %s", both, all, results.hidden())
}

// base judges the servers without a mistake: nothing is found.
func base(t *testing.T) {
	for _, language := range Languages() {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			inBothWays(t, language, "none", Setting{Objects: Objects(language), Large: true}, func(t *testing.T, _ bool, r *conformance.Report) {
				require.Empty(t, failed(r, append(broken, conformance.Warn)...), explain(r, append(broken, conformance.Warn)...))
				require.Zero(t, r.Counts[conformance.HarnessError], explain(r, conformance.HarnessError))
				require.Zero(t, r.ExitStatus, r.Summary)
			})
		})
	}
}

// habits judges endpoints that are right and unusual: nothing fails.
func habits(t *testing.T) {
	runs := habitCells(t)
	for i, h := range Habits() {
		if !runs[i] {
			continue
		}
		t.Run(h.Language+"/"+h.Name, func(t *testing.T) {
			t.Parallel()
			inBothWays(t, h.Language, h.Name, h.Setting, func(t *testing.T, readback bool, r *conformance.Report) {
				results.habit(h, readback, r)
				t.Logf("FAIL %v WARN %v: %s", failed(r, broken...), failed(r, conformance.Warn), r.Summary)
				require.Empty(t, failed(r, append(broken, conformance.HarnessError)...), explain(r, append(broken, conformance.HarnessError)...))
				require.Subset(t, h.Warns, failed(r, conformance.Warn), explain(r, conformance.Warn))
			})
		})
	}
}

// mistakes judges servers with one mistake each: a check whose sentence is about it
// finds it, and none that has nothing to do with it.
func mistakes(t *testing.T) {
	all := alternating(Mistakes())
	runs := mistakeCells(t, all)
	misses, err := readMisses()
	require.NoError(t, err)
	for i, m := range all {
		if !runs[i] {
			continue
		}
		t.Run(m.Language+"/"+m.Name, func(t *testing.T) {
			t.Parallel()
			inBothWays(t, m.Language, m.Name, m.Setting, func(t *testing.T, readback bool, r *conformance.Report) {
				o := found(r, m)
				for again := uint64(8); again < 10 && readback && m.Race && o.status == ""; again++ {
					s := m.Setting
					s.Seed = again
					r = judge(t, m.Language, m.Name, s, readback)
					o = found(r, m)
				}
				if readback {
					o.missed = missed(r, m, o)
				}
				results.mistake(m, readback, o)
				t.Logf("%s; FAIL %v WARN %v", o, failed(r, broken...), failed(r, conformance.Warn))
				t.Logf("cause %s (observed: %t): %s; seen: %s", o.cause(m), o.first.Observed, o.first.Cause, o.first.Actual)
				known := misses[keyOf(m.Language, m.Name)]
				if known != "" || *update {
					t.Logf("known miss: %s; printed today: %s", known, o.missed)
					return
				}
				all := explain(r, append(broken, conformance.Warn, conformance.HarnessError)...)
				require.Empty(t, o.missed, "%s\n%s", m.Sentence, all)
				for _, id := range failed(r, conformance.Fail) {
					require.False(t, matches(m.Never, id), "%s has nothing to do with it: %s\n%s", id, m.Sentence, all)
				}
			})
		})
	}
}

// TestKeysAreProposed: where the endpoint takes only keys of 32 bits, and the author gives no
// range, nothing fails, and the run reports what it needs.
func TestKeysAreProposed(t *testing.T) {
	matrixtest.Long(t)
	r := judge(t, Python, "keys-of-32-bits", Setting{Objects: Objects(Python)[1:]}, true)
	require.Empty(t, failed(r, append(broken, conformance.HarnessError)...), explain(r, broken...))
	require.Equal(t, 3, r.ExitStatus, r.Summary)
	require.Equal(t, "keys", r.Problems[0].Kind)
	require.Contains(t, r.Problems[0].Message, "out of range for type integer")
	require.Contains(t, r.Problems[0].Fix, "--key-range FROM:TO")
}

// alternating orders mistakes by turns of the languages: each language has one
// process, which is at work all the time that way.
func alternating(all []Mistake) []Mistake {
	turn := map[string]int{}
	turns := make(map[string]int, len(all))
	for _, m := range all {
		turn[m.Language]++
		turns[keyOf(m.Language, m.Name)] = turn[m.Language]
	}
	slices.SortStableFunc(all, func(a, b Mistake) int {
		return turns[keyOf(a.Language, a.Name)] - turns[keyOf(b.Language, b.Name)]
	})
	return all
}

// pairs judges servers with two mistakes: in one run both are found.
func pairs(t *testing.T) {
	common := Common()
	require.Len(t, common, 10)
	var cells []matrixtest.Cell
	for i, first := range common {
		for _, second := range common[i+1:] {
			cells = append(cells, matrixtest.Cell{Name: first.Name + "+" + second.Name})
		}
	}
	runs, n := matrixtest.Sample(t, sharedCode, cells), -1
	needProgram(t, Node)
	for i, first := range common {
		for _, second := range common[i+1:] {
			if n++; !runs[n] {
				continue
			}
			t.Run(first.Name+"+"+second.Name, func(t *testing.T) {
				t.Parallel()
				s := Setting{Objects: Objects(Node)}
				r := judge(t, Node, first.Name+"+"+second.Name, s, true)
				require.Zero(t, r.Counts[conformance.HarnessError], explain(r, conformance.HarnessError))
				one, two := found(r, first), found(r, second)
				results.pair(first, second, one, two)
				t.Logf("%s | %s; FAIL %v WARN %v", one, two, failed(r, broken...), failed(r, conformance.Warn))
			})
		}
	}
}

// inBothWays judges without and with read-back; a sample with it only.
func inBothWays(t *testing.T, language, name string, s Setting, look func(*testing.T, bool, *conformance.Report)) {
	t.Run("readback", func(t *testing.T) {
		t.Parallel()
		look(t, true, judge(t, language, name, s, true))
	})
	if !matrixtest.Whole() && !matrixtest.Named() {
		return
	}
	t.Run("blind", func(t *testing.T) {
		t.Parallel()
		look(t, false, judge(t, language, name, s, false))
	})
}
