package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// foreseeable are the failures that have nothing to do with the destination.
var foreseeable = []string{CodeEmptySource, CodeConfiguration, CodeSource}

// requireForeseen holds a dry run against the run that followed it. One precedes every
// run of these tests that starts afresh.
func requireForeseen(t require.TestingT, e *Executor, dry *DryRun, err error, o Outcome) {
	if e.options.Deviations != (Deviations{}) {
		return // a rule is broken on purpose, behind the comparison too
	}
	require.NoError(t, err)
	info := fmt.Sprintf("dry run %+v\nrun %+v", *dry, o)
	var rows int64
	for _, r := range dry.Reasons {
		rows += r.Rows
	}
	require.Equal(t, dry.SourceInvalids, rows, info)
	if dry.Skipped == 0 {
		require.Equal(t, dry.SourceUpdates, dry.Created+dry.Changed+dry.Resent, info)
	}
	shown := map[string]int64{}
	for _, s := range dry.Samples {
		shown[s.Action] += s.Rows
	}
	for action, n := range map[string]int64{
		ActionCreate: dry.Created, ActionChange: dry.Changed, ActionResend: dry.Resent, ActionDelete: dry.SourceDeletes, ActionSkip: dry.Skipped, ActionRefuse: rows,
	} {
		require.LessOrEqual(t, shown[action], n, info)
		require.Equal(t, n > 0, shown[action] > 0, info)
	}
	switch {
	case o.Status == api.RunCompleted:
		require.Nil(t, dry.Failure, info)
		require.Equal(t,
			[]any{o.SourceRecords, o.SourceUpdates, o.SourceDeletes, o.SourceInvalids, o.FullSync, o.FullReason},
			[]any{dry.SourceRecords, dry.SourceUpdates, dry.SourceDeletes, dry.SourceInvalids, dry.FullSync, dry.FullReason}, info)
	case slices.Contains(foreseeable, o.Code):
		require.NotNil(t, dry.Failure, info)
		require.Equal(t, [2]string{o.Code, o.Message}, [2]string{dry.Failure.Code, dry.Failure.Message}, info)
	case o.Status == api.RunFailed:
		require.Nil(t, dry.Failure, info)
	}
}

// dry makes a dry run of the world.
func (w *world) dry(most int) *DryRun {
	w.t.Helper()
	d, err := w.executor.DryRun(context.Background(), w.job(), most)
	require.NoError(w.t, err)
	return d
}

// sampleLines are the samples of a dry run, for reading.
func sampleLines(d *DryRun) (out []string) {
	for _, s := range d.Samples {
		out = append(out, fmt.Sprintf("%s %s %s %s %s %d", s.Action, s.Identifier, s.Operation, s.Record, s.Reason, s.Rows))
	}
	return out
}

// TestDryRunTellsWhatARunWouldDo: each action with the record that would be sent, and
// nothing is sent or written.
func TestDryRunTellsWhatARunWouldDo(t *testing.T) {
	w := newWorld(t, setup{})
	w.config = config(api.OperationMirror, "id:id", "name:name", "level:level")
	w.fill(1, 5)
	require.Equal(t, api.RunCompleted, w.sync().Status)
	before, meta := w.stored(), w.meta()
	w.sql("UPDATE people SET name = 'other' WHERE id = 2")
	w.sql("DELETE FROM people WHERE id = 3")
	w.sql("INSERT INTO people VALUES (9, 'new', 1), (NULL, 'none', 1), (4, 'twice', 1), (10, 'ten', 'many')")
	d := w.dry(10)
	require.Nil(t, d.Failure)
	require.Equal(t, []string{
		`create 9 upsert {"id":9,"name":"new","level":1}  1`,
		`change 2 upsert {"id":2,"name":"other","level":2}  1`,
		`delete 3 delete {"id":3}  1`,
	}, sampleLines(d)[:3])
	require.Equal(t, [6]int64{1, 1, 0, 1, 2, 4}, [6]int64{d.Created, d.Changed, d.Resent, d.SourceDeletes, d.Unchanged, d.SourceInvalids})
	require.Len(t, d.Samples, 6)
	require.Equal(t, Reason{Duplicate, 2}, d.Reasons[0])
	require.Equal(t, before, w.stored())
	require.Equal(t, meta, w.meta())
	require.Equal(t, d, w.dry(10), "a dry run changes nothing that another one sees")
	require.Len(t, w.dry(0).Samples, 0)

	w.change = func(j *Job) { j.Full, j.FullReason = true, "it was forced" }
	full := w.dry(10)
	require.Equal(t, [3]int64{1, 1, 2}, [3]int64{full.Created, full.Changed, full.Resent})
	require.True(t, full.FullSync)
	require.Equal(t, "it was forced", full.FullReason)
	require.Equal(t, api.RunCompleted, w.sync().Status)
}

func (w *world) meta() ledger.Meta {
	w.t.Helper()
	meta, err := w.ledger.Sync(7).Meta()
	require.NoError(w.t, err)
	return meta
}

