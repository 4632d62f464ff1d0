package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// figures are values of single runs, by WHAT UNIT.
type figures map[string][]float64

func (f figures) add(what, unit string, v float64) { f[what+" "+unit] = append(f[what+" "+unit], v) }

// row makes a line of the table. One figure that is missing is a benchmark that has
// changed: no row is left out in silence.
func (f figures) row(x wanted, rounds int) (row, error) {
	values, under := f[x.source], f[x.over]
	if len(values) == 0 || (x.over != "" && len(under) == 0) {
		if x.needs != "" {
			return row{wanted: x, absent: x.needs + " is not installed"}, nil
		}
		return row{wanted: x, absent: "could not be measured"}, fmt.Errorf("read the figures: there is no %s", strings.TrimSpace(x.source+" "+x.over))
	}
	r := spreadOf(values)
	if x.over != "" {
		r = ratioOf(values, under)
		what, unit, _ := strings.Cut(x.over, " ")
		r.note = fmt.Sprintf("%s: %s %s", filepath.Base(what), digits(median(under)), unit)
	}
	// A benchmark that does its rounds itself gives their spread beside the median.
	if low, high := f[x.source+"-low"], f[x.source+"-high"]; len(low) == 1 && len(high) == 1 {
		r.low, r.high, r.runs = low[0], high[0], rounds
	}
	r.wanted = x
	return r, nil
}

var benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.+)$`)

// packageTook is how long go test says that a package took, without building it.
var packageTook = regexp.MustCompile(`(?m)^ok\s+\S+\s+([\d.]+)s`)

// read adds the output of go test -bench: by the name of the benchmark, without
// Benchmark and the number of processors.
func (f figures) read(text []byte) error {
	if took, err := find(packageTook, text); err == nil {
		f.add("package", "s", took)
	}
	for line := range strings.Lines(string(text)) {
		m := benchmarkLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		words := strings.Fields(m[2])
		if len(words)%2 != 0 {
			return fmt.Errorf("read a benchmark: %q", line)
		}
		for i := 0; i < len(words); i += 2 {
			v, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return fmt.Errorf("read a benchmark: %w", err)
			}
			if f.add(m[1], words[i+1], v); words[i+1] == "ns/op" {
				f.add(m[1], "s/op", v/1e9)
			}
		}
	}
	return nil
}

// How often a benchmark is run: some do the rounds themselves.
const once, everyRound = false, true

// goBench reads the benchmarks of a package.
func goBench(pkg, pattern, turn string, everyRound bool, env ...string) func(*workshop) (figures, error) {
	return goTest(everyRound, env, "-run", "^$", "-bench", pattern, "-benchtime", turn, "-timeout", "60m", pkg)
}

// goTest reads the figures of tests.
func goTest(everyRound bool, env []string, args ...string) func(*workshop) (figures, error) {
	return func(w *workshop) (figures, error) {
		f, rounds := figures{}, 1
		if everyRound {
			rounds = w.options.rounds
		}
		// Prism, a peer of a benchmark, is looked for in the path.
		path := filepath.Join(w.root, "build", "node_modules", ".bin") + string(filepath.ListSeparator) + os.Getenv("PATH")
		env := append(env, "PATH="+path, "DESTKIT_BENCH_ROUNDS="+strconv.Itoa(w.options.rounds))
		for range rounds {
			e, err := w.finish(env, "go", append([]string{"test"}, args...)...)
			if err != nil {
				return nil, err
			}
			if err := f.read(e.text); err != nil {
				return nil, err
			}
		}
		return f, nil
	}
}

// measureProgram starts the program for commands that do next to nothing.
func measureProgram(w *workshop) (figures, error) {
	f := figures{}
	info, err := os.Stat(w.program)
	if err != nil {
		return nil, fmt.Errorf("measure the program: %w", err)
	}
	f.add("size", "MB", float64(info.Size())/1e6)
	for range 10 * w.options.rounds {
		for name, args := range map[string][]string{"version": {"version"}, "explain": {"explain", "RES-002"}} {
			e, err := w.finish(nil, w.program, args...)
			if err != nil {
				return nil, err
			}
			f.add(name, "ms", 1000*e.cpu)
		}
	}
	return f, nil
}
