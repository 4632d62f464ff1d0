package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

func TestMirrorStrategies(t *testing.T) {
	for _, c := range []struct {
		strategy      *string
		calls         int64 // of the second run
		counts        [8]int64
		leftover      bool
		deleteBatches int
	}{
		{nil, 3, [8]int64{25, 1, 15, 0, 16, 16, 0, 0}, false, 2},
		{api.Ptr(api.MirrorDeletes), 3, [8]int64{25, 1, 15, 0, 16, 16, 0, 0}, false, 2},
		{api.Ptr(api.MirrorNulls), 1, [8]int64{25, 1, 0, 0, 1, 1, 0, 0}, true, 0},
		{api.Ptr(api.MirrorSwap), 5, [8]int64{25, 25, 15, 0, 40, 40, 0, 0}, false, 2},
	} {
		t.Run(fmt.Sprint(c.strategy != nil, c.counts), func(t *testing.T) {
			w := newWorld(t, setup{})
			w.config.Operation, w.config.MirrorStrategy = api.OperationMirror, c.strategy
			w.fill(1, 40)
			require.Equal(t, api.RunCompleted, w.sync().Status)
			require.Equal(t, w.rows(), w.stored())
			before := w.stored()
			w.sql("DELETE FROM people WHERE id > 25")
			w.sql("UPDATE people SET level = NULL WHERE id = 3")
			o := w.sync()
			require.Equal(t, c.counts, counts(o))
			require.Equal(t, c.calls, o.Calls)
			want := w.rows()
			if c.leftover {
				for id, value := range before {
					if _, kept := want[id]; !kept {
						want[id] = value
					}
				}
			}
			require.Equal(t, want, w.stored())
			o = w.sync()
			if c.strategy == nil || *c.strategy != api.MirrorSwap {
				require.Equal(t, [8]int64{25}, counts(o), "nothing is left to do")
			} else {
				require.Equal(t, [8]int64{25, 25, 0, 0, 25, 25, 0, 0}, counts(o))
			}
		})
	}
}

func TestMirrorOfAnEmptySource(t *testing.T) {
	w := newWorld(t, setup{})
	w.config.Operation = api.OperationMirror
	require.Equal(t, api.RunCompleted, w.sync().Status, "nothing was sent yet")
	w.fill(1, 5)
	require.Equal(t, api.RunCompleted, w.sync().Status)
	w.sql("DELETE FROM people")
	o := w.sync()
	require.Equal(t, api.RunFailed, o.Status)
	require.Equal(t, CodeEmptySource, o.Code)
	require.Zero(t, o.Calls)
	require.Len(t, w.stored(), 5)
	w.sql("INSERT INTO people VALUES (NULL, 'x', 1)")
	require.Equal(t, CodeEmptySource, w.sync().Code, "rows without a key keep nothing")

	w.config.AdvancedConfiguration = map[string]json.RawMessage{"allow_empty_source": api.Raw(true)}
	o = w.sync()
	require.Equal(t, [8]int64{1, 0, 5, 1, 5, 5, 0, 1}, counts(o))
	require.Empty(t, w.stored())
}

func TestInvalidRowsAreNeverSent(t *testing.T) {
	w := newWorld(t, setup{table: "id ANY, name TEXT, level ANY"})
	w.config.Operation = api.OperationMirror
	w.fill(1, 20)
	require.Equal(t, api.RunCompleted, w.sync().Status)
	before := w.stored()
	w.sql("INSERT INTO people VALUES (NULL, 'none', 1), (NULL, 'none', 2)")
	w.sql("INSERT INTO people VALUES (7, 'again', 1), (7, 'and again', 1), (99, 'new', 1), (99, 'new', 1)")
	w.sql("UPDATE people SET level = 'high' WHERE id = 9")
	o := w.sync()
	require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
	require.Equal(t, [8]int64{26, 0, 0, 8, 0, 0, 0, 8}, counts(o))
	require.Equal(t, before, w.stored(), "7 and 9 are not deleted for it")
	reasons := map[string]int64{}
	for _, s := range o.Samples {
		reasons[s.Key+": "+s.Reason] += s.Rows
	}
	require.Len(t, reasons, 4)
	require.Equal(t, int64(3), reasons["7: "+Duplicate])
	require.Equal(t, int64(2), reasons["99: "+Duplicate])
	require.Equal(t, int64(2), reasons[": the primary identifier is NULL"])
}

func TestKeysThatNeedASort(t *testing.T) {
	for _, c := range []struct{ name, table, mapping, field string }{
		{"text as integer", "id TEXT, name TEXT, level INTEGER", "", "id:id"},
		{"template", "id INTEGER, name TEXT, level INTEGER", "{{ record['id'] | prepend: 'k' }}", "id:code"},
		{"values of other types than declared", "id ANY, name TEXT, level INTEGER", "", "id:code"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, setup{table: c.table})
			w.config = config(api.OperationMirror, c.field, "name:name", "level:level")
			if c.mapping != "" {
				w.config.Mappings[0].From = api.MappingFrom{Type: api.FromLiquid, Data: api.Raw(api.Template{Text: c.mapping})}
			}
			w.fill(1, 300)
			if c.table[3:6] == "ANY" {
				w.sql("INSERT INTO people VALUES ('5x', 'text', 1), (-3, 'less', 2), ('-3', 'the same', 2)")
			}
			o := w.sync()
			require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
			n := len(w.stored())
			require.GreaterOrEqual(t, n, 300)
			w.sql("DELETE FROM people WHERE id = 17")
			o = w.sync()
			require.Equal(t, int64(1), o.SourceDeletes)
			require.Zero(t, o.SourceUpdates)
			require.Len(t, w.stored(), n-1)
		})
	}
}

