package ledger

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFenced: a run whose lease was taken changes nothing any more, whatever is
// asked of it; the process that has the lease goes on with it.
func TestFenced(t *testing.T) { fenced(t, onShelf) }

func fenced(t *testing.T, p place) {
	o := p.empty(t)
	lease := leases(t, o)
	lease(3, 1)
	old, err := Open(o)
	require.NoError(t, err)
	s := old.Sync(3)
	_, err = s.Begin(1, Meta{})
	require.NoError(t, err, "nobody asked for a guard")
	require.NoError(t, old.Close())
	s.Under(2)
	_, err = s.Begin(1, Meta{})
	require.ErrorIs(t, err, ErrFenced)
	s.Under(1)
	r, err := s.Begin(1, Meta{})
	require.NoError(t, err)
	require.NoError(t, r.Append(Batch{Records: []Record{ack("1", 1)}}))

	lease(3, 2)
	other, err := Open(o)
	require.NoError(t, err)
	other.Sync(3).Under(2)
	r2, err := other.Sync(3).Begin(1, Meta{})
	require.NoError(t, err)
	require.Equal(t, Counters{Updated: 1}, r2.Counters())
	require.NoError(t, r2.Append(Batch{Records: []Record{ack("2", 1)}}))

	// This process has the lease again, for another run: that does not help the old one.
	lease(3, 3)
	s.Under(3)
	require.ErrorIs(t, r.Append(Batch{Records: []Record{ack("3", 1)}}), ErrFenced)
	require.ErrorIs(t, r.Finish(Meta{}), ErrFenced)
	lease(3, 1)
	require.ErrorIs(t, r.Append(Batch{Records: []Record{ack("3", 1)}}), ErrFenced, "once is for ever")
	require.ErrorIs(t, r.Finish(Meta{}), ErrFenced)
	_, _, known := r.Last([]byte("1"))
	require.False(t, known)
	require.NoError(t, r.Close())

	lease(3, 2)
	require.NoError(t, r2.Append(Batch{Records: []Record{ack("4", 1)}}))
	lease(3, 4)
	require.ErrorIs(t, r2.Finish(Meta{}), ErrFenced, "the state is not replaced either")
	meta, err := s.Meta()
	require.NoError(t, err)
	require.Zero(t, meta.Run)
	s.Under(4)
	r, err = s.Begin(1, Meta{})
	require.NoError(t, err)
	require.NoError(t, r.Finish(Meta{}))
	require.Equal(t, []string{"1", "2", "4"}, keysOf(scan(t, s)))
	s.Under(9)
	require.NoError(t, s.Drop(1), "what is over needs no lease")
	require.ErrorIs(t, s.Forget(), ErrFenced)
	s.Under(4)
	require.NoError(t, s.Forget())
}

// leases gives a function that gives the lease of a sync to the holder with a fence.
func leases(t *testing.T, o Options) func(sync, fence int64) {
	t.Helper()
	if own, ok := o.Shelf.(*testShelf); ok {
		return func(sync, fence int64) { own.fences[sync] = fence }
	}
	return func(sync, fence int64) { require.NoError(t, SetFence(o.Shelf.(placed).Shelf, sync, fence)) }
}

// TestTwoProcesses: what one process writes another one sees, at once and as a
// whole, whatever it has read before.
func TestTwoProcesses(t *testing.T) { twoProcesses(t, onShelf) }

