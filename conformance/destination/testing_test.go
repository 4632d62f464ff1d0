package destination

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
)

// TestTest judges inside a Go test: every check is a subtest, undecided ones are skipped.
func TestTest(t *testing.T) {
	e := newSmall()
	opts := writing(e)
	opts.Select = []string{"OBJ-*", "SEM-001"}
	r := Test(t, Target{Handler: e}, opts)
	require.Equal(t, conformance.Pass, resultOf(t, r, "SEM-001").Status)
	require.Empty(t, e.keys("contact"))

	r = Test(t, Target{Handler: e}, conformance.Options{Select: []string{"SEM-001"}})
	require.Equal(t, conformance.NotRun, resultOf(t, r, "SEM-001").Status)
}

func TestDescribeNamesExpectedActualAndFix(t *testing.T) {
	c := conformance.CheckResult{Title: "results", Findings: []conformance.Finding{{Expected: "a result", Actual: "none", Fix: "send one"}, {Expected: "two", Actual: "one"}}}
	require.Equal(t, "results\n  expected a result\n  actual   none\n  fix      send one\n  expected two\n  actual   one", describe(c))
}
