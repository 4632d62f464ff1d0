package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// keyedTable is a table that can be read in ranges.
const keyedTable = "id INTEGER PRIMARY KEY, name TEXT, level INTEGER"

// cutSetup cuts every run of more than 20 rows.
func cutSetup(parts int) setup {
	return setup{options: Options{PartsHere: parts, CutRows: 20}, table: keyedTable}
}

// partsOf counts the parts of a run by its files.
func (w *world) partsOf(run int64) int {
	w.t.Helper()
	return len(cutsOf(w.t, w.ledger, run)) + 1
}

// cutsOf reads the cuts of a finished run.
func cutsOf(t testing.TB, books *ledger.Ledger, run int64) []ledger.Part {
	t.Helper()
	var archive strings.Builder
	require.NoError(t, books.Sync(7).Snapshot(&archive))
	copied, err := ledger.Open(ledger.Options{})
	require.NoError(t, err)
	require.NoError(t, copied.Sync(7).Restore(strings.NewReader(archive.String())))
	r, err := copied.Sync(7).Begin(run, ledger.Meta{})
	require.NoError(t, err)
	defer r.Close()
	if parts := r.Parts(); len(parts) > 0 {
		return parts[1:]
	}
	return nil
}

// stateOf is the state of the sync.
func (w *world) stateOf() (all []ledger.Entry) {
	w.t.Helper()
	c, err := w.ledger.Sync(7).Scan()
	require.NoError(w.t, err)
	defer c.Close()
	for {
		e, err := c.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(w.t, err)
		e.Key = append([]byte(nil), e.Key...)
		all = append(all, e)
	}
}

// A run that is cut leaves what a whole one leaves: at the destination, in the
// state, in its counters and in the list of its records.
func TestACutRunIsLikeAWholeOne(t *testing.T) {
	tests := map[string]struct {
		operation string
		pairs     []string
		strategy  string
	}{
		"upsert": {api.OperationUpsert, []string{"id:id", "name:name", "level:level"}, ""},
		"insert": {api.OperationInsert, []string{"id:id", "name:name", "level:level"}, ""},
		"update": {api.OperationUpdate, []string{"id:id", "name:name", "level:level"}, ""},
		"mirror": {api.OperationMirror, []string{"id:id", "name:name", "level:level"}, ""},
		"nulls":  {api.OperationMirror, []string{"id:id", "name:name", "level:level"}, api.MirrorNulls},
		"text":   {api.OperationMirror, []string{"id:code", "name:name", "level:level"}, ""},
		"texts":  {api.OperationMirror, []string{"name:code", "level:level"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worlds := []*world{newWorld(t, setup{table: keyedTable}), newWorld(t, cutSetup(3))}
			changes := []func(w *world){
				func(w *world) { w.sql("CREATE INDEX by_name ON people (name)"); w.fill(-20, 400) },
				func(w *world) {
					w.sql("UPDATE people SET level = 50 WHERE id % 7 = 0")
					w.sql("DELETE FROM people WHERE id % 11 = 0 OR id BETWEEN 30 AND 45")
					w.fill(1000, 50)
					w.sql("UPDATE people SET level = 'no number' WHERE id IN (3, 301, 350)")
				},
				func(w *world) { w.sql("DELETE FROM people WHERE id > 100") },
				func(*world) {},
			}
			for i, change := range changes {
				var ends [2]Outcome
				for k, w := range worlds {
					w.config = config(test.operation, test.pairs...)
					if test.strategy != "" {
						w.config.MirrorStrategy = api.Ptr(test.strategy)
					}
					change(w)
					if i == 1 {
						id := api.Raw(7)
						switch name {
						case "text":
							id = api.Raw("7")
						case "texts":
							id = api.Raw("name 7")
						}
						w.arm(destsim.Fault{Kind: "record_failure", When: destsim.Trigger{Identifier: id, Times: 3}})
					}
					ends[k] = w.sync()
				}
				require.Equal(t, ends[0].Status, ends[1].Status, "%+v", ends)
				require.Equal(t, counts(ends[0]), counts(ends[1]), "%+v", ends)
				require.Equal(t, ends[0].Samples, ends[1].Samples)
				require.Equal(t, 3, worlds[1].partsOf(worlds[1].run), "pass %d", i)
			}
			require.Equal(t, worlds[0].stored(), worlds[1].stored())
			require.Equal(t, worlds[0].stateOf(), worlds[1].stateOf())
		})
	}
}

