package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"
)

func pathOfSystem() string { return os.Getenv("PATH") }

func (w *workshop) turn() string { return strconv.Itoa(w.options.seconds) + "s" }

// wanted is a figure of a benchmark and the goal that it has.
type wanted struct {
	benchmark, unit string // where the figure is
	part, goal      string
	shown           string // unit in the table
	want            float64
	atMost, context bool
	note            string
}

// rows finds the figures.
func (f figures) rows(runs int, list []wanted) ([]row, error) {
	// One figure that is missing is a benchmark that has changed: no row is left out
	// in silence.
	var rows []row
	for _, x := range list {
		r, err := f.row(x.benchmark, x.unit, runs)
		if err != nil {
			return rows, err
		}
		r = r.called(x.part, x.goal, x.shown).with("%s", x.note)
		r.want, r.atMost, r.context = x.want, x.atMost, x.context
		rows = append(rows, r)
	}
	return rows, nil
}

func takesSimulator(o options) time.Duration {
	return time.Duration(6*o.rounds*o.seconds+25) * time.Second
}

// measureSimulator reads destsim.BenchmarkGoals: each server a process of its
// own, the same client of raw epoll for all, every reply compared.
func measureSimulator(w *workshop) ([]row, error) {
	f, err := w.benchmarks("./destsim", "^BenchmarkGoals$", w.turn())
	if err != nil {
		return nil, err
	}
	const one, many = "simulator, one record (f1)", "simulator, batches of 1,000"
	return f.rows(w.options.rounds, []wanted{
		{"Goals", "f1-req/s", one, "requests per second", "requests/s", 0, false, true, "every reply compared with the expected one, 1 % of the records refused"},
		{"Goals", "f1/floor", one, "≥ 0.70 × the epoll floor (stretch goal 0.85)", "×", 0.70, false, false, "the floor inspects no byte"},
		{"Goals", "f1/encoding-json", one, "≥ 6 × net/http with encoding/json", "×", 6, false, false, ""},
		{"Goals", "b1000-records/s", many, "records per second, 1 M keys stored", "records/s", 0, false, true, ""},
		{"Goals", "b1000/encoding-json", many, "≥ 15 × encoding/json, without a store", "×", 15, false, false, ""},
		{"Goals", "b1000-stored/not-stored", many, "≥ 0.65 of that with 1 M keys stored", "×", 0.65, false, false, ""},
		{"Goals", "CPU-s/M", many, "≤ 0.40 CPU s per M, stored", "CPU s", 0.40, true, false, ""},
	})
}

func takesProxy(o options) time.Duration { return time.Duration(3*o.rounds*o.seconds+30) * time.Second }

// measureProxy reads the benchmarks of a proxy that records and judges all that goes by,
// with client, proxy and endpoint in one process.
func measureProxy(w *workshop) ([]row, error) {
	const part = "proxy, recording and judging"
	var p50, p99, through, direct []float64
	for round := range w.options.rounds {
		f, err := w.benchmarks("./internal/proxy", "^Benchmark(AddedLatency|Throughput|ThroughputDirect)$", w.turn())
		if err != nil {
			return nil, err
		}
		for _, x := range []struct {
			benchmark, unit string
			into            *[]float64
		}{
			{"AddedLatency", "added-p50-µs", &p50}, {"AddedLatency", "added-p99-µs", &p99},
			{"Throughput", "calls/s", &through}, {"ThroughputDirect", "calls/s", &direct},
		} {
			v, err := f.value(x.benchmark, x.unit)
			if err != nil {
				return nil, err
			}
			*x.into = append(*x.into, v)
		}
		w.say("  round %d: %s calls/s, p99 %s µs more", round+1, digits(through[round]), digits(p99[round]))
	}
	return []row{
		spreadOf(p50).called(part, "added at p50", "µs").figure().with("one connection, calls in turn with and without it"),
		spreadOf(p99).called(part, "added at p99 ≤ 300 µs", "µs").most(300),
		spreadOf(through).called(part, "≥ 20,000 requests per second", "requests/s").atLeast(20_000).
			with("16 connections; without the proxy %s", digits(median(direct))),
	}, nil
}

func takesSync(o options) time.Duration { return time.Duration(16*o.rounds+200) * time.Second }

