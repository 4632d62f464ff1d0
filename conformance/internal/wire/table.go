package wire

import (
	messages "github.com/cucumber/messages/go/v21"

	"github.com/destkit/destkit/internal/lists"
)

// DataTable is the table below a step, in the type that the runner of steps hands over.
type DataTable = messages.PickleTable

// NewDataTable makes a table of rows of cells.
func NewDataTable(rows ...[]string) *DataTable {
	return &DataTable{Rows: lists.Of(rows, func(row []string) *messages.PickleTableRow {
		return &messages.PickleTableRow{Cells: lists.Of(row, func(cell string) *messages.PickleTableCell {
			return &messages.PickleTableCell{Value: cell}
		})}
	})}
}

// Rows returns the cells of every row of a table, the first row included.
func Rows(t *DataTable) [][]string {
	return lists.Of(t.Rows, func(row *messages.PickleTableRow) []string {
		return lists.Of(row.Cells, func(cell *messages.PickleTableCell) string { return cell.Value })
	})
}
