package executor

import (
	"fmt"
	"testing"

	"github.com/destkit/destkit/internal/matrixtest"
)

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
