package sqlite

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOwned(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	o, err := own(dir, "me")
	require.NoError(t, err)
	require.True(t, owned(dir))
	require.False(t, owned(other))
	require.NoError(t, o.release())
	require.False(t, owned(dir))
}
