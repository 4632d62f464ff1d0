package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// twoRuns has one run in the state and one that was left open.
func twoRuns(t *testing.T) *Sync {
	l := open(t, small(Options{}, nil))
	s := l.Sync(1)
	for run := range int64(2) {
		r := begin(t, s, run+1, Meta{})
		for batch := range historyBatches {
			require.NoError(t, r.Append(historyBatch(int(run)+1, batch)))
		}
		if run == 0 {
			require.NoError(t, r.Finish(Meta{Mapping: Fingerprint{1}}))
		}
		require.NoError(t, r.Close())
	}
	return s
}

// Every byte counts: with any of them changed the sync is damaged, reports
// why, and is whole again after a full run.
func TestEachWrongByteIsNoticed(t *testing.T) {
	for name, reason := range map[string]string{stateFile: stateDamaged + "; " + UnknownDeletes, "run-2.open": fmt.Sprintf(logDamaged, 2)} {
		t.Run(name, func(t *testing.T) {
			s := twoRuns(t)
			good := contentOf(t, s, name)
			files := map[string][]byte{}
			names, err := s.files.names()
			require.NoError(t, err)
			for _, name := range names {
				files[name] = contentOf(t, s, name)
			}
			for i := 0; i < len(good); i++ {
				for name, data := range files {
					change(t, s, name, data)
				}
				require.NoError(t, errors.Join(s.files.remove(damagedFile), s.files.remove("run-2.log")))
				bad := bytes.Clone(good)
				bad[i] ^= 1 << (i % 8)
				change(t, s, name, bad)
				requireRepaired(t, s, reason)
			}
		})
	}
}

// requireRepaired resumes run 2, which must find the damage, and ends it as a
// full sync.
func requireRepaired(t *testing.T, s *Sync, reason string) {
	r := begin(t, s, 2, Meta{})
	meta := metaOf(t, s)
	require.True(t, meta.Damaged)
	require.Equal(t, reason, meta.Reason)
	// Killed or cancelled, it is still damaged.
	require.NoError(t, r.Close())
	r = begin(t, s, 2, Meta{})
	require.NoError(t, r.Finish(meta))
	meta = metaOf(t, s)
	require.True(t, meta.Damaged)
	require.Equal(t, reason, meta.Reason)
	require.EqualValues(t, len(scan(t, s)), meta.Rows)

	r = begin(t, s, 2, Meta{})
	require.NoError(t, r.Append(historyBatch(2, 0)))
	require.NoError(t, r.Finish(Meta{}))
	meta = metaOf(t, s)
	require.False(t, meta.Damaged, meta.Reason)
}

// A state that is cut anywhere is damaged; a log that is cut anywhere has the
// whole batches before the cut and nothing else.
func TestCutAnywhere(t *testing.T) {
	s := twoRuns(t)
	state, log := contentOf(t, s, stateFile), contentOf(t, s, "run-2.open")
	for size := 0; size < len(state); size++ {
		change(t, s, stateFile, state[:size:size])
		meta := metaOf(t, s)
		require.True(t, meta.Damaged, size)
	}
	change(t, s, stateFile, state)
	batch := len(historyBatch(2, 0).Records)
	for size := 0; size < len(log); size++ {
		change(t, s, "run-2.open", log[:size:size])
		before := whole(t, s, 2)
		require.Zero(t, len(before)%batch)
		r := begin(t, s, 2, Meta{})
		require.Equal(t, len(before) > 0, r.Resumed())
		require.Equal(t, before, whole(t, s, 2))
		require.NoError(t, r.Append(Batch{Skipped: 1}))
		require.NoError(t, r.Close())
		meta := metaOf(t, s)
		require.False(t, meta.Damaged, size)
		require.Equal(t, before, whole(t, s, 2))
	}
}

// A state that goes bad between Begin and its end does not stop the run: the
// results of the run are kept, and the next one must be full.
func TestDamageDuringARun(t *testing.T) {
	s := twoRuns(t)
	r := begin(t, s, 2, Meta{})
	bad := contentOf(t, s, stateFile)
	bad[len(bad)/2] ^= 1
	change(t, s, stateFile, bad)
	c, err := s.Scan()
	require.NoError(t, err)
	for err == nil {
		_, err = c.Next()
	}
	require.ErrorIs(t, err, ErrDamaged)
	require.NoError(t, c.Close())
	require.NoError(t, r.Finish(Meta{}))
	meta := metaOf(t, s)
	require.True(t, meta.Damaged)
	require.Equal(t, stateDamaged+"; "+UnknownDeletes, meta.Reason)
	require.Positive(t, meta.Rows)
}