var operationCases = []struct {
	name   string
	config func(*api.SyncConfig)
}{
	{"upsert", func(*api.SyncConfig) {}},
	{"insert", func(c *api.SyncConfig) { c.Operation = api.OperationInsert }},
	{"update", func(c *api.SyncConfig) { c.Operation = api.OperationUpdate }},
	{"mirror", mirror(api.MirrorDeletes)},
	{"mirror nulls", mirror(api.MirrorNulls)},
	{"mirror swap", mirror(api.MirrorSwap)},
	{"mirror whole deletes", func(c *api.SyncConfig) {
		mirror(api.MirrorDeletes)(c)
		c.AdvancedConfiguration = map[string]json.RawMessage{"delete_records": api.Raw("full")}
	}},
	{"append", func(c *api.SyncConfig) { c.Operation = api.OperationAppend }},
	{"append skip", func(c *api.SyncConfig) {
		c.Operation, c.HistoricalSyncOperation = api.OperationAppend, api.Ptr(api.HistorySkip)
	}},
	{"append by mark", func(c *api.SyncConfig) {
		c.Operation, c.HighWaterMarkAttribute = api.OperationAppend, api.Ptr("at")
	}},
}

func mirror(strategy string) func(*api.SyncConfig) {
	return func(c *api.SyncConfig) { c.Operation, c.MirrorStrategy = api.OperationMirror, api.Ptr(strategy) }
}

// TestDryRunFollowsEveryHistory: one history for each operation; w.sync holds each run against the dry run before it.
func TestDryRunFollowsEveryHistory(t *testing.T) {
	for _, c := range operationCases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, setup{table: "id INTEGER, name TEXT, level INTEGER, at TEXT"})
			c.config(&w.config)
			add := func(from, n int) {
				for id := from; id < from+n; id++ {
					w.sql("INSERT INTO people VALUES (?, ?, ?, ?)", id, fmt.Sprintf("name %d", id), id%7, fmt.Sprintf("2026-01-01T%02d:00:00Z", id%24))
				}
			}
			add(1, 30)
			w.arm(destsim.Fault{Kind: "record_failure", When: destsim.Trigger{Identifier: api.Raw(4)}})
			for _, change := range []string{
				"SELECT 1",
				"UPDATE people SET name = 'changed' WHERE id IN (2, 4, 20)",
				"DELETE FROM people WHERE id IN (5, 6, 25)",
				"INSERT INTO people VALUES (7, 'twice', 1, '2026-02-01'), (NULL, 'none', 1, '2026-02-01'), (100, 'new', 1, '2026-02-02'), (101, 'text', 'no number', '2026-02-01')",
				"DELETE FROM people WHERE id = 7 AND name = 'twice'",
				"UPDATE people SET at = '2026-03-01' WHERE id IN (8, 9)",
				"DELETE FROM people",
			} {
				w.sql(change)
				w.sync()
			}
			add(1, 10)
			w.change = func(j *Job) { j.Full, j.FullReason = true, "it was forced" }
			w.sync()
			w.change = nil
			w.config.Mappings = slices.Clone(w.config.Mappings[:2])
			w.sync()
		})
	}
}

// TestDryRunSamplesAreBounded: neither many nor large records are kept.
func TestDryRunSamplesAreBounded(t *testing.T) {
	w := newWorld(t, setup{})
	w.sql("WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 200) INSERT INTO people (id, name, level) SELECT v, hex(zeroblob(100000)), 1 FROM n")
	d := w.dry(1_000_000)
	require.EqualValues(t, 200, d.Created)
	require.Len(t, d.Samples, MaxDrySamples)
	kept := 0
	for _, s := range d.Samples {
		require.Greater(t, s.Bytes, 200_000)
		kept += len(s.Record)
	}
	require.NotZero(t, kept)
	require.LessOrEqual(t, kept, dryMemory)
	require.Nil(t, d.Samples[MaxDrySamples-1].Record)
}

// TestDryRunWhereItCannotTell: a run that is active, and one whose log waits for the
// next run.
func TestDryRunWhereItCannotTell(t *testing.T) {
	w := newWorld(t, setup{})
	w.fill(1, 3)
	open, err := w.ledger.Sync(7).Begin(1, ledger.Meta{})
	require.NoError(t, err)
	_, err = w.executor.DryRun(t.Context(), w.job(), 1)
	require.ErrorIs(t, err, ledger.ErrBusy)
	require.NoError(t, open.Append(ledger.Batch{Operation: rpc.OperationUpsert, Records: []ledger.Record{{Key: []byte("1"), Verdict: ledger.Acknowledged}}}))
	require.NoError(t, open.Close())
	_, err = w.executor.DryRun(t.Context(), w.job(), 1)
	require.ErrorIs(t, err, ErrUnsettled)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = w.executor.DryRun(ctx, w.job(), 1)
	require.ErrorIs(t, err, context.Canceled)
}
