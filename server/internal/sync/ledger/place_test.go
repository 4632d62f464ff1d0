package ledger

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// place is where the books of a test are: a new ledger with these options finds
// them, as the next process does.
type place struct {
	name  string
	empty func(t testing.TB) Options
}

var (
	inMemory = place{"memory", func(testing.TB) Options { return Options{} }}
	onDisk   = place{"disk", func(t testing.TB) Options { return Options{Dir: t.TempDir()} }}
)

// everywhere runs a test in every place.
func everywhere(t *testing.T, test func(t *testing.T, p place)) {
	for _, p := range []place{inMemory, onDisk} {
		t.Run(p.name, func(t *testing.T) { test(t, p) })
	}
}

func (p place) open(t testing.TB) *Ledger {
	t.Helper()
	l, err := Open(p.empty(t))
	require.NoError(t, err)
	return l
}

// contentOf gives the bytes of a file; change puts others in their place.
func contentOf(t testing.TB, s *Sync, name string) []byte {
	t.Helper()
	f, err := s.files.open(name)
	require.NoError(t, err)
	defer f.Close()
	size, err := f.size()
	require.NoError(t, err)
	data, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	require.NoError(t, err)
	return data
}

func change(t testing.TB, s *Sync, name string, data []byte) {
	t.Helper()
	require.NoError(t, s.files.write(name, data))
}
