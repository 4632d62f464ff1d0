package wholefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnErrorLeavesTheOldFile proves that an error on the way leaves the old file and no
// other, wherever it happens.
func TestAnErrorLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "r.json")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o644))
	err := Write(file, func(w io.Writer) error {
		_, err := io.WriteString(w, "half of")
		return errors.Join(err, fmt.Errorf("write: %w", syscall.ENOSPC))
	})
	require.ErrorContains(t, err, "the disk is full, the file was not written")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "old", string(b))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)

	// Without an error it is replaced, and its mode stays.
	require.NoError(t, os.Chmod(file, 0o600))
	require.NoError(t, Write(file, func(w io.Writer) error {
		_, err := io.WriteString(w, "new")
		return err
	}))
	b, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "new", string(b))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}
