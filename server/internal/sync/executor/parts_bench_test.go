package executor

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkParts makes the runs of BenchmarkMillion as a whole and cut into
// parts within one process, in turns: what cutting costs, and what it brings
// where processors are left over. DESTKIT_BENCH_ROWS and DESTKIT_BENCH_ROUNDS
// are as there.
func BenchmarkParts(b *testing.B) {
	rows, rounds := 1_000_000, 3
	for name, n := range map[string]*int{"DESTKIT_BENCH_ROWS": &rows, "DESTKIT_BENCH_ROUNDS": &rounds} {
		if text := os.Getenv(name); text != "" {
			value, err := strconv.Atoi(text)
			require.NoError(b, err)
			*n = value
		}
	}
	for _, kind := range []struct {
		name  string
		table func(b *testing.B, rows int) (work millionWork, change func())
	}{{"SQLite", millionSQLite}, {"PostgreSQL", millionPostgres}} {
		b.Run(kind.name, func(b *testing.B) {
			work, change := kind.table(b, rows)
			for _, parts := range []int{0, 2, 4} {
				b.Run(fmt.Sprint(parts), func(b *testing.B) {
					work.Parts = parts
					all := benchmarkMillion(b, rows, rounds, work, change)
					for _, name := range []string{"full", "unchanged", "changed"} {
						cpu := all.median(name, func(p millionPass) float64 { return p.CPU })
						b.ReportMetric(cpu*1e6/float64(rows), name+"-CPU-s/M")
					}
				})
			}
		})
	}
}