// measureSync reads executor.BenchmarkMillion: for each database three rounds of
// 1 M rows, and one of ten times as many for the memory.
func measureSync(w *workshop) ([]row, error) {
	rows := 1_000_000
	var env []string
	if w.options.seconds < 10 { // to try it: the table says so
		rows = w.options.seconds * 10_000
		env = append(env, "DESTKIT_BENCH_ROWS="+strconv.Itoa(rows))
	}
	f, err := w.benchmarks("./server/internal/sync/executor", "^BenchmarkMillion$", "1x", env...)
	if err != nil {
		return nil, err
	}
	full := fmt.Sprintf("full sync of %s rows", grouped(int64(rows)))
	same := fmt.Sprintf("no-change run of %s rows", grouped(int64(rows)))
	const some = "run with 1 % changed"
	var fulls, unchanged, changed []row
	for _, kind := range []struct {
		name string
		want float64
	}{{"SQLite", 0.70}, {"PostgreSQL", 0.60}} {
		at, more := fmt.Sprintf("Million/%s/%d", kind.name, rows), fmt.Sprintf("Million/%s/%d", kind.name, 10*rows)
		// The benchmark skips a database that is not there.
		if f[at] == nil {
			fulls = append(fulls, row{part: full, goal: kind.name, absent: kind.name + " is not installed"})
			continue
		}
		a, err := f.rows(w.options.rounds, []wanted{
			{at, "full-Mrows/s", full, kind.name + ": M rows per second", "M rows/s", 0, false, true, ""},
			{at, "full/alone", full, fmt.Sprintf("%s: ≥ %s × reading alone", kind.name, digits(kind.want)), "×", kind.want, false, false, "stretch goal 0.90"},
			{at, "MB", full, kind.name + ": ≤ 64 MB resident", "MB", 64, true, false, ""},
			{more, "MB", full, kind.name + ": ≤ 64 MB with 10 times as many rows", "MB", 64, true, false, ""},
		})
		if err != nil {
			return nil, err
		}
		// Not growing: what differs by less than a tenth is the collector's mood.
		little, large := a[2].shown, a[3].shown
		a = append(a, spreadOf([]float64{large/little - 1}).called(full, kind.name+": growth of memory ≤ 10 %", "").most(0.10))
		b, err := f.rows(w.options.rounds, []wanted{
			{at, "unchanged/alone", same, kind.name + ": ≥ 0.85 × reading alone", "×", 0.85, false, false, ""},
			{at, "unchanged-batches", same, kind.name + ": no request sent", "batches", 0, true, false, ""},
			{at, "changed/unchanged", some, kind.name + ": ≥ 0.85 × the no-change run", "×", 0.85, false, false, ""},
		})
		if err != nil {
			return nil, err
		}
		fulls, unchanged, changed = append(fulls, a...), append(unchanged, b[:2]...), append(changed, b[2])
	}
	return slices.Concat(fulls, unchanged, changed), nil
}

func takesREST(o options) time.Duration {
	return time.Duration(o.rounds*(5*o.seconds+8)) * time.Second
}

// measureREST reads server.BenchmarkAgainstMock, once for every round.
func measureREST(w *workshop) ([]row, error) {
	const part = "REST"
	// The benchmark makes its 10,000 syncs again for each round, so that service and
	// mock are measured in turns.
	own, mock := map[string][]float64{}, map[string][]float64{}
	works := []struct{ name, says string }{{"one", "read of one sync"}, {"list100", "list of 100 out of 10,000"}}
	for round := range w.options.rounds {
		f, err := w.benchmarks("./server", "^BenchmarkAgainstMock$", w.turn())
		if err != nil {
			return nil, err
		}
		for _, work := range works {
			v, err := f.value("AgainstMock/"+work.name+"/destkit", "req/s")
			if err != nil {
				return nil, err
			}
			own[work.name] = append(own[work.name], v)
			if v, err := f.value("AgainstMock/"+work.name+"/prism", "req/s"); err == nil {
				mock[work.name] = append(mock[work.name], v)
			}
			w.say("  round %d, %s: %s requests/s", round+1, work.says, digits(v))
		}
	}
	var rows []row
	for _, work := range works {
		rows = append(rows, spreadOf(own[work.name]).called(part, work.says+": requests per second", "requests/s").figure().
			with("every request checked against the document"))
		goal := work.says + ": ≥ 10 × Prism"
		if len(mock[work.name]) == 0 {
			rows = append(rows, row{part: part, goal: goal, absent: "peer missing: " + prism})
			continue
		}
		rows = append(rows, ratioOf(own[work.name], mock[work.name]).called(part, goal, "×").atLeast(10).
			with("Prism: %s requests/s", digits(median(mock[work.name]))))
	}
	return rows, nil
}

func takesJudge(o options) time.Duration { return time.Duration(4*o.rounds+10) * time.Second }

// measureJudge reads the benchmarks of whole runs of the judge, against a simulator
// in the same process.
func measureJudge(w *workshop) ([]row, error) {
	const part = "judge"
	times := map[string][]float64{}
	for range w.options.rounds {
		f, err := w.benchmarks("./conformance/destination", "^Benchmark(ReadOnly|Full)Run$", "1x")
		if err != nil {
			return nil, err
		}
		for _, name := range []string{"ReadOnlyRun", "FullRun"} {
			v, err := f.value(name, "ns/op")
			if err != nil {
				return nil, err
			}
			times[name] = append(times[name], v/1e9)
		}
	}
	return []row{
		spreadOf(times["ReadOnlyRun"]).called(part, "read-only run < 2 s", "s").most(2),
		spreadOf(times["FullRun"]).called(part, "full run < 10 s", "s").most(10),
	}, nil
}

// matrixTook is how long go test says that a package took, without building it.
var matrixTook = regexp.MustCompile(`(?m)^ok\s+\S+/conformance/destination\s+([\d.]+)s`)

func takesMatrix(options) time.Duration { return 3 * time.Minute }

// measureMatrix breaks every rule once, as make matrix does.
func measureMatrix(w *workshop) ([]row, error) {
	e, err := w.finish([]string{"DESTKIT_TIER=matrix"}, "go", "test", "-count=1", "-parallel", "8", "-timeout", "20m", "-run", "^TestKillMatrix$", "./conformance/destination")
	if err != nil {
		return nil, err
	}
	took, err := find(matrixTook, e.text)
	if err != nil {
		return nil, err
	}
	return []row{spreadOf([]float64{took}).called("judge", "kill matrix < 300 s", "s").most(300)}, nil
}