func TestFullSyncSendsEverything(t *testing.T) {
	w := newWorld(t, setup{})
	w.fill(1, 25)
	require.False(t, w.sync().FullSync)
	w.change = func(j *Job) { j.Full, j.FullReason = true, "forced" }
	o := w.sync()
	require.True(t, o.FullSync)
	require.Equal(t, "forced", o.FullReason)
	require.Equal(t, [8]int64{25, 25, 0, 0, 25, 25, 0, 0}, counts(o))

	w.change = nil
	w.config.Mappings = w.config.Mappings[:2]
	o = w.sync()
	require.Equal(t, "the mappings have changed", o.FullReason)
	require.Equal(t, int64(25), o.Updated)
	require.False(t, w.sync().FullSync)
}

func TestWireOfTheBatches(t *testing.T) {
	w := newWorld(t, setup{sim: destsim.Config{Speed: rpc.Speed{MaximumBatchSize: 100, MaximumParallelBatches: 80, MaximumRecordsPerSecond: 30}}})
	w.change = func(j *Job) {}
	w.fill(1, 30)
	o := w.sync()
	require.Equal(t, int64(1), o.Calls, "a batch is never larger than maximum_records_per_second: %+v", o)
}

func (w *world) append(strategy *string) {
	w.config.Operation, w.config.HistoricalSyncOperation = api.OperationAppend, strategy
}

func TestAppendSkipsWhatIsThere(t *testing.T) {
	w := newWorld(t, setup{})
	w.append(api.Ptr(api.HistorySkip))
	w.fill(1, 2500)
	o := w.sync()
	require.Equal(t, [8]int64{2500}, counts(o), "%+v", o)
	require.Zero(t, o.Calls)
	w.fill(3000, 2)
	require.Equal(t, [8]int64{2502, 2, 0, 0, 2, 2, 0, 0}, counts(w.sync()))
	require.Len(t, w.stored(), 2)
}

func TestAppendByHighWaterMark(t *testing.T) {
	for _, skip := range []bool{false, true} {
		t.Run(fmt.Sprint("skip ", skip), func(t *testing.T) {
			w := newWorld(t, setup{table: "id INTEGER, name TEXT, level INTEGER, at TIMESTAMP"})
			w.append(nil)
			if skip {
				w.append(api.Ptr(api.HistorySkip))
			}
			w.config.HighWaterMarkAttribute = api.Ptr("at")
			add := func(id int, at string) {
				w.sql("INSERT INTO people VALUES (?, 'n', 1, ?)", id, at)
			}
			add(1, "2026-01-01T00:00:00Z")
			add(2, "2026-01-01T00:00:00.5Z")
			add(3, "2026-01-02T00:00:00Z")
			add(4, "2026-01-02T00:00:00Z")
			sent := 2
			if skip {
				sent = 0
			}
			require.Equal(t, int64(sent), w.sync().Updated, "rows at the mark wait")
			require.Len(t, w.stored(), sent)
			add(5, "2026-01-02T00:00:00Z")
			add(6, "2026-01-03T00:00:00Z")
			require.Equal(t, int64(3), w.sync().Updated, "from the mark on, below the new one")
			add(7, "2026-01-01T00:00:00Z")
			require.Zero(t, w.sync().Processed, "what comes late below the mark is not seen")
			w.sql("INSERT INTO people VALUES (8, 'n', 1, NULL), (9, 'n', 1, 'soon')")
			add(10, "2026-01-05T00:00:00Z")
			o := w.sync()
			require.Equal(t, int64(2), o.Invalid)
			require.Equal(t, int64(1), o.Updated)
			require.Len(t, w.stored(), sent+4)
		})
	}
}

// TestEqualRowsOfTwoMoments: without an identifier a row is its content and its
// moment, so that reading again from an earlier mark sends nothing twice.
func TestEqualRowsOfTwoMoments(t *testing.T) {
	w := newWorld(t, setup{table: "id INTEGER, name TEXT, level INTEGER, at TIMESTAMP"})
	file := w.files(t)
	w.append(nil)
	w.config.HighWaterMarkAttribute = api.Ptr("at")
	w.config.Mappings = w.config.Mappings[1:]
	inner := w.change
	refuse := false
	w.change = func(j *Job) {
		inner(j)
		if refuse {
			j.Destination = &refusing{j.Destination, `"name":"z"`}
		}
	}
	add := func(name, at string) { w.sql("INSERT INTO people VALUES (1, ?, 1, ?)", name, at) }
	add("a", "2026-01-01")
	add("a", "2026-01-02")
	add("a", "2026-01-02")
	add("z", "2026-01-02")
	add("end", "2026-01-09")
	refuse = true
	o := w.sync()
	require.Equal(t, [8]int64{4, 4, 0, 0, 4, 3, 1, 0}, counts(o), "%+v", o)
	refuse = false
	o = w.sync()
	require.Equal(t, [8]int64{3, 1, 0, 0, 1, 1, 0, 0}, counts(o), "the refused one alone")
	require.Len(t, lines(t, file), 1+4)
}

// refusing refuses records with a text in them, without sending them.
type refusing struct {
	destination.Sender
	text string
}

func (r *refusing) Send(ctx context.Context, plan *destination.Plan, records [][]byte) (destination.Reply, error) {
	var rest [][]byte
	for _, record := range records {
		if !strings.Contains(string(record), r.text) {
			rest = append(rest, record)
		}
	}
	if len(rest) == 0 {
		return destination.Reply{}, nil
	}
	return r.Sender.Send(ctx, plan, rest)
}
