package ledger

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// entries reads a whole state.
func entries(t *testing.T, s *Sync) map[string]Entry {
	t.Helper()
	cursor, err := s.Scan()
	require.NoError(t, err)
	defer cursor.Close()
	out := map[string]Entry{}
	for {
		e, err := cursor.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		key := string(e.Key)
		e.Key = nil
		out[key] = e
	}
}

// TestDelta: a state that is kept elsewhere has here what must be applied there,
// deletions included, until it is drained.
func TestDelta(t *testing.T) { everywhere(t, delta) }

func delta(t *testing.T, p place) {
	l := p.open(t)
	s := l.Sync(1)
	applied := Meta{Delta: true}
	run, err := s.Begin(1, applied)
	require.NoError(t, err)
	require.ErrorIs(t, s.Drain(applied), ErrNoDelta)
	require.NoError(t, run.Append(Batch{Records: []Record{
		{Key: []byte("1"), Verdict: Acknowledged, Print: Fingerprint{1}},
		{Key: []byte("2"), Verdict: Acknowledged, Delete: true},
		{Key: []byte("3"), Verdict: Acknowledged, Delete: true},
		{Key: []byte("3"), Verdict: Rejected},
		{Key: []byte("4"), Verdict: Rejected, Delete: true},
	}}))
	want := map[string]Entry{
		"1": {Print: Fingerprint{1}, Known: true, Verdict: Acknowledged},
		"2": {Verdict: Acknowledged, Removed: true},
		"3": {Verdict: Rejected, Removed: true},
		"4": {Verdict: Rejected, Deleted: true},
	}
	// A killed run is settled as the delta that it was begun as.
	require.NoError(t, run.Close())
	run, err = s.Begin(2, applied)
	require.NoError(t, err)
	meta, err := s.Meta()
	require.NoError(t, err)
	require.True(t, meta.Delta)
	require.Equal(t, want, entries(t, s))

	// A later refusal does not undo the deletion, a later record does.
	require.NoError(t, run.Append(Batch{Records: []Record{
		{Key: []byte("2"), Verdict: Rejected},
		{Key: []byte("3"), Verdict: Acknowledged, Print: Fingerprint{3}},
	}}))
	require.NoError(t, run.Finish(applied))
	want["2"] = Entry{Verdict: Rejected, Removed: true}
	want["3"] = Entry{Print: Fingerprint{3}, Known: true, Verdict: Acknowledged}
	require.Equal(t, want, entries(t, s))

	require.NoError(t, s.Drain(Meta{Mapping: Fingerprint{9}}))
	require.Empty(t, entries(t, s))
	meta, err = s.Meta()
	require.NoError(t, err)
	require.Equal(t, Meta{Mapping: Fingerprint{9}, Run: 2, Delta: true}, meta)
	require.NoError(t, l.Close())
}
