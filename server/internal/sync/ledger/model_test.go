package ledger

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is the expected ledger, computed from the whole history each time.
type model struct {
	runs     map[int64][]told // every record for which Append returned nil
	settled  []int64          // in the order in which they came into the state
	merged   map[int64]int    // so many of their records
	resumes  map[int64]int    // number of records when it was last resumed
	last     int64
	open     bool
	meta     Meta
	finished map[int64]bool
}

type told struct {
	Record
	operation string
	key       string
	skipped   int64 // a record that represents rows that are not listed
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
	if w.l != nil && w.o.Dir == "" {
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
	r := begin(t, w.s, run, Meta{Mapping: Fingerprint{byte(run)}})
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
	require.NoError(t, w.r.Append(b))
	for _, r := range b.Records {
		w.runs[w.last] = append(w.runs[w.last], told{Record: r, operation: b.Operation, key: string(r.Key)})
	}
	if b.Skipped > 0 {
		w.runs[w.last] = append(w.runs[w.last], told{skipped: b.Skipped})
	}
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
// some on disk, with an index and blocks so small that all of their
// ways are gone.
func TestLikeAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if rapid.IntRange(0, 7).Draw(rt, "place") == 0 {
			likeAModel(rt, onDisk.empty(t))
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
	w.reopen(t)
	defer func() { _ = w.l.Close() }()
	t.Repeat(map[string]func(*rapid.T){
		"begin": w.begin, "append": w.append, "append more": w.append, "finish": w.finish, "reopen": w.reopen, "copy": w.copy, "": w.check,
	})
}
