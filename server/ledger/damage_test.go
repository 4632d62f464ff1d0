package ledger

import (
	"bytes"
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// twoRuns has one run in the state and one that was left open, in memory.
func twoRuns(t *testing.T) *Sync {
	l, err := Open(small("", nil))
	require.NoError(t, err)
	s := l.Sync(1)
	for run := range int64(2) {
		r, err := s.Begin(run+1, Meta{})
		require.NoError(t, err)
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

// content gives the bytes of a file; change puts others in their place.
func contentOf(s *Sync, name string) []byte { return bytes.Clone(s.files.files[name].data) }

func change(s *Sync, name string, data []byte) {
	s.files.files[name] = &content{data: bytes.Clone(data)}
}

// Every byte counts: with any of them changed the sync is damaged, says why,
// and is whole again after a full run.
func TestEachWrongByteIsNoticed(t *testing.T) {
	for name, reason := range map[string]string{stateFile: stateDamaged, "run-2.open": fmt.Sprintf(logDamaged, 2)} {
		t.Run(name, func(t *testing.T) {
			s := twoRuns(t)
			good := contentOf(s, name)
			files := map[string][]byte{}
			for name := range s.files.files {
				files[name] = contentOf(s, name)
			}
			for i := range good {
				for name, data := range files {
					change(s, name, data)
				}
				delete(s.files.files, damagedFile)
				delete(s.files.files, "run-2.log")
				bad := bytes.Clone(good)
				bad[i] ^= 1 << (i % 8)
				change(s, name, bad)
				requireRepaired(t, s, reason)
			}
		})
	}
}

// requireRepaired resumes run 2, which must find the damage, and ends it as a
// full sync.
func requireRepaired(t *testing.T, s *Sync, reason string) {
	r, err := s.Begin(2, Meta{})
	require.NoError(t, err)
	meta, err := s.Meta()
	require.NoError(t, err)
	require.True(t, meta.Damaged)
	require.Equal(t, reason, meta.Reason)
	// Killed or cancelled, it is still damaged.
	require.NoError(t, r.Close())
	r, err = s.Begin(2, Meta{})
	require.NoError(t, err)
	require.NoError(t, r.Finish(meta))
	meta, err = s.Meta()
	require.NoError(t, err)
	require.True(t, meta.Damaged)
	require.Equal(t, reason, meta.Reason)
	require.EqualValues(t, len(scan(t, s)), meta.Rows)

	r, err = s.Begin(2, Meta{})
	require.NoError(t, err)
	require.NoError(t, r.Append(historyBatch(2, 0)))
	require.NoError(t, r.Finish(Meta{}))
	meta, err = s.Meta()
	require.NoError(t, err)
	require.False(t, meta.Damaged, meta.Reason)
}

// A state that is cut anywhere is damaged; a log that is cut anywhere has the
// whole batches before the cut and nothing else.
func TestCutAnywhere(t *testing.T) {
	s := twoRuns(t)
	state, log := contentOf(s, stateFile), contentOf(s, "run-2.open")
	for size := range state {
		change(s, stateFile, state[:size:size])
		meta, err := s.Meta()
		require.NoError(t, err)
		require.True(t, meta.Damaged, size)
	}
	change(s, stateFile, state)
	batch := len(historyBatch(2, 0).Records)
	for size := range log {
		change(s, "run-2.open", log[:size:size])
		before := whole(t, s, 2)
		require.Zero(t, len(before)%batch)
		r, err := s.Begin(2, Meta{})
		require.NoError(t, err)
		require.Equal(t, len(before) > 0, r.Resumed())
		require.Equal(t, before, whole(t, s, 2))
		require.NoError(t, r.Append(Batch{Skipped: 1}))
		require.NoError(t, r.Close())
		meta, err := s.Meta()
		require.NoError(t, err)
		require.False(t, meta.Damaged, size)
		require.Equal(t, before, whole(t, s, 2))
	}
}

// A state that goes bad between Begin and its end does not stop the run: what
// the run learnt is kept, and the next one must be full.
func TestDamageDuringARun(t *testing.T) {
	s := twoRuns(t)
	r, err := s.Begin(2, Meta{})
	require.NoError(t, err)
	bad := contentOf(s, stateFile)
	bad[len(bad)/2] ^= 1
	change(s, stateFile, bad)
	c, err := s.Scan()
	require.NoError(t, err)
	for err == nil {
		_, err = c.Next()
	}
	require.ErrorIs(t, err, ErrDamaged)
	require.NoError(t, c.Close())
	require.NoError(t, r.Finish(Meta{}))
	meta, err := s.Meta()
	require.NoError(t, err)
	require.True(t, meta.Damaged)
	require.Equal(t, stateDamaged, meta.Reason)
	require.Positive(t, meta.Rows)
}

// A meta file that is damaged is noticed; one of an older state counts for
// nothing.
func TestMetaFile(t *testing.T) {
	s := twoRuns(t)
	for run, water := range map[int64]string{3: `"3"`} {
		r, err := s.Begin(run, Meta{})
		require.NoError(t, err)
		state := contentOf(s, stateFile)
		require.NoError(t, r.Finish(Meta{HighWater: []byte(water)}))
		require.Equal(t, state, contentOf(s, stateFile), "nothing changed: the state is not written again")
		meta, err := s.Meta()
		require.NoError(t, err)
		require.Equal(t, water, string(meta.HighWater))
		require.EqualValues(t, run, meta.Run)
	}
	old := contentOf(s, metaFile)
	for i := range old {
		bad := bytes.Clone(old)
		bad[i] ^= 4
		change(s, metaFile, bad)
		meta, err := s.Meta()
		require.NoError(t, err)
		require.True(t, meta.Damaged)
		require.Equal(t, metaDamaged, meta.Reason)
	}
	change(s, metaFile, old)
	r, err := s.Begin(4, Meta{})
	require.NoError(t, err)
	require.NoError(t, r.Append(historyBatch(4, 0)))
	require.NoError(t, r.Finish(Meta{}))
	change(s, metaFile, old)
	meta, err := s.Meta()
	require.NoError(t, err)
	require.Empty(t, meta.HighWater)
	require.EqualValues(t, 4, meta.Run)
}

// With any room on the disk, a run that does not fit leaves the old state as it
// was, and what it acknowledged is used as soon as there is room again.
func TestDiskFull(t *testing.T) {
	for _, dir := range []string{"", "disk"} {
		for left := int64(0); ; left += 101 {
			o := small("", nil)
			o.room = &room{left: 1 << 30}
			if dir != "" {
				o.Dir = t.TempDir()
			}
			l, err := Open(o)
			require.NoError(t, err)
			s := l.Sync(1)
			r, err := s.Begin(1, Meta{})
			require.NoError(t, err)
			require.NoError(t, r.Append(historyBatch(1, 0)))
			require.NoError(t, r.Finish(Meta{}))
			before := scan(t, s)

			o.room.left = left
			acked, err := fillUp(s)
			if err == nil {
				require.Positive(t, left)
				break
			}
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.ErrorContains(t, err, "no space left")
			require.Equal(t, before, scan(t, s))
			meta, err := s.Meta()
			require.NoError(t, err)
			require.EqualValues(t, 1, meta.Run)

			o.room.left = 1 << 30
			r, err = s.Begin(2, Meta{})
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(whole(t, s, 2)), acked)
			require.NoError(t, r.Finish(Meta{}))
			meta, err = s.Meta()
			require.NoError(t, err)
			require.False(t, meta.Damaged)
		}
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
				return acked, io.ErrUnexpectedEOF // a failed run takes and tells nothing
			}
			return acked, err
		}
		acked += len(b.Records)
	}
	return acked, r.Finish(Meta{})
}
