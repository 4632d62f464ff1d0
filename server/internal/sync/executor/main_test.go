package executor

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/api"
)

// children are what a process can do that these tests start: the variable of
// the name holds its work, as JSON.
var children = map[string]interface{ do() error }{
	crashEnv: &crashWork{}, millionEnv: &millionWork{},
}

func TestMain(m *testing.M) {
	for name, work := range children {
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		err := json.Unmarshal([]byte(text), work)
		if err == nil {
			err = work.do()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testkit.RunWithPostgres(m))
}

// sharedCode is what a run of a sync rests on.
var sharedCode = []string{"server/internal/sync/", "destsim/*.go", "destsim/rpc/", "internal/source/"}

// sampleOf chooses among cells that are about no file alone, or about those of about.
func sampleOf[C any](t *testing.T, cells []C, name func(C) string, about func(C) []string) []bool {
	t.Helper()
	list := make([]matrixtest.Cell, len(cells))
	for i, c := range cells {
		list[i] = matrixtest.Cell{Name: name(c)}
		if about != nil {
			list[i].Files = about(c)
		}
	}
	return matrixtest.Sample(t, sharedCode, list)
}

func (c faultCell) title() string { return fmt.Sprintf("%s/%s/%d", c.column, c.name, c.records) }

// faultFiles are those that define a kind of fault.
func faultFiles(t *testing.T) func(faultCell) []string {
	files := matrixtest.ReadFiles(t, "destsim/faults_*.go")
	return func(c faultCell) []string { return files.Holding(`"` + c.fault.Kind + `"`) }
}

// TestProgressIsTrue: a run that goes on never shows records as failed that only
// have no verdict yet (spec 2.9), and its counters never run back.
func TestProgressIsTrue(t *testing.T) {
	w := newWorld(t, setup{sim: destsim.Config{Speed: rpc.Speed{MaximumBatchSize: 5, MaximumParallelBatches: 16, MaximumRecordsPerSecond: 1_000_000}}})
	w.fill(1, 10_000)
	var reports, before, worst int64
	w.change = func(j *Job) {
		j.Report = func(p Progress) {
			reports++
			worst = max(worst, p.Failed)
			require.GreaterOrEqual(t, p.Updated, before)
			before = p.Updated
		}
	}
	require.Equal(t, api.RunCompleted, w.sync().Status)
	require.Greater(t, reports, int64(1000))
	require.Zero(t, worst)
	require.Equal(t, int64(10_000), before)
}

var update = flag.Bool("update", false, "write docs/evidence/crash-matrix.md, docs/evidence/disk-matrix.md and docs/evidence/fault-matrix.md")

func ordinal(n int64) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return fmt.Sprint(n, suffix)
}