// watched is a sender that notes what is sent.
type watched struct {
	destination.Sender
	mu      sync.Mutex
	sent    []string // operations, in the order of the calls
	records int
	at      int // so many calls at once, and the most
	most    int
	before  func(call int) error
}

// Send implements destination.Sender.
func (s *watched) Send(ctx context.Context, plan *destination.Plan, records [][]byte) (destination.Reply, error) {
	s.mu.Lock()
	s.sent = append(s.sent, plan.Operation)
	s.records += len(records)
	call := len(s.sent)
	s.at++
	s.most = max(s.most, s.at)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.at--
		s.mu.Unlock()
	}()
	if s.before != nil {
		if err := s.before(call); err != nil {
			return destination.Reply{}, err
		}
	}
	return s.Sender.Send(ctx, plan, records)
}

func (w *world) watch() *watched {
	s := &watched{Sender: w.sender}
	w.change = func(j *Job) { j.Destination = s }
	return s
}

// All upserts of a mirror come before its first delete, whichever part they are
// of.
func TestUpsertsOfAllPartsPrecedeDeletes(t *testing.T) {
	w := newWorld(t, cutSetup(4))
	w.config = config(api.OperationMirror, "id:id", "name:name", "level:level")
	w.fill(1, 400)
	require.EqualValues(t, 400, w.sync().Updated)
	w.sql("DELETE FROM people WHERE id % 2 = 0")
	w.sql("UPDATE people SET level = 9")
	s := w.watch()
	o := w.sync()
	require.Equal(t, [8]int64{200, 200, 200, 0, 400, 400, 0, 0}, counts(o))
	first := strings.Index(strings.Join(s.sent, " "), rpc.OperationDelete)
	require.Positive(t, first)
	require.NotContains(t, strings.Join(s.sent, " ")[first:], rpc.OperationUpsert)
	require.LessOrEqual(t, s.most, 4, "the parts share the parallelism of the sync")
	require.Equal(t, 4, w.partsOf(w.run))
	require.Equal(t, w.rows(), w.stored())
}

// A part without rows is no empty source; all of them together are.
func TestAnEmptySourceIsThatOfAllParts(t *testing.T) {
	w := newWorld(t, cutSetup(4))
	w.config = config(api.OperationMirror, "id:id", "name:name", "level:level")
	w.fill(1, 400)
	require.EqualValues(t, 400, w.sync().Updated)
	// The keys of the state come by their digits; so few rows are left that one
	// part has none, while the state makes the run large.
	w.sql("DELETE FROM people WHERE id > 9")
	o := w.sync()
	require.Equal(t, [8]int64{9, 0, 391, 0, 391, 391, 0, 0}, counts(o), "%+v", o)
	w.fill(10, 391)
	require.EqualValues(t, 391, w.sync().Updated)
	w.sql("UPDATE people SET id = -id")
	w.config = config(api.OperationMirror, "id:id", "level:level", "name:level")
	w.config.Mappings[1].From.Data = api.Raw("name") // no record is valid any more
	o = w.sync()
	require.Equal(t, CodeEmptySource, o.Code, "%+v", o)
	require.Len(t, w.stored(), 400)
	require.Len(t, o.Samples, 100)
	list, total, err := w.ledger.Sync(7).Records(w.run, ledger.Filter{Verdict: ledger.Invalid}, 0, 1000)
	require.NoError(t, err)
	require.Len(t, list, 100)
	require.EqualValues(t, 100, total)
	sums, err := w.ledger.Sync(7).Sums(w.run)
	require.NoError(t, err)
	require.Equal(t, ledger.Counters{Invalid: 400}, sums)
}

