package bench

import (
	"fmt"
	"strconv"

	"github.com/destkit/destkit/internal/quantity"
)

// section is some goals whose figures are measured together.
type section struct {
	name    string
	measure measuring
	rows    []wanted
}

// wanted is one line of the table: where its figure is, and the goal.
type wanted struct {
	part, goal string
	source     string // WHAT UNIT of a figure
	over       string // if any, WHAT UNIT of the figure that it is divided by
	unit       string // of the figure in the table
	want       float64
	is         bound
	needs      string // what may be missing; then the row reports it
}

// bound is how a figure is compared with its goal.
type bound int

const (
	atLeast bound = iota
	atMost
	beside // no goal: it explains others
)

// sections is the table of all that is measured.
func sections(o options) []section {
	each := strconv.Itoa(o.seconds) + "s"
	const one, many, proxy, rest, judge, program = "simulator, one record (f1)", "simulator, batches of 1,000", "proxy, recording and judging", "REST", "judge", "the program"
	return []section{
		{"load-one", measureLoad(false), loadRows("load, closed loop, one record, plain", 0.95, 1, true)},
		{"load-one-tls", measureLoad(true), loadRows("load, closed loop, one record, TLS", 1.15, 0.8, false)},
		{"simulator", goBench("./destsim", "^BenchmarkGoals$", each, once), []wanted{
			{one, "requests per second", "Goals f1-req/s", "", "requests/s", 0, beside, ""},
			{one, "≥ 0.70 × the epoll floor (stretch goal 0.85)", "Goals f1/floor", "", "×", 0.70, atLeast, ""},
			{one, "≥ 6 × net/http with encoding/json", "Goals f1/encoding-json", "", "×", 6, atLeast, ""},
			{many, "records per second, 1 M keys stored", "Goals b1000-records/s", "", "records/s", 0, beside, ""},
			{many, "≥ 15 × encoding/json, without a store", "Goals b1000/encoding-json", "", "×", 15, atLeast, ""},
			{many, "≥ 0.65 of that with 1 M keys stored", "Goals b1000-stored/not-stored", "", "×", 0.65, atLeast, ""},
			{many, "≤ 0.40 CPU s per M, stored", "Goals CPU-s/M", "", "CPU s", 0.40, atMost, ""},
		}},
		{"proxy", goBench("./internal/proxy", "^BenchmarkAddedLatency$", each, everyRound), []wanted{
			{proxy, "added at p50", "AddedLatency added-p50-µs", "", "µs", 0, beside, ""},
			{proxy, "added at p99 ≤ 300 µs", "AddedLatency added-p99-µs", "", "µs", 300, atMost, ""},
		}},
		{"sync", goBench("./server/internal/sync/executor", "^BenchmarkMillion$", "1x", once, "DESTKIT_BENCH_ROWS="+strconv.Itoa(o.syncRows())), syncRows(o.syncRows())},
		{"schedule", goBench("./server", "^BenchmarkDueSyncs$/^at-once$/^5000$", "1x", once), []wanted{
			{"5,000 syncs of 20 rows, due at once", "≤ 60 CPU s", "DueSyncs/at-once/5000 cpu-s", "", "CPU s", 60, atMost, ""},
			{"5,000 syncs of 20 rows, due at once", "≤ 256 MB resident", "DueSyncs/at-once/5000 peak-MB", "", "MB", 256, atMost, ""},
		}},
		{"rest", goBench("./server", "^BenchmarkAgainstMock$", each, everyRound), []wanted{
			{rest, "read of one sync: requests per second", "AgainstMock/one/destkit req/s", "", "requests/s", 0, beside, ""},
			{rest, "read of one sync: ≥ 10 × Prism", "AgainstMock/one/destkit req/s", "AgainstMock/one/prism req/s", "×", 10, atLeast, "prism"},
			{rest, "list of 100 out of 10,000: requests per second", "AgainstMock/list100/destkit req/s", "", "requests/s", 0, beside, ""},
			{rest, "list of 100 out of 10,000: ≥ 10 × Prism", "AgainstMock/list100/destkit req/s", "AgainstMock/list100/prism req/s", "×", 10, atLeast, "prism"},
		}},
		{"rest-patch", goBench("./server", "^BenchmarkPatchWhileRunsWork$", "1x", everyRound), []wanted{
			{rest, "PATCH of a sync while 500 runs work: p99 ≤ 100 ms", "PatchWhileRunsWork p99-ms", "", "ms", 100, atMost, ""},
		}},
		{"judge", goBench("./conformance/destination", "^Benchmark(ReadOnly|Full)Run$", "1x", everyRound), []wanted{
			{judge, "read-only run < 2 s", "ReadOnlyRun s/op", "", "s", 2, atMost, ""},
			{judge, "full run < 10 s", "FullRun s/op", "", "s", 10, atMost, ""},
		}},
		{"kill-matrix", goTest(once, []string{"DESTKIT_TIER=full"}, "-count=1", "-parallel", "8", "-timeout", "20m", "-run", "^TestKillMatrix$", "./conformance/destination"), []wanted{
			{judge, "kill matrix < 300 s", "package s", "", "s", 300, atMost, ""},
		}},
		{"program", measureProgram, []wanted{
			{program, "destkit version: ≤ 25 ms of processor time", "version ms", "", "ms", 25, atMost, ""},
			{program, "destkit explain: ≤ 60 ms of processor time", "explain ms", "", "ms", 60, atMost, ""},
			{program, "size, stripped: ≤ 40 MB", "size MB", "", "MB", 40, atMost, ""},
		}},
	}
}

