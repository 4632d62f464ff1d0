package ledger

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is what the books must say, told from the whole history each time.
type model struct {
	runs     map[int64][]told // every record for which Append returned nil
	settled  []int64          // in the order in which they came into the state
	merged   map[int64]int    // so many of their records
	resumes  map[int64]int    // so many records were told when it was last resumed
	last     int64
	open     bool
	meta     Meta
	finished map[int64]bool
	cuts     map[int64][]string
}

type told struct {
	Record
	operation string
	key       string
	skipped   int64 // a told record that stands for rows that are not listed
}

// entries applies every record one after the other.
func (m *model) entries() map[string]Entry {
	state := map[string]Entry{}
	for _, run := range m.settled {
		for _, r := range m.runs[run][:m.merged[run]] {
			if r.Verdict == Invalid || r.skipped > 0 {
				continue
			}
			e := state[r.key]
			e.Key, e.Verdict, e.Deleted = []byte(r.key), r.Verdict, false
			if row := r.row(); r.Verdict == Acknowledged || !e.Known && row != nil {
				e.Row = row
			}
			switch {
			case r.Verdict == Rejected:
				e.Deleted = r.Delete
			case r.Delete:
				delete(state, r.key)
				continue
			default:
				e.Known, e.Print = true, r.Print
			}
			state[r.key] = e
		}
	}
	return state
}

// final is the records of a run that count.
func (m *model) final(run int64) []told {
	var all []told
	for i, r := range m.runs[run] {
		if r.Verdict == Invalid || r.skipped > 0 {
			if i >= m.resumes[run] {
				all = append(all, r)
			}
			continue
		}
		later := slices.ContainsFunc(m.runs[run][i+1:], func(o told) bool {
			return o.key == r.key && o.Verdict != Invalid && o.skipped == 0
		})
		if !later {
			all = append(all, r)
		}
	}
	// The log of the run, then those of its parts.
	part := func(r told) int {
		if len(m.cuts[run]) == 0 || r.Verdict == Invalid || r.skipped > 0 {
			return 0
		}
		return 1 + sort.Search(len(m.cuts[run]), func(i int) bool { return r.key < m.cuts[run][i] })
	}
	slices.SortStableFunc(all, func(a, b told) int { return part(a) - part(b) })
	return all
}

func (m *model) counters(run int64) Counters {
	var c Counters
	for _, r := range m.final(run) {
		switch {
		case r.skipped > 0:
			c.Invalid += r.skipped
		case r.Verdict == Invalid:
			c.Invalid++
		case r.Verdict == Rejected:
			c.Failed++
		default:
			c.Updated++
			if r.Delete {
				c.Deleted++
			}
		}
	}
	return c
}

// world drives a ledger and its model.
type world struct {
	t *rapid.T
	o Options
	l *Ledger
	s *Sync
	r *Run
	model
}

func (w *world) reopen(*rapid.T) {
	if w.l != nil {
		require.NoError(w.t, w.l.Close())
	}
	w.r, w.open = nil, false
	if w.l != nil && w.o.Dir == "" && w.o.Shelf == nil {
		return // memory is gone with the ledger: its runs are closed only
	}
	l, err := Open(w.o)
	require.NoError(w.t, err)
	w.l, w.s = l, l.Sync(7)
}

func (w *world) settle() {
	if !slices.Contains(w.settled, w.last) {
		w.settled = append(w.settled, w.last)
	}
	w.merged[w.last] = len(w.runs[w.last])
}

func (w *world) begin(t *rapid.T) {
	if w.r != nil {
		_, err := w.s.Begin(w.last+1, Meta{})
		require.ErrorIs(t, err, ErrBusy)
		return
	}
	run := w.last + rapid.Int64Range(0, 2).Draw(t, "next")
	run = max(run, 1)
	r, err := w.s.Begin(run, Meta{Mapping: Fingerprint{byte(run)}})
	require.NoError(t, err)
	if run != w.last && w.last > 0 && !w.finished[w.last] {
		w.settle()
		w.meta.Run = w.last
	}
	w.r, w.last, w.open = r, run, true
	w.finished[run] = false
	w.resumes[run] = len(w.runs[run])
	if i := slices.Index(w.settled, run); i >= 0 && i < len(w.settled)-1 {
		t.Fatalf("run %d was begun again after a later one", run)
	}
	require.Equal(t, Fingerprint{byte(run)}, r.Began().Mapping)
}

