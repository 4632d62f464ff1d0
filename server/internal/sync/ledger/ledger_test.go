package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func ack(key string, print byte) Record {
	return Record{Key: []byte(key), Print: Fingerprint{print}, Verdict: Acknowledged}
}

func reject(key string) Record {
	return Record{Key: []byte(key), Print: Fingerprint{99}, Verdict: Rejected, Message: "no"}
}

func remove(r Record) Record {
	r.Delete, r.Print = true, Fingerprint{}
	return r
}

// ran does a whole run of one batch for each list of records.
func ran(t *testing.T, s *Sync, run int64, batches ...[]Record) Counters {
	t.Helper()
	r := begin(t, s, run, Meta{})
	for _, records := range batches {
		require.NoError(t, r.Append(Batch{Operation: "upsert", Records: records}))
	}
	require.NoError(t, r.Finish(Meta{}))
	return r.Counters()
}

// Effects of verdicts on an existing or missing entry.
func TestVerdictsOnTheState(t *testing.T) { everywhere(t, verdictsOnTheState) }

func verdictsOnTheState(t *testing.T, p place) {
	has := func(key string, print byte) Entry {
		return Entry{Key: []byte(key), Print: Fingerprint{print}, Known: true, Verdict: Acknowledged}
	}
	refused := func(e Entry, deleted bool) Entry {
		e.Verdict, e.Deleted = Rejected, deleted
		return e
	}
	tests := map[string]struct {
		before, run []Record
		want        []Entry
		counters    Counters
	}{
		"new":                            {nil, []Record{ack("1", 5)}, []Entry{has("1", 5)}, Counters{Updated: 1}},
		"changed":                        {[]Record{ack("1", 5)}, []Record{ack("1", 6)}, []Entry{has("1", 6)}, Counters{Updated: 1}},
		"others stay":                    {[]Record{ack("1", 5), ack("3", 5)}, []Record{ack("2", 6)}, []Entry{has("1", 5), has("2", 6), has("3", 5)}, Counters{Updated: 1}},
		"refused when new":               {nil, []Record{reject("1")}, []Entry{refused(Entry{Key: []byte("1")}, false)}, Counters{Failed: 1}},
		"refused keeps the old one":      {[]Record{ack("1", 5)}, []Record{reject("1")}, []Entry{refused(has("1", 5), false)}, Counters{Failed: 1}},
		"sent again":                     {nil, []Record{reject("1"), ack("1", 5)}, []Entry{has("1", 5)}, Counters{Updated: 1}},
		"refused after acknowledgement":  {nil, []Record{ack("1", 5), reject("1")}, []Entry{refused(has("1", 5), false)}, Counters{Failed: 1}},
		"deleted":                        {[]Record{ack("1", 5)}, []Record{remove(ack("1", 0))}, nil, Counters{Updated: 1, Deleted: 1}},
		"delete refused":                 {[]Record{ack("1", 5)}, []Record{remove(reject("1"))}, []Entry{refused(has("1", 5), true)}, Counters{Failed: 1}},
		"deleted, then refused as new":   {[]Record{ack("1", 5)}, []Record{remove(ack("1", 0)), reject("1")}, []Entry{refused(Entry{Key: []byte("1")}, false)}, Counters{Failed: 1}},
		"deleted and there again":        {[]Record{ack("1", 5)}, []Record{remove(ack("1", 0)), ack("1", 7)}, []Entry{has("1", 7)}, Counters{Updated: 1}},
		"delete of what nobody knows":    {nil, []Record{remove(ack("1", 0))}, nil, Counters{Updated: 1, Deleted: 1}},
		"invalid changes nothing":        {[]Record{ack("1", 5)}, []Record{{Key: []byte("1"), Verdict: Invalid}, {Verdict: Invalid}}, []Entry{has("1", 5)}, Counters{Invalid: 2}},
		"the order is that of the bytes": {nil, []Record{ack(`"é"`, 1), ack("10", 2), ack("9", 3), ack(`"z"`, 4)}, []Entry{has(`"z"`, 4), has(`"é"`, 1), has("10", 2), has("9", 3)}, Counters{Updated: 4}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := p.open(t).Sync(3)
			ran(t, s, 1, test.before)
			require.Equal(t, test.counters, ran(t, s, 2, test.run))
			require.Equal(t, test.want, scan(t, s))
			// A later run that sends nothing changes nothing.
			require.Equal(t, Counters{}, ran(t, s, 3))
			require.Equal(t, test.want, scan(t, s))
		})
	}
}