func twoProcesses(t *testing.T, p place) {
	o := p.empty(t)
	var l [2]*Ledger
	for i := range l {
		var err error
		l[i], err = Open(o)
		require.NoError(t, err)
	}
	entries := 0
	for run := range int64(6) {
		s, other := l[run%2].Sync(1), l[1-run%2].Sync(1)
		r, err := s.Begin(run+1, Meta{})
		require.NoError(t, err)
		for n := range int64(3) {
			require.NoError(t, r.Append(Batch{Records: []Record{ack(fmt.Sprint(run*10+n), 1), ack("again", byte(run))}}))
			_, total, err := other.Records(run+1, Filter{}, 0, 0)
			require.NoError(t, err)
			require.Equal(t, n+2, total)
			sums, err := other.Sums(run + 1)
			require.NoError(t, err)
			require.Equal(t, r.Counters(), sums)
		}
		require.ErrorIs(t, other.Drop(run+1), ErrBusy)
		cursor, err := other.Scan()
		require.NoError(t, err)
		require.NoError(t, r.Finish(Meta{Mapping: Fingerprint{byte(run)}}))
		meta, err := other.Meta()
		require.NoError(t, err)
		require.Equal(t, Meta{Mapping: Fingerprint{byte(run)}, Run: run + 1, Rows: 3*(run+1) + 1}, meta)
		for range entries {
			_, err := cursor.Next()
			require.NoError(t, err)
		}
		_, err = cursor.Next()
		require.ErrorIs(t, err, io.EOF, "a cursor goes on over the state that it began with")
		entries = int(meta.Rows)
		require.Len(t, scan(t, other), entries)
		require.NoError(t, cursor.Close())
		runs, err := other.Runs()
		require.NoError(t, err)
		require.Len(t, runs, int(run+1))
	}
	// What another process has forgotten is gone here, also for a run that is open.
	r, err := l[0].Sync(1).Begin(7, Meta{})
	require.NoError(t, err)
	require.NoError(t, l[1].Sync(1).Forget())
	require.Error(t, r.Append(Batch{Records: []Record{ack("1", 1)}}))
	require.Error(t, r.Finish(Meta{}))
	require.NoError(t, r.Close())
	require.Empty(t, scan(t, l[0].Sync(1)))
	meta, err := l[1].Sync(1).Meta()
	require.NoError(t, err)
	require.Equal(t, Meta{}, meta)
}

// TestAShelfThatFails: a run takes nothing after a change that failed, and what it
// acknowledged is there when the shelf is back.
func TestAShelfThatFails(t *testing.T) {
	on := newTestShelf()
	l, err := Open(Options{Shelf: on, Scratch: t.TempDir()})
	require.NoError(t, err)
	s := l.Sync(1)
	r, err := s.Begin(1, Meta{})
	require.NoError(t, err)
	require.NoError(t, r.Append(Batch{Records: []Record{ack("1", 1)}}))
	on.fails = errors.New("nobody answers")
	require.ErrorIs(t, r.Append(Batch{Records: []Record{ack("2", 1)}}), on.fails)
	on.fails = nil
	require.ErrorContains(t, r.Append(Batch{Records: []Record{ack("3", 1)}}), "nobody answers")
	require.NoError(t, r.Close())
	r, err = s.Begin(1, Meta{})
	require.NoError(t, err)
	require.NoError(t, r.Finish(Meta{}))
	require.Equal(t, []string{"1"}, keysOf(scan(t, s)))
}

func TestAFolderOrAShelf(t *testing.T) {
	_, err := Open(Options{Dir: t.TempDir(), Shelf: newTestShelf()})
	require.ErrorContains(t, err, "choose one")
}

// TestWindows reads and writes a file on a shelf in pieces of all sizes.
func TestWindows(t *testing.T) {
	files := &folder{shelf: &shelved{on: newTestShelf(), sync: 1}}
	f, err := files.create("state")
	require.NoError(t, err)
	data := make([]byte, 5*mostWindow+12345)
	for i := range data {
		data[i] = byte(i>>16) ^ byte(i>>8) ^ byte(i)
	}
	for at, n := 0, 0; at < len(data); at += n {
		n = min(1+(at*7)%(2*shelfWrite), len(data)-at)
		_, err := f.WriteAt(data[at:at+n], int64(at))
		require.NoError(t, err)
	}
	require.NoError(t, f.sync())
	require.NoError(t, f.Close())
	for _, piece := range []int{777, 64 << 10, mostWindow + 1, len(data)} {
		f, err := files.open("missing", "state")
		require.NoError(t, err)
		p := make([]byte, piece)
		for at := 0; at < len(data); at += piece {
			n, _ := f.ReadAt(p, int64(at))
			require.Equal(t, min(piece, len(data)-at), n)
			require.True(t, string(data[at:at+n]) == string(p[:n]), "%d at %d", piece, at)
			if at%3 == 0 { // a reader looks at the end meanwhile
				n, err = f.ReadAt(p[:10], int64(len(data)-10))
				require.NoError(t, err)
				require.Equal(t, data[len(data)-10:], p[:n])
			}
		}
		require.NoError(t, f.Close())
	}
}