func drawRecord(t *rapid.T) Record {
	r := Record{
		Key:     []byte(rapid.SampledFrom(testKeys).Draw(t, "key")),
		Verdict: rapid.SampledFrom([]Verdict{Acknowledged, Acknowledged, Rejected, Invalid}).Draw(t, "verdict"),
		Delete:  rapid.IntRange(0, 3).Draw(t, "delete") == 0,
	}
	if r.Verdict != Acknowledged {
		r.Message = rapid.SampledFrom([]string{"", "no such zip", "NULL"}).Draw(t, "message")
	}
	if r.Verdict == Invalid && rapid.Bool().Draw(t, "keyless") {
		r.Key = nil
	}
	if !r.Delete {
		r.Print = Fingerprint{rapid.Byte().Draw(t, "print")}
	}
	if rapid.Bool().Draw(t, "payload") {
		r.Payload = fmt.Appendf(nil, `{"n":%d}`, rapid.IntRange(0, 1000).Draw(t, "n"))
		r.Keep = rapid.Bool().Draw(t, "keep")
	}
	return r
}

var testKeys = func() (keys []string) {
	for i := range 40 {
		keys = append(keys, fmt.Sprint(i), fmt.Sprintf("%q", fmt.Sprint("a key that is longer than eight ", i)))
	}
	return keys
}()

func (w *world) append(t *rapid.T) {
	if w.r == nil {
		return
	}
	b := Batch{
		Operation: rapid.SampledFrom([]string{"upsert", "delete"}).Draw(t, "operation"),
		StartedAt: time.UnixMicro(5).UTC(), CompletedAt: time.UnixMicro(9).UTC(),
		Records: rapid.SliceOfN(rapid.Custom(drawRecord), 0, 12).Draw(t, "records"),
		Skipped: rapid.Int64Range(0, 2).Draw(t, "skipped"),
	}
	w.write(t, b)
	for _, r := range b.Records {
		w.runs[w.last] = append(w.runs[w.last], told{Record: r, operation: b.Operation, key: string(r.Key)})
	}
	if b.Skipped > 0 {
		w.runs[w.last] = append(w.runs[w.last], told{skipped: b.Skipped})
	}
}

// write hands a batch in: to the run, or to its parts, here or elsewhere.
func (w *world) write(t *rapid.T, b Batch) {
	parts := w.r.Parts()
	way := rapid.SampledFrom([]string{"whole", "part", "lent"}).Draw(t, "way")
	if len(parts) == 0 || way == "whole" {
		require.NoError(t, w.r.Append(b))
		return
	}
	own := b
	own.Records = slices.DeleteFunc(slices.Clone(b.Records), func(r Record) bool { return r.Verdict != Invalid })
	require.NoError(t, w.r.Append(own))
	for _, p := range parts {
		within := b
		within.Skipped = 0
		within.Records = slices.DeleteFunc(slices.Clone(b.Records), func(r Record) bool {
			return r.Verdict == Invalid || string(r.Key) < string(p.From) || p.To != nil && string(r.Key) >= string(p.To)
		})
		if way == "part" {
			log, err := w.r.Part(p.Number)
			require.NoError(t, err)
			require.NoError(t, log.Append(within))
			continue
		}
		require.NoError(t, w.r.Lend())
		l := w.l
		if w.o.Dir != "" || w.o.Shelf != nil { // another process
			var err error
			l, err = Open(w.o)
			require.NoError(t, err)
		}
		log, err := l.OpenPart(7, p, 0)
		require.NoError(t, err)
		require.NoError(t, log.Append(within))
		w.checkPart(t, p, log)
		require.NoError(t, log.Close())
		_, err = w.r.Part(p.Number) // counts what is there now
		require.NoError(t, err)
	}
}

