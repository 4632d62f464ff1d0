package zoo_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/matrixtest"
)

// sharedCode is the code that every endpoint shares and that judges it.
var sharedCode = []string{"conformance/*.go", "conformance/destination/*.go", "conformance/internal/"}

// mistakeCells are about the features whose checks find the mistakes.
func mistakeCells(t *testing.T, mistakes []Mistake) []bool {
	t.Helper()
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	cells := make([]matrixtest.Cell, len(mistakes))
	for i, m := range mistakes {
		cells[i].Name = m.Language + "/" + m.Name
		for _, c := range cat.Checks {
			if matches(m.Finds, c.ID) {
				cells[i].Files = append(cells[i].Files, "features/"+c.File)
			}
		}
	}
	return matrixtest.Sample(t, sharedCode, cells)
}

func habitCells(t *testing.T) []bool {
	t.Helper()
	var cells []matrixtest.Cell
	for _, h := range Habits() {
		cells = append(cells, matrixtest.Cell{Name: h.Language + "/" + h.Name})
	}
	return matrixtest.Sample(t, sharedCode, cells)
}
