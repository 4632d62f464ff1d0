package syncs

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
)

// newProgram is the program with these commands alone.
func newProgram() *cobra.Command {
	root := &cobra.Command{Use: "destkit", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(New(), NewExplainRecord())
	return root
}

// runHere runs the program in this process.
func runHere(ctx context.Context, args ...string) (status int, out, screen string) {
	var stdout, stderr bytes.Buffer
	root := newProgram()
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	status = command.Execute(ctx, root, args)
	return status, stdout.String(), stderr.String()
}

// unset takes a variable away for one test.
func unset(t *testing.T, name string) {
	t.Setenv(name, "") // puts the old value back at the end
	require.NoError(t, os.Unsetenv(name))
}