// checkPart compares what a part sees with the state and its own records.
func (w *world) checkPart(t *rapid.T, p Part, log *Run) {
	one, err := Open(Options{})
	require.NoError(t, err)
	var archive bytes.Buffer
	require.NoError(t, w.s.Snapshot(&archive))
	require.NoError(t, one.Sync(7).Restore(&archive))
	r, err := one.Sync(7).Begin(w.last, Meta{})
	require.NoError(t, err)
	require.NoError(t, r.Finish(Meta{}))
	want := slices.DeleteFunc(scan(t, one.Sync(7)), func(e Entry) bool {
		return string(e.Key) < string(p.From) || p.To != nil && string(e.Key) >= string(p.To)
	})
	c, err := log.Scan()
	require.NoError(t, err)
	require.ElementsMatch(t, want, entriesOf(t, c))
}

// cut divides a run that has no records.
func (w *world) cut(t *rapid.T) {
	if w.r == nil {
		return
	}
	cuts := slices.Compact(slices.Sorted(slices.Values(rapid.SliceOfN(rapid.SampledFrom(testKeys), 1, 4).Draw(t, "cuts"))))
	var at [][]byte
	for _, key := range cuts {
		at = append(at, []byte(key))
	}
	some := slices.ContainsFunc(w.runs[w.last], func(r told) bool { return r.skipped == 0 })
	if some || w.cuts[w.last] != nil {
		require.ErrorIs(t, w.r.Cut(at), ErrCut)
		return
	}
	require.NoError(t, w.r.Cut(at))
	w.cuts[w.last] = cuts
}

func (w *world) finish(t *rapid.T) {
	if w.r == nil {
		return
	}
	meta := Meta{Mapping: Fingerprint{byte(w.last)}, HighWater: []byte(`"2026-01-02"`), Damaged: rapid.IntRange(0, 5).Draw(t, "damaged") == 0}
	require.NoError(t, w.r.Finish(meta))
	require.ErrorIs(t, w.r.Append(Batch{}), ErrClosed)
	meta.Run = w.last
	w.meta = meta
	w.settle()
	w.finished[w.last], w.r, w.open = true, nil, false
}

// copy moves the books to another ledger, in the middle of whatever happens.
func (w *world) copy(t *rapid.T) {
	var archive bytes.Buffer
	require.NoError(t, w.s.Snapshot(&archive))
	if w.r != nil {
		require.ErrorIs(t, w.s.Restore(bytes.NewReader(archive.Bytes())), ErrBusy)
		require.NoError(t, w.r.Close())
		w.r, w.open = nil, false
	}
	if rapid.Bool().Draw(t, "forget first") {
		require.NoError(t, w.s.Forget())
	}
	require.NoError(t, w.s.Restore(&archive))
}

// TestLikeAModel compares random histories with the model, most in memory and
// some on disk and on a shelf, with an index and blocks so small that all of their
// ways are gone.
func TestLikeAModel(t *testing.T) {
	places := []place{onDisk, onShelf}
	rapid.Check(t, func(rt *rapid.T) {
		if which := rapid.IntRange(0, 7).Draw(rt, "place"); which < len(places) {
			likeAModel(rt, places[which].empty(t))
		} else {
			likeAModel(rt, Options{})
		}
	})
}

func likeAModel(t *rapid.T, o Options) {
	o.indexItems = rapid.IntRange(1, 60).Draw(t, "index")
	o.indexFan = rapid.IntRange(2, 5).Draw(t, "fan")
	o.block = rapid.IntRange(20, 500).Draw(t, "block")
	w := &world{t: t, o: o}
	w.runs, w.resumes, w.merged, w.finished = map[int64][]told{}, map[int64]int{}, map[int64]int{}, map[int64]bool{}
	w.cuts = map[int64][]string{}
	w.reopen(t)
	defer func() { _ = w.l.Close() }()
	t.Repeat(map[string]func(*rapid.T){
		"begin": w.begin, "append": w.append, "append more": w.append, "cut": w.cut, "finish": w.finish, "reopen": w.reopen, "copy": w.copy, "": w.check,
	})
}
