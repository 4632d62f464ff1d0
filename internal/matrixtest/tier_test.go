package matrixtest

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryDay: long tests are left out in make test and without a tier, unless tests
// are requested by their names.
func TestEveryDay(t *testing.T) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.String("run", "", "")
	run := flags.Lookup("run")
	require.True(t, everyDay("", run))
	require.True(t, everyDay("test", run))
	require.True(t, everyDay("test", nil), "a program without the flags of tests")
	require.False(t, everyDay("race", run))
	require.False(t, everyDay("matrix", run))
	require.NoError(t, flags.Set("run", "^TestThis$"))
	require.False(t, everyDay("", run))
	require.False(t, everyDay("test", run))
}

func TestRequired(t *testing.T) {
	require.False(t, required("", "node"))
	require.True(t, required("curl node", "node"))
	require.False(t, required("nodejs", "node"))
	require.True(t, required("all", "node"))
}

// TestSteadily: a wanted verdict is judged once, any other once more, and not
// for ever.
func TestSteadily(t *testing.T) {
	defer again.Store(0)
	judged := 0
	after := func(n int) func() bool {
		judged = 0
		return func() bool { judged++; return judged > n }
	}
	is := func(verdict bool) bool { return verdict }
	require.True(t, Steadily(t, after(0), is))
	require.Equal(t, 1, judged)
	for range mostAgain {
		require.True(t, Steadily(t, after(1), is))
		require.Equal(t, 2, judged)
	}
	require.False(t, Steadily(t, after(1), is), "no busy machine disturbs as often as that")
	require.Equal(t, 1, judged)
	again.Store(0)
	require.False(t, Steadily(t, after(2), is), "a wrong verdict is wrong both times")
	require.Equal(t, 2, judged)
}
