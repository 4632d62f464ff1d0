package main

import (
	"os"
	"path/filepath"
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
		{"median and spread", spreadOf([]float64{3, 1, 2}).called("p", "g", "×").atLeast(2), "2 ×", "1 to 3", "met"},
		{"too little", spreadOf([]float64{0.9, 0.9}).called("p", "g", "×").atLeast(1), "0.90 ×", "0.90 to 0.90", "missed by 10.0 %"},
		{"too much", spreadOf([]float64{2.5}).called("p", "g", "ms").most(2), "2.50 ms", "one run", "missed by 25.0 %"},
		{"far too much", spreadOf([]float64{2000}).called("p", "g", "ms").most(2), "2,000 ms", "one run", "missed by a factor of 1,000"},
		{"none allowed", spreadOf([]float64{3}).called("p", "g", "").most(0), "3", "one run", "missed by 3"},
		{"just enough", spreadOf([]float64{0.999}).called("p", "g", "").atLeast(0.999), "0.999", "one run", "met"},
		{"beside", spreadOf([]float64{51234.4}).called("p", "g", "requests/s").figure(), "51,234 requests/s", "one run", ""},
		{"missing", row{absent: "peer missing: wrk"}, "–", "–", "peer missing: wrk"},
		{"nothing", spreadOf(nil), "–", "–", "nothing was measured"},
		{"ratio of medians", ratioOf([]float64{10, 20, 30}, []float64{10, 10, 20}).called("p", "g", "×").atLeast(2), "2 ×", "1 to 2", "met"},
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
			spreadOf([]float64{1, 2, 3}).called("load", "≥ 1 × wrk", "×").atLeast(1).with("wrk: 5 requests/s"),
			spreadOf([]float64{9}).called("load", "p99 ≤ 2 ms", "ms").most(2),
			{part: "REST", goal: "≥ 10 × Prism", absent: "peer missing: prism"},
			spreadOf([]float64{5}).called("REST", "requests per second", "requests/s").figure(),
		},
		machine: machine{"Some CPU", 2, "23 GiB", "Linux 6.18", "go1.26"}, options: options{seconds: 10, rounds: 3},
		missing: []string{"prism"}, versions: []string{"wrk 4.1.0"}, took: 90 * time.Second,
	}
}

func TestTheTableIsPrinted(t *testing.T) {
	require.Equal(t, `
| part | goal                | measured (median) | spread  | met                        | notes             |
|------|---------------------|-------------------|---------|----------------------------|-------------------|
| load | ≥ 1 × wrk           | 2 ×               | 1 to 3  | met                        | wrk: 5 requests/s |
|      | p99 ≤ 2 ms          | 9 ms              | one run | missed by a factor of 4.50 |                   |
| REST | ≥ 10 × Prism        | –                 | –       | peer missing: prism        |                   |
|      | requests per second | 5 requests/s      | one run |                            |                   |

1 goals met, 1 missed, 1 not measured. Peers that are not installed (make bench-peers): prism.
Some CPU, 2 cores, 23 GiB of memory, Linux 6.18, go1.26
`, someReport().text())
}

// What people have written around the table is theirs.
func TestThePageKeepsWhatIsWrittenByHand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "performance.md")
	require.NoError(t, os.WriteFile(path, []byte("# Performance\n\n"+beginMark+"\n"+endMark+"\n\n## How it is measured\n"), 0o600))
	require.NoError(t, someReport().write(path))
	first, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(first), endMark+"\n\n## How it is measured\n")
	require.Contains(t, string(first), "missed by a factor of 4.50")
	require.Contains(t, string(first), "Peers: wrk 4.1.0.")
	require.NoError(t, os.WriteFile(path, append(first, "\n## What is missed\n\nThe p99, by the queue.\n"...), 0o600))
	better := someReport()
	better.rows = better.rows[:1]
	require.NoError(t, better.write(path))
	second, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(second), "The p99, by the queue.")
	require.NotContains(t, string(second), "missed by a factor of 4.50")
	require.Equal(t, 1, strings.Count(string(second), beginMark))
	require.NoError(t, os.WriteFile(path, []byte("# nothing\n"), 0o600))
	require.ErrorContains(t, better.write(path), "are not in it")
}

func TestBenchmarksAreRead(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "gobench.txt"))
	require.NoError(t, err)
	f, err := parseFigures(text)
	require.NoError(t, err)
	r, err := f.row("Goals", "f1/floor", 3)
	require.NoError(t, err)
	require.Equal(t, row{shown: 0.6082, low: 0.5672, high: 0.7958, runs: 3}, r)
	v, err := f.value("AgainstMock/one/prism", "req/s")
	require.NoError(t, err)
	require.InDelta(t, 249.9, v, 1e-9)
	_, err = f.value("Goals", "miles")
	require.ErrorContains(t, err, "Goals reports no miles")
}