// loadRows are those of destkit load against the simulator, next to other generators.
func loadRows(part string, wrk, processor float64, fortio bool) []wanted {
	rows := []wanted{
		{part, "requests per second, every result checked", "load requests/s", "", "requests/s", 0, beside, ""},
		{part, "client, processor time per request", "load µs", "", "µs", 0, beside, ""},
		{part, fmt.Sprintf("client, processor time per request ≤ %s × wrk", digits(processor)), "load µs", "wrk µs", "×", processor, atMost, "wrk"},
		{part, fmt.Sprintf("≥ %s × wrk", digits(wrk)), "load requests/s", "wrk requests/s", "×", wrk, atLeast, "wrk"},
		{part, "× wrk, existing keys", "again requests/s", "wrk requests/s", "×", 0, beside, "wrk"},
	}
	if fortio {
		rows = append(rows, wanted{part, "≥ 1 × fortio", "load requests/s", "fortio requests/s", "×", 1, atLeast, "fortio"})
	}
	return rows
}

// syncRows are those of executor.BenchmarkMillion, which measures ten times as many rows
// for the memory. It skips a database that is not there.
func syncRows(rows int) (list []wanted) {
	full, same := fmt.Sprintf("full sync of %s rows", quantity.Grouped(int64(rows))), fmt.Sprintf("no-change run of %s rows", quantity.Grouped(int64(rows)))
	for _, kind := range []struct {
		name string
		want float64
	}{{"SQLite", 0.50}, {"PostgreSQL", 0.40}} {
		at := fmt.Sprintf("Million/%s/%d ", kind.name, rows)
		more := fmt.Sprintf("Million/%s/%d ", kind.name, 10*rows)
		list = append(list,
			wanted{full, kind.name + ": M rows per second", at + "full-Mrows/s", "", "M rows/s", 0, beside, kind.name},
			wanted{full, fmt.Sprintf("%s: ≥ %s × reading alone", kind.name, digits(kind.want)), at + "full/alone", "", "×", kind.want, atLeast, kind.name},
			wanted{full, kind.name + ": ≤ 64 MB resident", at + "MB", "", "MB", 64, atMost, kind.name},
			// Differences below a tenth are noise of the garbage collector.
			wanted{full, kind.name + ": memory ≤ 1.10 × with 10 times as many rows", more + "MB", at + "MB", "×", 1.10, atMost, kind.name},
			wanted{same, kind.name + ": ≥ 0.70 × reading alone", at + "unchanged/alone", "", "×", 0.70, atLeast, kind.name},
			wanted{same, kind.name + ": no request sent", at + "unchanged-batches", "", "batches", 0, atMost, kind.name},
			wanted{"run with 1 % changed", kind.name + ": ≥ 0.85 × the no-change run", at + "changed/unchanged", "", "×", 0.85, atLeast, kind.name},
		)
	}
	return list
}

// syncRows is fewer than a million to try it; the table notes it.
func (o options) syncRows() int { return min(1_000_000, o.seconds*100_000) }