func TestBeginRefuses(t *testing.T) { everywhere(t, beginRefuses) }

func beginRefuses(t *testing.T, p place) {
	l := p.open(t)
	s := l.Sync(3)
	_, err := s.Begin(0, Meta{})
	require.ErrorContains(t, err, "1 or more")
	_, err = s.Begin(1, Meta{HighWater: json.RawMessage("{")})
	require.ErrorContains(t, err, "encode meta")
	ran(t, s, 5, []Record{ack("1", 1)})
	_, err = s.Begin(4, Meta{})
	require.EqualError(t, err, "begin run 4 of sync 3: run 5 came later")
	r := begin(t, s, 7, Meta{})
	_, err = s.Begin(8, Meta{})
	require.ErrorIs(t, err, ErrBusy)
	require.ErrorIs(t, s.Forget(), ErrBusy)
	require.ErrorIs(t, s.Drop(7), ErrBusy)
	require.NoError(t, l.Close())
	require.ErrorIs(t, r.Finish(Meta{}), ErrClosed)
	_, err = s.Begin(6, Meta{})
	require.EqualError(t, err, "begin run 6 of sync 3: run 7 came later")
	_ = begin(t, s, 7, Meta{})
	require.NoError(t, l.Close())
}

func TestAppendRefuses(t *testing.T) { everywhere(t, appendRefuses) }

func appendRefuses(t *testing.T, p place) {
	tests := map[string]Batch{
		"append to run 1 of sync 3: record 1: no verdict":            {Records: []Record{ack("1", 1), {Key: []byte("2")}}},
		"append to run 1 of sync 3: record 0: no key":                {Records: []Record{{Verdict: Rejected}}},
		"append to run 1 of sync 3: skipped rows: -1 is less than 0": {Skipped: -1},
	}
	r, err := p.open(t).Sync(3).Begin(1, Meta{})
	require.NoError(t, err)
	for message, batch := range tests {
		require.EqualError(t, r.Append(batch), message)
	}
	require.NoError(t, r.Append(Batch{Records: []Record{ack("1", 1)}}), "a refused batch does not end the run")
	require.Equal(t, Counters{Updated: 1}, r.Counters())
	require.NoError(t, r.Close())
}

// A run that was killed is part of the state for the next run, but its meta is
// not: it did not reach its end.
func TestRunsThatNeverEnded(t *testing.T) {
	o := onDisk.empty(t)
	l := open(t, o)
	for run := range int64(3) {
		r := begin(t, l.Sync(3), run+1, Meta{Mapping: Fingerprint{9}})
		require.NoError(t, r.Append(Batch{Records: []Record{ack(fmt.Sprint(run), byte(run)), {Verdict: Invalid}}}))
		if run == 0 {
			require.NoError(t, r.Finish(Meta{Mapping: Fingerprint{8}, HighWater: json.RawMessage("5")}))
		}
		l = open(t, o) // as after a kill
	}
	s := l.Sync(3)
	r := begin(t, s, 4, Meta{})
	require.False(t, r.Resumed())
	meta := metaOf(t, s)
	require.Equal(t, Meta{Mapping: Fingerprint{8}, HighWater: json.RawMessage("5"), Run: 3, Rows: 3}, meta)
	require.Equal(t, []string{"0", "1", "2"}, keysOf(scan(t, s)))
	_, invalid, err := s.Records(3, Filter{Verdict: Invalid}, 0, 10)
	require.NoError(t, err)
	require.EqualValues(t, 1, invalid, "nobody read the source again")
	require.NoError(t, r.Close())
}

