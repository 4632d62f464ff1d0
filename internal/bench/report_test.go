package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name                      string
		row                       row
		measured, spread, verdict string
	}{
		{"median and spread", spreadOf([]float64{3, 1, 2}).of("p", "g", "×").atLeast(2), "2 ×", "1 to 3", "met"},
		{"too little", spreadOf([]float64{0.9, 0.9}).of("p", "g", "×").atLeast(1), "0.9 ×", "0.9 to 0.9", "missed by 10.0 %"},
		{"too much", spreadOf([]float64{2.5}).of("p", "g", "ms").most(2), "2.5 ms", "one run", "missed by 25.0 %"},
		{"far too much", spreadOf([]float64{2000}).of("p", "g", "ms").most(2), "2,000 ms", "one run", "missed by 99900.0 %"},
		{"none allowed", spreadOf([]float64{3}).of("p", "g", "").most(0), "3", "one run", "missed"},
		{"just enough", spreadOf([]float64{0.999}).of("p", "g", "").atLeast(0.999), "0.999", "one run", "met"},
		{"beside", spreadOf([]float64{51234.4}).of("p", "g", "requests/s"), "51,234 requests/s", "one run", ""},
		{"missing", row{absent: "wrk is not installed"}, "–", "–", "wrk is not installed"},
		{"ratio of medians", ratioOf([]float64{10, 20, 30}, []float64{10, 10, 20}).of("p", "g", "×").atLeast(2), "2 ×", "1 to 2", "met"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.measured, c.row.measured())
			require.Equal(t, c.spread, c.row.spread())
			require.Equal(t, c.verdict, c.row.verdict())
		})
	}
	require.InDelta(t, 2.5, median([]float64{4, 1, 2, 3}), 1e-9)
}

func someReport() report {
	return report{
		rows: []row{
			spreadOf([]float64{1, 2, 3}).of("load", "≥ 1 × wrk", "×").atLeast(1).with("wrk: 5 requests/s"),
			spreadOf([]float64{9}).of("load", "p99 ≤ 2 ms", "ms").most(2),
			row{absent: "prism is not installed"}.of("REST", "≥ 10 × Prism", "×"),
			spreadOf([]float64{5}).of("REST", "requests per second", "requests/s"),
		},
		machine: "Some CPU, 2 cores, Linux 6.18, go1.26", options: options{seconds: 10, rounds: 3},
		took: 90 * time.Second,
	}
}

func TestTheTableIsPrinted(t *testing.T) {
	require.Equal(t, `| part | goal                | measured (median) | spread  | met                    | notes             |
|------|---------------------|-------------------|---------|------------------------|-------------------|
| load | ≥ 1 × wrk           | 2 ×               | 1 to 3  | met                    | wrk: 5 requests/s |
|      | p99 ≤ 2 ms          | 9 ms              | one run | missed by 350.0 %      |                   |
| REST | ≥ 10 × Prism        | –                 | –       | prism is not installed |                   |
|      | requests per second | 5 requests/s      | one run |                        |                   |
`, someReport().table())
	require.Contains(t, someReport().text(), "Some CPU, 2 cores, Linux 6.18, go1.26.\n1 goals met, 1 missed, 1 not measured.\n")
}

// What people have written around the table is theirs.
func TestThePageKeepsWhatIsWrittenByHand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "performance.md")
	require.NoError(t, os.WriteFile(path, []byte("# Performance\n\n"+"<!-- measured: written by make bench UPDATE=1 -->\n\n<!-- end of what is written -->"+"\n\n## How it is measured\n"), 0o600))
	require.NoError(t, someReport().write(path))
	first, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(first), "<!-- end of what is written -->\n\n## How it is measured\n")
	require.Contains(t, string(first), "missed by 350.0 %")
	require.NoError(t, os.WriteFile(path, append(first, "\n## What is missed\n\nThe p99, by the queue.\n"...), 0o600))
	better := someReport()
	better.rows = better.rows[:1]
	require.NoError(t, better.write(path))
	second, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(second), "The p99, by the queue.")
	require.NotContains(t, string(second), "missed by 350.0 %")
	require.Equal(t, 1, strings.Count(string(second), "<!-- measured"))
	require.NoError(t, os.WriteFile(path, []byte("# nothing\n"), 0o600))
	require.ErrorContains(t, better.write(path), "are not in it")
}

func TestBenchmarksAreRead(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "gobench.txt"))
	require.NoError(t, err)
	f := figures{}
	require.NoError(t, f.read(text))
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

// TestBenchmarksAreThere: what is measured in other packages is found there, so that a
// package that moves does not take its goals out of the page.
func TestBenchmarksAreThere(t *testing.T) {
	text, err := os.ReadFile("table.go")
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

// What follows makes rows of tests.

func (r row) of(part, goal, unit string) row {
	r.part, r.goal, r.unit, r.is = part, goal, unit, beside
	return r
}
func (r row) atLeast(want float64) row { r.want, r.is = want, atLeast; return r }
func (r row) most(want float64) row    { r.want, r.is = want, atMost; return r }
func (r row) with(note string) row     { r.note = note; return r }