// A meta file that is damaged is noticed; one of an older state counts for
// nothing.
func TestMetaFile(t *testing.T) {
	s := twoRuns(t)
	for run, water := range map[int64]string{3: `"3"`} {
		r := begin(t, s, run, Meta{})
		state := contentOf(t, s, stateFile)
		require.NoError(t, r.Finish(Meta{HighWater: []byte(water)}))
		require.Equal(t, state, contentOf(t, s, stateFile), "nothing changed: the state is not written again")
		meta := metaOf(t, s)
		require.Equal(t, water, string(meta.HighWater))
		require.EqualValues(t, run, meta.Run)
	}
	old := contentOf(t, s, metaFile)
	for i := range old {
		bad := bytes.Clone(old)
		bad[i] ^= 4
		change(t, s, metaFile, bad)
		meta := metaOf(t, s)
		require.True(t, meta.Damaged)
		require.Equal(t, metaDamaged, meta.Reason)
	}
	change(t, s, metaFile, old)
	r := begin(t, s, 4, Meta{})
	require.NoError(t, r.Append(historyBatch(4, 0)))
	require.NoError(t, r.Finish(Meta{}))
	change(t, s, metaFile, old)
	meta := metaOf(t, s)
	require.Empty(t, meta.HighWater)
	require.EqualValues(t, 4, meta.Run)
}

// With any room on the disk, a run that does not fit leaves the old state as it
// was, and its acknowledgements are used as soon as there is room again.
func TestDiskFull(t *testing.T) {
	everywhere(t, diskFull)
}

func diskFull(t *testing.T, p place) {
	for left := int64(0); ; left += 101 {
		o := small(p.empty(t), nil)
		var room atomic.Int64
		o.Fault = func(what, _ string, n int) (int, error) {
			if what != FaultWrite {
				return n, nil
			}
			return n + int(min(0, max(room.Add(int64(-n)), int64(-n)))), nil
		}
		room.Store(1 << 30)
		l := open(t, o)
		s := l.Sync(1)
		r := begin(t, s, 1, Meta{})
		require.NoError(t, r.Append(historyBatch(1, 0)))
		require.NoError(t, r.Finish(Meta{}))
		before := scan(t, s)

		room.Store(left)
		acked, err := fillUp(s)
		if err == nil {
			require.Positive(t, left)
			break
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, "no space left")
		require.Equal(t, before, scan(t, s))
		meta := metaOf(t, s)
		require.EqualValues(t, 1, meta.Run)

		room.Store(1 << 30)
		r = begin(t, s, 2, Meta{})
		require.GreaterOrEqual(t, len(whole(t, s, 2)), acked)
		require.NoError(t, r.Finish(Meta{}))
		meta = metaOf(t, s)
		require.False(t, meta.Damaged)
	}
}

// fillUp is run 2, until there is no room any more.
func fillUp(s *Sync) (acked int, err error) {
	r, err := s.Begin(2, Meta{})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	for batch := range historyBatches {
		b := historyBatch(2, batch)
		if err := r.Append(b); err != nil {
			_, _, ok := r.Last([]byte("1"))
			if ok || r.Append(b) == nil || r.Finish(Meta{}) == nil {
				return acked, io.ErrUnexpectedEOF // a failed run takes and reports nothing
			}
			return acked, err
		}
		acked += len(b.Records)
	}
	return acked, r.Finish(Meta{})
}

// TestARunThatWasCut: earlier versions cut a run into parts, whose logs no one reads
// any more. Their acknowledgements are in doubt, so the next run is a full sync.
func TestARunThatWasCut(t *testing.T) {
	l := open(t, Options{})
	s := l.Sync(1)
	r := begin(t, s, 1, Meta{})
	require.NoError(t, r.write(append(openFrame(nil, 'c'), `["Mw=="]`...)))
	require.NoError(t, r.Close())
	r = begin(t, s, 1, Meta{})
	meta := metaOf(t, s)
	require.True(t, meta.Damaged)
	require.Equal(t, fmt.Sprintf(logDamaged, 1), meta.Reason)
	require.NoError(t, r.Append(Batch{Records: []Record{ack("1", 1)}}))
	require.NoError(t, r.Finish(Meta{}))
	require.Equal(t, []string{"1"}, keysOf(scan(t, s)))
}
