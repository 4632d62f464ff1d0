package destination_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
)

// sharedCode is what every cell rests on.
var sharedCode = []string{"conformance/*.go", "conformance/destination/*.go", "conformance/internal/", "destsim/*.go", "destsim/rpc/"}

// checkCells are cells of one check each: its feature, its steps and what breaks it.
func checkCells(t *testing.T, checks []*conformance.Check) []matrixtest.Cell {
	t.Helper()
	steps := matrixtest.ReadFiles(t, "conformance/internal/judge/steps_*.go")
	violations := matrixtest.ReadFiles(t, "destsim/violate_*.go")
	cells := make([]matrixtest.Cell, len(checks))
	for i, c := range checks {
		broken := violations.Holding(`"` + c.ID)
		cells[i] = matrixtest.Cell{Name: c.ID, Files: slices.Concat([]string{"features/" + c.File}, steps.Defining(c.Steps), broken)}
	}
	return cells
}

// violationCells are cells of one violation each.
func violationCells(t *testing.T) []matrixtest.Cell {
	t.Helper()
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	byID := map[string]matrixtest.Cell{}
	for i, cell := range checkCells(t, cat.Checks) {
		byID[cat.Checks[i].ID] = cell
	}
	cells := make([]matrixtest.Cell, len(destsim.Violations()))
	for i, v := range destsim.Violations() {
		cells[i] = matrixtest.Cell{Name: v.ID, Files: byID[matrixtest.CheckOf(v.ID)].Files}
	}
	return cells
}

// TestCellsFollowTheirFiles: each cell is about a feature, steps and a violation, and none is
// about more than some of the files.
func TestCellsFollowTheirFiles(t *testing.T) {
	for _, cell := range violationCells(t) {
		require.Subset(t, []int{3, 4, 5, 6, 7, 8, 9, 10}, []int{len(cell.Files)}, "%s: %v", cell.Name, cell.Files)
	}
	for file, area := range map[string]string{
		"destsim/violate_results.go": "RES-", "features/destination/results.feature": "RES-",
		"conformance/internal/judge/steps_results.go": "RES-", "destsim/violate_http.go": "TLS-", "conformance/internal/judge/steps_calls.go": "TLS-",
	} {
		of, others := 0, 0
		for _, cell := range violationCells(t) {
			switch {
			case !slices.Contains(cell.Files, file):
			case cell.Name[:len(area)] == area:
				of++
			default:
				others++
			}
		}
		t.Logf("%s: %d of %s, %d others", file, of, area, others)
		require.Positive(t, of, file)
	}
}
