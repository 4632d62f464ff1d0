package serve

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

// ran is one command with all that it said.
func ran(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	var text bytes.Buffer
	root := newProgram()
	root.SetOut(&text)
	root.SetErr(&text)
	status = command.Execute(t.Context(), root, args)
	return status, text.String()
}

// TestDataIsAFolder: a file, and a folder below one, are refused before anything is made.
func TestDataIsAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("kept"), 0o600))
	for _, dir := range []string{file, filepath.Join(file, "below", "it")} {
		for _, args := range [][]string{{"serve", "--data", dir}, {"serve", "new-token", "--data", dir}, {"serve", "backup", "--data", dir, "--to", filepath.Join(t.TempDir(), "b")}} {
			status, said := ran(t, args...)
			require.Equal(t, exit.BadUsage, status, said)
			require.Contains(t, said, "--data "+dir+": "+file+" is a file; give a folder", args)
		}
	}
}

// TestDataThatMustNotBeRead: a folder without permission is one line that says so.
func TestDataThatMustNotBeRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if _, err := os.ReadDir(dir); err == nil {
		t.Skip("this user may read everything")
	}
	status, said := ran(t, "serve", "--data", dir)
	require.Equal(t, exit.BadUsage, status, said)
	require.Contains(t, said, "this user has no permission to read the folder")
}
