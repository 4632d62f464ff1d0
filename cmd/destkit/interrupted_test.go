package main

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

// TestStoppedWhileStarting: a signal that comes at once ends a command as one that
// comes later does.
func TestStoppedWhileStarting(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"serve": {[]string{"serve", "--addr", "127.0.0.1:0"}, exit.OK, ""},
		"demo":  {[]string{"demo", "--dir", t.TempDir()}, exit.NotTested, "destkit: interrupted\n"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var text bytes.Buffer
		root := newRoot()
		root.SetOut(&text)
		root.SetErr(&text)
		require.Equal(t, c.status, command.Execute(ctx, root, c.args), "%s: %s", name, &text)
		require.Contains(t, text.String(), c.says, name)
		require.NotContains(t, text.String(), "context canceled", name)
	}
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left, "nothing is left behind")
}