// Many senders share the writes and lose nothing.
func TestParallelAppends(t *testing.T) { everywhere(t, parallelAppends) }

func parallelAppends(t *testing.T, p place) {
	o := p.empty(t)
	o.indexItems = 50
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l := open(t, o)
	s := l.Sync(3)
	r := begin(t, s, 1, Meta{})
	var all sync.WaitGroup
	failures := make(chan error, 50)
	for sender := range 50 {
		all.Go(func() {
			for n := range 20 {
				key := fmt.Sprintf("%02d-%02d", n, sender)
				err := r.Append(Batch{Records: []Record{reject(key), ack(key, 1)}})
				if verdict, _, ok := r.Last([]byte(key)); err == nil && (!ok || verdict != Acknowledged) {
					err = fmt.Errorf("%s was appended and is not there", key)
				}
				if err != nil {
					failures <- err
					return
				}
				_ = r.Counters()
			}
		})
	}
	all.Wait()
	close(failures)
	require.NoError(t, errors.Join(<-failures))
	require.Equal(t, Counters{Updated: 1000}, r.Counters())
	_, total, err := s.Records(1, Filter{}, 0, 1)
	require.NoError(t, err)
	require.EqualValues(t, 1000, total)
	require.NoError(t, r.Finish(Meta{}))
	require.Len(t, scan(t, s), 1000)
}

func TestRunsAndDrop(t *testing.T) { everywhere(t, runsAndDrop) }

func runsAndDrop(t *testing.T, p place) {
	s := p.open(t).Sync(3)
	runs, err := s.Runs()
	require.NoError(t, err)
	require.Empty(t, runs)
	for _, run := range []int64{2, 10, 11} {
		ran(t, s, run, []Record{ack("1", byte(run))})
	}
	runs, err = s.Runs()
	require.NoError(t, err)
	require.Equal(t, []int64{2, 10, 11}, runs)
	require.NoError(t, s.Drop(10))
	require.NoError(t, s.Drop(10))
	_, _, err = s.Records(10, Filter{}, 0, 1)
	require.ErrorIs(t, err, ErrNoRun)
	require.EqualError(t, err, "read records of run 10 of sync 3: the ledger has no such run")
	require.NoError(t, s.Forget())
	require.NoError(t, s.Forget())
	meta := metaOf(t, s)
	require.Equal(t, Meta{}, meta)
	require.Empty(t, scan(t, s))
	require.Equal(t, Counters{Updated: 1}, ran(t, s, 1, []Record{ack("1", 1)}), "run 1 is the first again")
}

// A cursor goes on over the state that it began with.
func TestScanStandsStill(t *testing.T) { everywhere(t, scanStandsStill) }

func scanStandsStill(t *testing.T, p place) {
	l := open(t, small(p.empty(t), nil))
	s := l.Sync(1)
	require.NoError(t, history(s, func(string) {}))
	want := keysOf(scan(t, s))
	c, err := s.Scan()
	require.NoError(t, err)
	require.NoError(t, s.Forget())
	var got []string
	for {
		e, err := c.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		got = append(got, string(e.Key))
	}
	require.Equal(t, want, got)
	require.NoError(t, c.Close())
}

// A Scan, a resumption and a Finish of many keys need a few MB, however many
// there are.
func TestConstantMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("half a million records")
	}
	const rows, most = 500_000, 12 << 20
	s := onDisk.open(t).Sync(1)
	r := begin(t, s, 1, Meta{})
	fill(t, r, rows, nil)
	require.Less(t, held(), uint64(most))
	require.NoError(t, r.Close())
	r = begin(t, s, 1, Meta{})
	require.Less(t, held(), uint64(most))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, r.Finish(Meta{}))
	require.Equal(t, rows, count(t, s))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most))
}

// held is the memory in use after a collection.
func held() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
