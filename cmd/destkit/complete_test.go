package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlagsComplete: no flag is completed twice, and the program makes the completions
// when a shell asks. What they offer is in testdata/matrix/complete.txtar.
func TestFlagsComplete(t *testing.T) {
	var out strings.Builder
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs([]string{"__complete", "conform", "--profile", "s"})
	require.NoError(t, root.Execute())
	require.Contains(t, out.String(), "spec\n")
}
