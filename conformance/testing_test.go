package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTest judges inside a Go test: every check is a subtest, what was not
// decided is skipped.
func TestTest(t *testing.T) {
	e := newSmall()
	opts := writing(e)
	opts.Select = []string{"OBJ-*", "SEM-001"}
	r := Test(t, Target{Handler: e}, opts)
	require.Equal(t, Pass, resultOf(t, r, "SEM-001").Status)
	require.Empty(t, e.keys("contact"))

	r = Test(t, Target{Handler: e}, Options{Select: []string{"SEM-001"}})
	require.Equal(t, NotRun, resultOf(t, r, "SEM-001").Status)
}

func TestDescribeNamesExpectedActualAndFix(t *testing.T) {
	c := CheckResult{Title: "results", Findings: []Finding{{Expected: "a result", Actual: "none", Fix: "send one"}, {Expected: "two", Actual: "one"}}}
	require.Equal(t, "results\n  expected a result\n  actual   none\n  fix      send one\n  expected two\n  actual   one", describe(c))
}
