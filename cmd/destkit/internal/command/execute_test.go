package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

func TestLongArgumentsAreClipped(t *testing.T) {
	var errs bytes.Buffer
	root := &cobra.Command{Use: "destkit", SilenceErrors: true, SilenceUsage: true, RunE: func(_ *cobra.Command, args []string) error {
		return exit.Usagef("unknown word %q\nsee the help", args[0])
	}, Args: cobra.ArbitraryArgs}
	root.SetErr(&errs)
	require.Equal(t, exit.BadUsage, Execute(t.Context(), root, []string{strings.Repeat("x", 70_000)}))
	require.Less(t, errs.Len(), 2100)
	require.Contains(t, errs.String(), "…\nsee the help")
}
