package ledger

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// cutRun begins a run that is cut at "3" and "6".
func cutRun(t *testing.T, s *Sync, run int64) *Run {
	t.Helper()
	r, err := s.Begin(run, Meta{})
	require.NoError(t, err)
	require.NoError(t, r.Cut([][]byte{[]byte("3"), []byte("6")}))
	return r
}

func TestCutRefuses(t *testing.T) {
	l, err := Open(Options{})
	require.NoError(t, err)
	r, err := l.Sync(3).Begin(1, Meta{})
	require.NoError(t, err)
	for _, cuts := range [][]string{{""}, {"2", "1"}, {"1", "1"}} {
		var at [][]byte
		for _, key := range cuts {
			at = append(at, []byte(key))
		}
		require.ErrorContains(t, r.Cut(at), "ascending")
	}
	require.NoError(t, r.Append(Batch{Records: []Record{ack("1", 1)}}))
	require.ErrorIs(t, r.Cut([][]byte{[]byte("3")}), ErrCut)
	_, err = r.Part(1)
	require.ErrorIs(t, err, ErrNoRun)
	require.NoError(t, r.Finish(Meta{}))
	r = cutRun(t, l.Sync(3), 2)
	require.ErrorIs(t, r.Cut([][]byte{[]byte("3")}), ErrCut)
	require.Equal(t, []Part{{2, 1, nil, []byte("3")}, {2, 2, []byte("3"), []byte("6")}, {2, 3, []byte("6"), nil}}, r.Parts())
	p, err := r.Part(2)
	require.NoError(t, err)
	for _, key := range []string{"2", "6"} {
		require.ErrorIs(t, p.Append(Batch{Records: []Record{ack(key, 1)}}), errElsewhere)
	}
	require.NoError(t, p.Append(Batch{Records: []Record{ack("3", 1), ack("59", 1)}}))
	require.NoError(t, r.Finish(Meta{}))
	require.ErrorIs(t, p.Append(Batch{Records: []Record{ack("4", 1)}}), ErrClosed)
}

// A part that was killed sees the state with its own verdicts over it; nothing
// of what others have.
func TestAPartGoesOnWhereItWas(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(Options{Dir: dir, block: 30, indexItems: 2})
	require.NoError(t, err)
	s := l.Sync(3)
	var before []Record
	for i := range 90 {
		before = append(before, ack(fmt.Sprint(10+i), 1))
	}
	ran(t, s, 1, before)
	r := cutRun(t, s, 2)
	require.NoError(t, r.Lend())
	parts := r.Parts()
	p, err := l.OpenPart(3, parts[1], 0)
	require.NoError(t, err)
	require.False(t, p.Resumed())
	require.NoError(t, p.Append(Batch{Records: []Record{ack("30", 2), remove(ack("31", 0)), reject("5"), reject("59")}}))
	require.NoError(t, p.Close())
	p, err = l.OpenPart(3, parts[1], 0)
	require.NoError(t, err)
	require.True(t, p.Resumed())
	c, err := p.Scan()
	require.NoError(t, err)
	all := entriesOf(t, c)
	require.Equal(t, Entry{Key: []byte("30"), Print: Fingerprint{2}, Known: true, Verdict: Acknowledged}, all[0])
	require.Equal(t, "32", string(all[1].Key))
	require.Equal(t, Entry{Key: []byte("5"), Verdict: Rejected}, all[19])
	require.Equal(t, Entry{Key: []byte("59"), Print: Fingerprint{1}, Known: true, Verdict: Rejected}, all[len(all)-1])
	require.Len(t, all, 30)
	require.NoError(t, p.Close())
	// The next run settles what the parts of this one have.
	require.NoError(t, l.Close())
	ran(t, s, 3)
	require.Len(t, scan(t, s), 90)
	sums, err := s.Sums(2)
	require.NoError(t, err)
	require.Equal(t, Counters{Updated: 2, Deleted: 1, Failed: 2}, sums)
	var keys []string
	require.NoError(t, s.Each(2, func(r *Logged) error { keys = append(keys, string(r.Key)); return nil }))
	require.Equal(t, []string{"30", "31", "5", "59"}, keys)
	require.NoError(t, s.Drop(2))
	names, err := s.files.names()
	require.NoError(t, err)
	require.Equal(t, []string{"meta", "run-1.log", "run-3.log", "state"}, names)
}

