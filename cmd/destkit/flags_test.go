package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/loads"
	"github.com/destkit/destkit/cmd/destkit/internal/serve"
)

// TestDefaultAddresses: the service and the simulated destination run together
// without a flag.
func TestDefaultAddresses(t *testing.T) {
	service, destination := serve.New().Flags().Lookup("addr"), newDestsim().Flags().Lookup("addr")
	require.Equal(t, "127.0.0.1:8080", service.DefValue)
	require.Equal(t, "127.0.0.1:8090", destination.DefValue)
	require.Equal(t, service.Shorthand, destination.Shorthand)
}

// TestListsTakeCommas: a list of names can be one value.
func TestListsTakeCommas(t *testing.T) {
	var j judgement
	cmd := conformCommand(&j)
	require.NoError(t, cmd.ParseFlags([]string{"--select", "RES-*,OBJ-001", "-s", "SEM-005", "--skip=A,B", "-o", "contact,order"}))
	require.Equal(t, []string{"RES-*", "OBJ-001", "SEM-005"}, j.options.Select)
	require.Equal(t, []string{"A", "B"}, j.options.Skip)
	require.Equal(t, []string{"contact", "order"}, j.options.Objects)
	for name, cmd := range map[string]*cobra.Command{"violate": newDestsim(), "allow-hosts": serve.New(), "fail-if": loads.New(settingKeys)} {
		require.Equal(t, "stringSlice", cmd.Flags().Lookup(name).Value.Type(), name)
	}
}

// TestFlagsComplete: no flag is completed twice, and the program makes the completions
// when a shell requests them. Their offers are in testdata/matrix/complete.txtar.
func TestFlagsComplete(t *testing.T) {
	var out strings.Builder
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs([]string{"__complete", "conform", "--profile", "s"})
	require.NoError(t, root.Execute())
	require.Contains(t, out.String(), "spec\n")
}
