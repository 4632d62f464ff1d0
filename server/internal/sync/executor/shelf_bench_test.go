package executor

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkShelf is a sync of a million rows from SQLite whose ledger is in files,
// and in PostgreSQL, in turns: durations and processor seconds of this process, the
// one of the database has its own. The variables are those of BenchmarkMillion;
// DESTKIT_BENCH_POSTGRES is the URL of a PostgreSQL that waits for its disk, which
// that of the tests does not.
func BenchmarkShelf(b *testing.B) {
	rows, rounds := 1_000_000, 5
	if n, err := strconv.Atoi(os.Getenv("DESTKIT_BENCH_ROWS")); err == nil {
		rows = n
	}
	if n, err := strconv.Atoi(os.Getenv("DESTKIT_BENCH_ROUNDS")); err == nil {
		rounds = n
	}
	work, change := millionSQLite(b, rows)
	work.Destination = startMillionDestination(b)
	all := map[bool]millionResults{false: {}, true: {}}
	for range b.N * rounds {
		for _, shared := range []bool{false, true} {
			work.Ledger = newLedgerPlace(b, shared)
			for _, passes := range [][]string{{"full", "unchanged"}, {"changed"}} {
				if passes[0] == "changed" {
					change()
				}
				work.Passes = passes
				for _, p := range runMillion(b, work) {
					require.EqualValues(b, rows, p.Rows, p.Name)
					all[shared][p.Name] = append(all[shared][p.Name], p)
				}
			}
		}
	}
	fmt.Print("\n| pass | files, s | shelf, s | shelf ÷ files | CPU files | CPU shelf | MB files | MB shelf |\n|---|---|---|---|---|---|---|---|\n")
	for _, name := range []string{"full", "unchanged", "changed"} {
		line := "| " + name
		var medians []float64
		for _, of := range []func(millionPass) float64{
			func(p millionPass) float64 { return p.Seconds }, func(p millionPass) float64 { return p.CPU }, func(p millionPass) float64 { return p.HighMB },
		} {
			medians = append(medians, all[false].median(name, of), all[true].median(name, of))
		}
		medians = slices.Insert(medians, 2, medians[1]/medians[0])
		for _, m := range medians {
			line += fmt.Sprintf(" | %.2f", m)
		}
		fmt.Println(line + " |")
		b.ReportMetric(medians[2], name+"-shelf/files")
	}
	b.ReportMetric(0, "ns/op")
}