func TestWhatAPartLeaves(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		l, err := Open(Options{Dir: dir})
		require.NoError(t, err)
		r := cutRun(t, l.Sync(3), 1)
		p, err := r.Part(2)
		require.NoError(t, err)
		left := func() []byte {
			from, err := p.Left()
			require.NoError(t, err)
			all, err := io.ReadAll(from)
			require.NoError(t, err)
			require.NoError(t, from.Close())
			return all
		}
		require.Empty(t, left())
		for _, size := range []int{3, blockSize, 3*blockSize + 17, 0} {
			text := bytes.Repeat([]byte("abc"), size)[:size]
			require.NoError(t, p.Leave(bytes.NewReader(text)))
			require.Equal(t, string(text), string(left()))
		}
		require.NoError(t, p.Leave(bytes.NewReader([]byte("something"))))
		f, err := l.Sync(3).files.open(partName(1, 2, restSuffix))
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("x"), blockHead)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		from, err := p.Left()
		require.NoError(t, err)
		_, err = io.ReadAll(from)
		require.ErrorIs(t, err, ErrDamaged)
		require.NoError(t, from.Close())
		require.NoError(t, r.Finish(Meta{}))
		names, err := l.Sync(3).files.names()
		require.NoError(t, err)
		require.Equal(t, []string{"run-1.log", "run-1.part-1.log", "run-1.part-2.log", "run-1.part-3.log", "state"}, names)
	}
}

// Damage in the log of a part is damage of the run.
func TestDamageInAPart(t *testing.T) {
	l, err := Open(Options{Dir: t.TempDir()})
	require.NoError(t, err)
	s := l.Sync(3)
	r := cutRun(t, s, 1)
	require.NoError(t, r.Append(Batch{Records: []Record{ack("1", 1), ack("4", 1)}}))
	require.NoError(t, r.Append(Batch{Records: []Record{ack("5", 1), ack("7", 1)}}))
	require.NoError(t, l.Close())
	f, err := s.files.open(partName(1, 2, doneSuffix))
	require.NoError(t, err)
	size, err := f.size()
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{0xff}, size-20)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	r, err = s.Begin(1, Meta{})
	require.NoError(t, err)
	meta, err := s.Meta()
	require.NoError(t, err)
	require.True(t, meta.Damaged)
	require.Equal(t, "the log of run 1 is damaged; "+UnknownDeletes, meta.Reason)
	require.True(t, r.Resumed())
	require.Equal(t, []Counters{{Updated: 1}, {Updated: 1}, {Updated: 1}}, r.Sums())
	require.NoError(t, r.Finish(meta))
	require.Equal(t, []string{"1", "4", "7"}, keysOf(scan(t, s)))
}

// A run that is resumed after invalid rows lists every other record.
func TestRecordsAfterInvalidRowsAndAResumption(t *testing.T) {
	l, err := Open(Options{})
	require.NoError(t, err)
	s := l.Sync(3)
	r, err := s.Begin(1, Meta{})
	require.NoError(t, err)
	var records []Record
	for i := range 70 {
		records = append(records, ack(fmt.Sprint(100+i), 1))
	}
	records = append(records, Record{Verdict: Invalid})
	require.NoError(t, r.Append(Batch{Records: records}))
	require.NoError(t, r.Close())
	_, err = s.Begin(1, Meta{})
	require.NoError(t, err)
	_, total, err := s.Records(1, Filter{}, 0, 0)
	require.NoError(t, err)
	require.EqualValues(t, 70, total)
	require.NoError(t, l.Close())
}