// What is too small, or not of the kind, is made as a whole.
func TestWhatIsNotCut(t *testing.T) {
	tests := map[string]func(w *world){
		"few rows":    func(w *world) { w.sql("DELETE FROM people WHERE id > 15") },
		"another key": func(w *world) { w.config = config(api.OperationUpsert, "code:code", "level:level") },
		"a mark": func(w *world) {
			w.config.Operation, w.config.HighWaterMarkAttribute = api.OperationAppend, api.Ptr("at")
		},
		"swap": func(w *world) {
			w.config.Operation, w.config.MirrorStrategy = api.OperationMirror, api.Ptr(api.MirrorSwap)
		},
		"a query": func(w *world) { w.change = func(j *Job) { j.Object = source.Object{Query: "SELECT * FROM people"} } },
		"skipped records": func(w *world) {
			w.config.Operation, w.config.HistoricalSyncOperation = api.OperationAppend, api.Ptr(api.HistorySkip)
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			s := cutSetup(3)
			s.table = "id INTEGER PRIMARY KEY, code TEXT, name TEXT, level INTEGER, at TEXT"
			w := newWorld(t, s)
			w.fill(1, 100)
			w.sql("UPDATE people SET code = 'c' || id, at = '2026-01-01T00:00:' || printf('%02d', id % 60)")
			change(w)
			o := w.sync()
			require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
			require.Equal(t, 1, w.partsOf(w.run))
		})
	}
	t.Run("one batch at a time", func(t *testing.T) {
		s := cutSetup(3)
		s.sim.Speed = rpc.Speed{MaximumBatchSize: 10, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 1_000_000}
		w := newWorld(t, s)
		w.fill(1, 100)
		require.EqualValues(t, 100, w.sync().Updated)
		require.Equal(t, 1, w.partsOf(w.run))
	})
	t.Run("a second of one batch", func(t *testing.T) {
		s := cutSetup(3)
		s.sim.Speed = rpc.Speed{MaximumBatchSize: 1000, MaximumParallelBatches: 9, MaximumRecordsPerSecond: 1000}
		w := newWorld(t, s)
		w.fill(1, 100)
		require.EqualValues(t, 100, w.sync().Updated)
		require.Equal(t, 1, w.partsOf(w.run))
	})
}

// A failure of one part stops the others; what was acknowledged stays, and the
// next run sends the rest.
func TestAFailureOfOnePartEndsTheRun(t *testing.T) {
	w := newWorld(t, cutSetup(3))
	w.fill(1, 900)
	s := w.watch()
	s.before = func(call int) error {
		if call == 20 {
			return &destination.CallError{Outcome: destination.OutcomeURL, Message: "the URL is none"}
		}
		return nil
	}
	o := w.sync()
	require.Equal(t, api.RunFailed, o.Status)
	require.Equal(t, "the URL is none", o.Message)
	require.Less(t, o.Updated, int64(600))
	sums, err := w.ledger.Sync(7).Sums(w.run)
	require.NoError(t, err)
	require.Equal(t, [2]int64{sums.Updated, sums.Failed}, [2]int64{o.Updated, o.Failed})
	w.change = nil
	o2 := w.sync()
	require.Equal(t, api.RunCompleted, o2.Status, "%+v", o2)
	require.Equal(t, 900-o.Updated, o2.Updated)
	require.Equal(t, w.rows(), w.stored())
}

// A cut run that is stopped goes on: by several again, or by one.
func TestACutRunGoesOn(t *testing.T) {
	for name, here := range map[string]int{"several": 3, "one": 0} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cutSetup(3))
			w.config = config(api.OperationMirror, "id:id", "name:name", "level:level")
			w.fill(1, 900)
			require.EqualValues(t, 900, w.sync().Updated)
			w.sql("UPDATE people SET level = 20")
			w.sql("DELETE FROM people WHERE id % 9 = 0")
			w.run++
			ctx, stop := context.WithCancelCause(t.Context())
			w.change = func(j *Job) {
				j.Report = func(p Progress) {
					if p.Updated >= 100 {
						stop(ErrStop)
					}
				}
			}
			o := w.again(ctx)
			require.Equal(t, api.RunWorking, o.Status, "%+v", o)
			require.GreaterOrEqual(t, o.Updated, int64(100))
			w.change = nil
			s := w.watch()
			w.executor.options.PartsHere = here
			o2 := w.again(t.Context())
			require.Equal(t, [8]int64{800, 800, 100, 0, 900, 900, 0, 0}, counts(o2), "each record counts once: %+v", o2)
			require.EqualValues(t, 900-o.Updated, s.records, "what was acknowledged is not sent again")
			require.Equal(t, w.rows(), w.stored())
			require.Equal(t, 3, w.partsOf(w.run), "the cuts of a run stay")
			require.Zero(t, w.sync().Processed)
		})
	}
}

