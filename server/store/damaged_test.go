package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDamagedDatabase: whatever a disk or an editor has done to the file, Open
// says so and leaves it as it is.
func TestDamagedDatabase(t *testing.T) {
	for name, spoil := range map[string]func(text []byte) []byte{
		"heading": func(text []byte) []byte { copy(text, "no database"); return text },
		"cut off": func(text []byte) []byte { return text[:10_000] },
		"a text":  func([]byte) []byte { return []byte("email,name\nada@example.com,Ada\n") },
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Dir: filepath.Join(t.TempDir(), "data"), MasterKey: make([]byte, 32)}
			s, err := Open(t.Context(), o)
			require.NoError(t, err)
			require.NoError(t, s.Close())
			file := filepath.Join(o.Dir, databaseFile)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			text = spoil(text)
			require.NoError(t, os.WriteFile(file, text, 0o600))
			_, err = Open(t.Context(), o)
			require.ErrorIs(t, err, ErrDamaged)
			kept, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, text, kept)
		})
	}
}
