package ledger

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMomentIsOfItsTime: what is appended, finished and begun after a moment is not in
// it, however late it is written; and the run of that time goes on where it is restored.
func TestMomentIsOfItsTime(t *testing.T) { everywhere(t, momentIsOfItsTime) }

func momentIsOfItsTime(t *testing.T, p place) {
	l, err := Open(p.empty(t))
	require.NoError(t, err)
	s := l.Sync(4)
	ran(t, s, 1, []Record{ack("a", 1)})
	r, err := s.Begin(2, Meta{})
	require.NoError(t, err)
	require.NoError(t, r.Append(Batch{Records: []Record{ack("b", 1)}}))
	still := l.Still()
	m, err := s.Moment()
	still()
	require.NoError(t, err)
	require.False(t, m.Empty())

	require.NoError(t, r.Append(Batch{Records: []Record{ack("c", 1)}}))
	require.NoError(t, r.Finish(Meta{}))
	ran(t, s, 3, []Record{ack("d", 1)})
	var kept bytes.Buffer
	require.NoError(t, m.Write(&kept))
	require.NoError(t, errors.Join(m.Close(), m.Close()))

	other, err := Open(Options{})
	require.NoError(t, err)
	restored := other.Sync(4)
	require.NoError(t, restored.Restore(bytes.NewReader(kept.Bytes())))
	require.Equal(t, []string{"a"}, keysOf(scan(t, restored)))
	again, err := restored.Begin(2, Meta{})
	require.NoError(t, err)
	require.True(t, again.Resumed())
	_, _, known := again.Last([]byte("b"))
	require.True(t, known, "it was durable")
	_, _, known = again.Last([]byte("c"))
	require.False(t, known, "it came later")
	require.NoError(t, again.Finish(Meta{}))
	require.Equal(t, []string{"a", "b"}, keysOf(scan(t, restored)))
}

// TestStillKeepsFilesAsTheyAre: an append waits for the release, and nothing else does.
func TestStillKeepsFilesAsTheyAre(t *testing.T) {
	l, err := Open(Options{Dir: t.TempDir()})
	require.NoError(t, err)
	r, err := l.Sync(1).Begin(1, Meta{})
	require.NoError(t, err)
	still := l.Still()
	appended := make(chan error, 1)
	go func() { appended <- r.Append(Batch{Records: []Record{ack("a", 1)}}) }()
	for range 100 {
		m, err := l.Sync(1).Moment()
		require.NoError(t, err)
		require.Equal(t, m.files[0].size, r.end, "nothing is written meanwhile")
		require.NoError(t, m.Close())
	}
	require.Empty(t, appended)
	still()
	still()
	require.NoError(t, <-appended)
	require.NoError(t, r.Close())
}
