package ledger

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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
	l := open(t, p.empty(t))
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

// check compares everything that can be queried with the model.
func (w *world) check(t *rapid.T) {
	want := w.entries()
	got := scan(t, w.s)
	require.Equal(t, slices.Sorted(maps.Keys(want)), keysOf(got))
	for _, e := range got {
		require.Equal(t, want[string(e.Key)], e)
	}
	meta := metaOf(t, w.s)
	w.meta.Rows = int64(len(want))
	require.Equal(t, w.meta, meta)
	for run := range w.runs {
		w.checkRun(t, run)
	}
	if w.r == nil {
		return
	}
	require.Equal(t, w.counters(w.last), w.r.Counters())
	final := w.final(w.last)
	for _, key := range testKeys {
		i := slices.IndexFunc(final, func(r told) bool { return r.key == key && r.Verdict != Invalid })
		verdict, print, ok := w.r.Last([]byte(key))
		require.Equal(t, i >= 0, ok, key)
		if ok {
			require.Equal(t, final[i].Verdict, verdict, key)
			if verdict == Acknowledged && !final[i].Delete {
				require.Equal(t, final[i].Print, print, key)
			}
		}
	}
}

// checkRun reads the records of a run in pages.
func (w *world) checkRun(t *rapid.T, run int64) {
	var filter Filter
	filter.Verdict = rapid.SampledFrom([]Verdict{0, Acknowledged, Rejected, Invalid}).Draw(t, "filter verdict")
	filter.Operation = rapid.SampledFrom([]string{"", "upsert", "delete"}).Draw(t, "filter operation")
	if rapid.Bool().Draw(t, "filter key") {
		filter.Key = []byte(rapid.SampledFrom(testKeys).Draw(t, "key"))
	}
	var want []told
	for _, r := range w.final(run) {
		if r.skipped == 0 && (filter.Verdict == 0 || r.Verdict == filter.Verdict) && (filter.Operation == "" || r.operation == filter.Operation) &&
			(filter.Key == nil || string(filter.Key) == r.key) {
			want = append(want, r)
		}
	}
	page := rapid.Int64Range(1, 5).Draw(t, "page")
	var got []Logged
	for {
		some, total, err := w.s.Records(run, filter, int64(len(got)), page)
		require.NoError(t, err)
		require.EqualValues(t, len(want), total)
		require.LessOrEqual(t, int64(len(some)), page)
		if len(some) == 0 {
			break
		}
		got = append(got, some...)
	}
	require.Len(t, got, len(want))
	for i, r := range want {
		require.Equal(t, r.operation, got[i].Batch.Operation)
		require.Equal(t, r.key, string(got[i].Key))
		require.Equal(t, r.Record, got[i].Record)
	}
}

func scan(t require.TestingT, s *Sync) []Entry {
	c, err := s.Scan()
	require.NoError(t, err)
	return entriesOf(t, c)
}

func entriesOf(t require.TestingT, c *Cursor) []Entry {
	defer c.Close()
	var all []Entry
	for {
		e, err := c.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		e.Key, e.Row = bytes.Clone(e.Key), bytes.Clone(e.Row)
		all = append(all, e)
	}
}

func keysOf(all []Entry) []string {
	var keys []string
	for _, e := range all {
		keys = append(keys, string(e.Key))
	}
	return keys
}

// open opens a ledger, begin begins a run, and metaOf reads the meta of a sync.
func open(t require.TestingT, o Options) *Ledger {
	l, err := Open(o)
	require.NoError(t, err)
	return l
}

func begin(t require.TestingT, s *Sync, run int64, m Meta) *Run {
	r, err := s.Begin(run, m)
	require.NoError(t, err)
	return r
}

func metaOf(t require.TestingT, s *Sync) Meta {
	m, err := s.Meta()
	require.NoError(t, err)
	return m
}
