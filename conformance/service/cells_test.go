package service_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/matrixtest"
)

// sharedCode is what every cell rests on.
var sharedCode = []string{"conformance/*.go", "conformance/service/*.go", "server/", "openapi/"}

// checkCells are cells of one check each: its feature, its steps and what breaks it.
func checkCells(t *testing.T, checks []*conformance.Check) []matrixtest.Cell {
	t.Helper()
	steps := matrixtest.ReadFiles(t, "conformance/service/steps_*.go")
	violations := matrixtest.ReadFiles(t, "server/*/violation/*.go")
	cells := make([]matrixtest.Cell, len(checks))
	for i, c := range checks {
		broken := violations.Holding(`"` + c.ID)
		cells[i] = matrixtest.Cell{Name: c.ID, Files: slices.Concat([]string{"features/" + c.File}, steps.Defining(c.Steps), broken)}
	}
	return cells
}

// violationCells are cells of one violation each.
func violationCells(t *testing.T, violations []string) []matrixtest.Cell {
	t.Helper()
	cat, err := conformance.LoadCatalogue(conformance.SuiteService)
	require.NoError(t, err)
	byID := map[string]matrixtest.Cell{}
	for i, cell := range checkCells(t, cat.Checks) {
		byID[cat.Checks[i].ID] = cell
	}
	cells := make([]matrixtest.Cell, len(violations))
	for i, id := range violations {
		cells[i] = matrixtest.Cell{Name: id, Files: byID[matrixtest.CheckOf(id)].Files}
		require.GreaterOrEqual(t, len(cells[i].Files), 3, "%s: a feature, steps and a violation", id)
	}
	return cells
}
