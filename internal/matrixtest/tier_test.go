package matrixtest

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryDay: long tests are left out in make test and without a tier, unless tests
// are asked for by their names.
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
