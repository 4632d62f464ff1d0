package store

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKindsOfUnfit: what asks for another place or file is told from what does not.
func TestKindsOfUnfit(t *testing.T) {
	for _, kind := range []error{ErrNewer, ErrNotACopy} {
		err := fmt.Errorf("open it: %w", kind)
		require.ErrorIs(t, err, ErrUnfit)
		require.ErrorIs(t, err, kind)
	}
	require.NotErrorIs(t, ErrNewer, ErrNotACopy)
	for _, other := range []error{ErrFull, ErrDisk, ErrDamaged, ErrWrongKey, ErrHasData} {
		require.NotErrorIs(t, other, ErrUnfit)
	}
	dir := t.TempDir()
	s, err := Open(t.Context(), Options{Dir: dir, MasterKey: make([]byte, 32)})
	require.NoError(t, err)
	defer s.Close()
	require.ErrorIs(t, Backup(t.Context(), dir, filepath.Join(dir, "backup.db")), ErrUnfit, "within the directory it copies")
}
