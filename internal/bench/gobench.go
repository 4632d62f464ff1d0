package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// figures are what the benchmarks of a package report: by the name of the
// benchmark, without Benchmark and the number of processors, and the unit. One
// that ran several times has several values.
type figures map[string]map[string][]float64

var benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.+)$`)

// parseFigures reads the output of go test -bench.
func parseFigures(text []byte) (figures, error) {
	all := figures{}
	for line := range strings.Lines(string(text)) {
		m := benchmarkLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		words := strings.Fields(m[2])
		if len(words)%2 != 0 {
			return all, fmt.Errorf("read a benchmark: %q", line)
		}
		if all[m[1]] == nil {
			all[m[1]] = map[string][]float64{}
		}
		for i := 0; i < len(words); i += 2 {
			v, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return all, fmt.Errorf("read a benchmark: %w", err)
			}
			all[m[1]][words[i+1]] = append(all[m[1]][words[i+1]], v)
		}
	}
	return all, nil
}

// value is one figure of one benchmark.
func (f figures) value(benchmark, unit string) (float64, error) {
	list := f[benchmark][unit]
	if len(list) == 0 {
		return 0, fmt.Errorf("read a benchmark: %s reports no %s", benchmark, unit)
	}
	return median(list), nil
}

// row is one figure with the spread that stands beside it as UNIT-low and
// UNIT-high, of so many runs.
func (f figures) row(benchmark, unit string, runs int) (row, error) {
	v, err := f.value(benchmark, unit)
	if err != nil {
		return row{}, err
	}
	r := row{shown: v, low: v, high: v, runs: 1}
	// Without these two it is one figure of one run.
	low, errLow := f.value(benchmark, unit+"-low")
	high, errHigh := f.value(benchmark, unit+"-high")
	if errLow == nil && errHigh == nil {
		r.low, r.high, r.runs = low, high, runs
	}
	return r, nil
}

// benchmarks runs those of a package.
func (w *workshop) benchmarks(pkg, pattern, turn string, env ...string) (figures, error) {
	// Prism, a peer of a benchmark, is looked for in the path.
	env = append(env, "PATH="+strings.Join([]string{filepath.Join(w.root, "build", "node_modules", ".bin"), filepath.Join(w.root, "build", "bin"), pathOfSystem()}, string(filepath.ListSeparator)),
		"DESTKIT_BENCH_ROUNDS="+strconv.Itoa(w.options.rounds))
	e, err := w.finish(env, "go", "test", "-run", "^$", "-bench", pattern, "-benchtime", turn, "-timeout", "60m", pkg)
	if err != nil {
		return nil, err
	}
	f, err := parseFigures(e.text)
	if err == nil && len(f) == 0 {
		err = fmt.Errorf("read the benchmarks of %s: there are none\n%s", pkg, tail(e.text))
	}
	return f, err
}
