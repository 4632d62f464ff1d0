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

func names(t *testing.T, dir string) []string {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

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
	require.Equal(t, []string{"r.json"}, names(t, dir))
}