// A cancelled one keeps what was acknowledged.
func TestACutRunIsCancelled(t *testing.T) {
	w := newWorld(t, cutSetup(3))
	w.fill(1, 900)
	ctx, cancel := context.WithCancel(t.Context())
	var last Progress
	w.change = func(j *Job) {
		j.Report = func(p Progress) {
			require.GreaterOrEqual(t, p.SourceRecords, last.SourceRecords)
			require.GreaterOrEqual(t, p.Updated, last.Updated, "sums do not go back")
			if last = p; p.Updated < 100 {
				require.Zero(t, p.Failed, "what is on its way is not shown as failed")
			} else {
				cancel()
			}
		}
	}
	w.run = 1
	o := w.again(ctx)
	require.Equal(t, CodeCanceled, o.Code)
	require.True(t, o.Canceled)
	w.change = nil
	require.Equal(t, 900-o.Updated, w.sync().Updated)
	require.Equal(t, w.rows(), w.stored())
}

// A table that does not keep to the order of its keys is made as a whole, in the
// logs of the parts.
func TestRowsThatCannotBeCut(t *testing.T) {
	for name, from := range map[string]source.Reader{
		"out of order":    &table{ranged: true, shuffled: true},
		"of other ranges": &elsewhereRows{table{ranged: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cutSetup(3))
			w.fill(1, 200)
			rows := numberedRows(1, 200, func(id int) int { return id % 7 })
			switch s := from.(type) {
			case *table:
				s.rows = rows
			case *elsewhereRows:
				s.rows = rows
			}
			w.config = config(api.OperationUpsert, "id:id", "level:level")
			w.change = func(j *Job) {
				j.Source, j.Columns = from, []api.Column{{Name: "id", Kind: api.KindInteger}, {Name: "level", Kind: api.KindInteger}}
			}
			o := w.sync()
			require.Equal(t, [8]int64{200, 200, 0, 0, 200, 200, 0, 0}, counts(o), "%+v", o)
			require.Len(t, w.stored(), 200)
			require.Equal(t, 3, w.partsOf(w.run))
			require.Zero(t, w.sync().Processed)
		})
	}
}

// elsewhereRows gives all rows for any range.
type elsewhereRows struct{ table }

// Range implements source.Ranger.
func (s *elsewhereRows) Range(ctx context.Context, object source.Object, columns []string, of source.Range) (source.Rows, error) {
	return s.table.Range(ctx, object, columns, source.Range{Column: of.Column})
}

// processes are others that share the books, and are told of parts over a wire.
type processes struct {
	t       *testing.T
	dir     string
	w       *world
	free    int
	kills   atomic.Int64 // so many parts are stopped on their way, and made again
	begun   atomic.Int64
	jobs    []PartJob
	mu      sync.Mutex
	failing bool
	inTurn  func(number int) // parts work one after the other; it is called before each
}

// Free implements Parts.
func (p *processes) Free(context.Context) int { return p.free }

// Work implements Parts: one process for each part, with books of its own.
func (p *processes) Work(ctx context.Context, job Job, parts []PartJob, tell func(PartReport)) error {
	var working sync.WaitGroup
	for _, part := range parts {
		if p.inTurn != nil {
			working.Wait()
			p.inTurn(part.Number)
		}
		p.mu.Lock()
		p.jobs = append(p.jobs, part)
		p.mu.Unlock()
		working.Go(func() {
			for ended := false; !ended; {
				ended = p.work(ctx, job, part, tell)
			}
		})
	}
	working.Wait()
	if p.failing {
		return errors.New("a process is gone")
	}
	return nil
}

func (p *processes) work(ctx context.Context, job Job, part PartJob, tell func(PartReport)) (ended bool) {
	p.begun.Add(1)
	books, err := ledger.Open(ledger.Options{Dir: p.dir})
	if err != nil {
		panic(err)
	}
	defer books.Close()
	options := p.w.executor.options
	options.Ledger, options.Parts = books, nil
	options.Limiter = nil
	own, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	kill := p.kills.Add(-1) >= 0
	wired := over[PartJob](part)
	o := New(options).RunPart(own, Job{
		Source: job.Source, Object: job.Object, Columns: job.Columns, Destination: job.Destination, DestinationObject: job.DestinationObject,
		DestinationType: job.DestinationType, Connection: job.Connection,
	}, wired, nil, func(r PartReport) {
		if kill && r.Updated >= 50 {
			stop(ErrStop)
		}
		if !r.Stopped || ctx.Err() != nil {
			tell(over[PartReport](r))
		}
	})
	return !o.Stopped || ctx.Err() != nil
}

