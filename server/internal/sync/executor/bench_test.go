package executor

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// instant is a destination that accepts everything at once, so that what is
// measured is the executor.
type instant struct{ batch int64 }

func (i instant) Speed(context.Context) (destination.Speed, error) {
	return destination.Speed{Speed: rpc.Speed{MaximumBatchSize: i.batch, MaximumParallelBatches: 16, MaximumRecordsPerSecond: 1 << 40}}, nil
}

func (instant) Close() error { return nil }

// Send answers for the first member of each record.
func (instant) Send(_ context.Context, _ *destination.Plan, records [][]byte) (destination.Reply, error) {
	reply := destination.Reply{Results: make([]rpc.RecordResult, len(records))}
	for i, record := range records {
		at := len(`{"id":`)
		end := at
		for record[end] != ',' {
			end++
		}
		reply.Results[i] = rpc.RecordResult{Identifier: record[at:end], Success: true}
	}
	return reply, nil
}

// BenchmarkRuns makes three runs over the same rows: the first, one without
// changes, and one with 1 % changed. The ledger is on disk and durable.
func BenchmarkRuns(b *testing.B) {
	const rows = 200_000
	for _, wire := range []bool{false, true} {
		b.Run("http="+strconv.FormatBool(wire), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				opened, err := ledger.Open(ledger.Options{Dir: b.TempDir()})
				require.NoError(b, err)
				sim := people()
				sim.Speed = rpc.Speed{MaximumBatchSize: 1000, MaximumParallelBatches: 16, MaximumRecordsPerSecond: 100_000_000}
				for _, name := range []string{"c3", "c4", "c5", "c6", "c7", "c8", "c9"} {
					sim.Objects[0].Fields = append(sim.Objects[0].Fields, destsim.FieldConfig{Name: name, Type: rpc.TypeString})
				}
				w := newWorld(b, setup{sim: sim, options: Options{Ledger: opened}, table: "id INTEGER PRIMARY KEY, name TEXT, level INTEGER, c3 TEXT, c4 TEXT, c5 TEXT, c6 TEXT, c7 TEXT, c8 TEXT, c9 TEXT"})
				if !wire {
					w.sender = instant{1000}
				}
				w.config = config(api.OperationUpsert, "id:id", "name:name", "level:level", "c3:c3", "c4:c4", "c5:c5", "c6:c6", "c7:c7", "c8:c8", "c9:c9")
				w.sql("WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < ?) INSERT INTO people SELECT v, 'name ' || v, v % 7, 'some text', 'street ' || v, 'city', 'a', 'b', 'c', v || '@example.com' FROM n", rows)
				for _, step := range []struct {
					name, change string
					updated      int64
				}{{"full", "", rows}, {"unchanged", "", 0}, {"1%", "UPDATE people SET level = 9 WHERE id % 100 = 0", rows / 100}} {
					if step.change != "" {
						w.sql(step.change)
					}
					b.StartTimer()
					before := b.Elapsed()
					o := w.sync()
					took := b.Elapsed() - before
					b.StopTimer()
					require.Equal(b, step.updated, o.Updated, "%+v", o)
					b.ReportMetric(rows/took.Seconds()/1e6, step.name+"-Mrows/s")
				}
				require.NoError(b, opened.Close())
				b.StartTimer()
			}
		})
	}
}
