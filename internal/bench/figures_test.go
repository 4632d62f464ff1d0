package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// figures are values of single runs, by WHAT UNIT.
type figures map[string][]float64

func (f figures) add(what, unit string, v float64) { f[what+" "+unit] = append(f[what+" "+unit], v) }

// row makes a line of the table; a nil f is a section that failed. One figure that is
// missing is a benchmark that has changed: no row is left out in silence.
func (f figures) row(x wanted, rounds int) (row, error) {
	values, under := f[x.source], f[x.over]
	switch missing := len(values) == 0 || x.over != "" && len(under) == 0; {
	case f == nil:
		return row{wanted: x, absent: "could not be measured"}, nil
	case missing && x.needs != "":
		return row{wanted: x, absent: x.needs + " is not installed"}, nil
	case missing:
		return row{wanted: x, absent: "could not be measured"}, fmt.Errorf("read the figures: there is no %s", strings.TrimSpace(x.source+" "+x.over))
	}
	r := spreadOf(values)
	if x.over != "" {
		r = ratioOf(values, under)
		what, unit, _ := strings.Cut(x.over, " ")
		r.note = fmt.Sprintf("%s: %s %s", filepath.Base(what), digits(median(under)), unit)
	}
	// A benchmark that does its rounds itself gives their spread as well as the median.
	if low, high := f[x.source+"-low"], f[x.source+"-high"]; len(low) == 1 && len(high) == 1 {
		r.low, r.high, r.runs = low[0], high[0], rounds
	}
	r.wanted = x
	return r, nil
}

var benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.+)$`)

// packageTook is the time that go test reports for a package, without building it.
var packageTook = regexp.MustCompile(`(?m)^ok\s+\S+\s+([\d.]+)s`)

// read adds the output of go test -bench: by the name of the benchmark, without
// Benchmark and the number of processors.
func (f figures) read(text string) error {
	if took, err := find(packageTook, text); err == nil {
		f.add("package", "s", took)
	}
	for line := range strings.Lines(text) {
		m := benchmarkLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		words := strings.Fields(m[2])
		if len(words)%2 != 0 {
			return fmt.Errorf("read a benchmark: %q", line)
		}
		for pair := range slices.Chunk(words, 2) {
			v, err := strconv.ParseFloat(pair[0], 64)
			if err != nil {
				return fmt.Errorf("read a benchmark: %w", err)
			}
			if f.add(m[1], pair[1], v); pair[1] == "ns/op" {
				f.add(m[1], "s/op", v/1e9)
			}
		}
	}
	return nil
}

// measuring adds the figures of a section.
type measuring func(t *testing.T, l *lab, f figures)

// How often a benchmark is run: some do the rounds themselves.
const once, everyRound = false, true

// goBench reads the benchmarks of a package.
func goBench(pkg, pattern, turn string, everyRound bool, env ...string) measuring {
	return goTest(everyRound, env, "-run", "^$", "-bench", pattern, "-benchtime", turn, "-timeout", "60m", pkg)
}

// goTest reads the figures of tests.
func goTest(everyRound bool, env []string, args ...string) measuring {
	return func(t *testing.T, l *lab, f figures) {
		rounds := 1
		if everyRound {
			rounds = flags.rounds
		}
		// Prism, a peer of a benchmark, is looked for in the path.
		path := filepath.Join(l.root, "build", "node_modules", ".bin") + string(filepath.ListSeparator) + os.Getenv("PATH")
		env := append(env, "PATH="+path, "DESTKIT_BENCH_ROUNDS="+strconv.Itoa(flags.rounds))
		for range rounds {
			text, _ := l.run(t, env, "go", append([]string{"test"}, args...)...)
			require.NoError(t, f.read(text))
		}
	}
}

// measureProgram starts the program for commands that do next to nothing.
func measureProgram(t *testing.T, l *lab, f figures) {
	info, err := os.Stat(l.program)
	require.NoError(t, err)
	f.add("size", "MB", float64(info.Size())/1e6)
	for range 10 * flags.rounds {
		for name, args := range map[string][]string{"version": {"version"}, "explain": {"explain", "RES-002"}} {
			_, cpu := l.run(t, nil, l.program, args...)
			f.add(name, "ms", 1000*cpu)
		}
	}
}

func TestBenchmarksAreRead(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "gobench.txt"))
	require.NoError(t, err)
	f := figures{}
	require.NoError(t, f.read(string(text)))
	floor := wanted{source: "Goals f1/floor"}
	r, err := f.row(floor, 3)
	require.NoError(t, err)
	require.Equal(t, row{wanted: floor, shown: 0.6082, low: 0.5672, high: 0.7958, runs: 3}, r)
	r, err = f.row(wanted{source: "AgainstMock/one/destkit req/s", over: "AgainstMock/one/prism req/s"}, 3)
	require.NoError(t, err)
	require.Equal(t, "prism: 250 req/s", r.note)
	_, err = f.row(wanted{source: "Goals miles"}, 3)
	require.ErrorContains(t, err, "there is no Goals miles")
	r, err = f.row(wanted{source: "Goals miles", needs: "a car"}, 3)
	require.NoError(t, err)
	require.Equal(t, "a car is not installed", r.verdict())
}

// TestBenchmarksAreThere: the benchmarks of other packages are found there, so that a
// package that moves does not take its goals out of the page.
func TestBenchmarksAreThere(t *testing.T) {
	text, err := os.ReadFile("table_test.go")
	require.NoError(t, err)
	asked := regexp.MustCompile(`goBench\("\./([^"]+)", "\^(Benchmark[^"$]+)\$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, asked, strings.Count(string(text), "goBench("))
	for _, m := range asked {
		paths, err := filepath.Glob(filepath.Join("..", "..", m[1], "*_test.go"))
		require.NoError(t, err)
		var code strings.Builder
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			code.Write(text)
		}
		require.Regexp(t, `(?m)^func `+m[2]+`\(`, code.String(), m[1])
	}
}