// over sends a value over a wire.
func over[T any](value T) (out T) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

// Parts in other processes make the same run, also when some of them die on the
// way and others go on.
func TestPartsInOtherProcesses(t *testing.T) {
	for _, kills := range []int64{0, 1, 5} {
		t.Run(fmt.Sprint(kills), func(t *testing.T) {
			p := &processes{t: t, dir: t.TempDir(), free: 4}
			books, err := ledger.Open(ledger.Options{Dir: p.dir})
			require.NoError(t, err)
			w := newWorld(t, setup{options: Options{Parts: p, CutRows: 20, Ledger: books}, table: keyedTable})
			p.w = w
			w.config = config(api.OperationMirror, "id:id", "name:name", "level:level")
			w.config.AdvancedConfiguration = map[string]json.RawMessage{"delete_records": api.Raw("full")}
			w.fill(1, 900)
			require.Equal(t, [8]int64{900, 900, 0, 0, 900, 900, 0, 0}, counts(w.sync()))
			w.sql("UPDATE people SET level = 20")
			w.sql("DELETE FROM people WHERE id % 2 = 0")
			w.sql("UPDATE people SET level = 'x' WHERE id = 33")
			p.kills.Store(kills)
			p.begun.Store(0)
			s := w.watch()
			o := w.sync()
			require.Equal(t, [8]int64{450, 449, 450, 1, 899, 899, 0, 1}, counts(o), "%+v", o)
			require.EqualValues(t, 899, s.records, "what was acknowledged is not sent again")
			require.Len(t, o.Samples, 1)
			require.EqualValues(t, 8+kills, p.begun.Load(), "four parts that write and four that delete")
			require.Len(t, w.stored(), 450)
			sums, err := books.Sync(7).Sums(w.run)
			require.NoError(t, err)
			require.Equal(t, ledger.Counters{Updated: 899, Deleted: 450, Invalid: 1}, sums)
			require.Zero(t, w.sync().Processed)
			require.LessOrEqual(t, s.most, 4, "the parts share the parallelism of the sync")
		})
	}
}

// A process that is gone fails the run, which keeps what it has.
func TestAPartWithoutAnEnd(t *testing.T) {
	p := &processes{t: t, dir: t.TempDir(), free: 2, failing: true}
	books, err := ledger.Open(ledger.Options{Dir: p.dir})
	require.NoError(t, err)
	w := newWorld(t, setup{options: Options{Parts: p, CutRows: 20, Ledger: books}, table: keyedTable})
	p.w = w
	w.fill(1, 100)
	o := w.sync()
	require.Equal(t, [2]string{api.RunFailed, CodeInternal}, [2]string{o.Status, o.Code})
	require.True(t, o.Transient)
	require.EqualValues(t, 100, o.Updated)
	p.failing = false
	require.Zero(t, w.sync().Processed)
}

// A part whose sync is another one by now does not send anything.
func TestAPartOfAnotherSync(t *testing.T) {
	w := newWorld(t, cutSetup(2))
	w.fill(1, 10)
	r, err := w.ledger.Sync(7).Begin(1, ledger.Meta{})
	require.NoError(t, err)
	require.NoError(t, r.Cut([][]byte{[]byte("5")}))
	require.NoError(t, r.Lend())
	job := w.job()
	o := w.executor.RunPart(t.Context(), job, PartJob{
		Run: 1, Sync: 7, Number: 1, Of: 2, To: []byte("5"), Config: w.config, Mapping: ledger.Fingerprint{1}, Now: w.clock.Now(),
		Speed: rpc.Speed{MaximumBatchSize: 10, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 10},
	}, nil, func(PartReport) {})
	require.True(t, o.Ended)
	require.Equal(t, CodeConfiguration, o.Failure.Code)
	require.True(t, o.Failure.Transient)
	require.Empty(t, w.stored())
	require.NoError(t, r.Close())
}
