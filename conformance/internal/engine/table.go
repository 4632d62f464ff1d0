package engine

import (
	messages "github.com/cucumber/messages/go/v21"

	"github.com/destkit/destkit/internal/lists"
)

// Table is the table below a step, in the type that godog hands over.
type Table = messages.PickleTable

// NewTable makes a table of rows of cells.
func NewTable(rows ...[]string) *Table {
	return &Table{Rows: lists.Of(rows, func(row []string) *messages.PickleTableRow {
		return &messages.PickleTableRow{Cells: lists.Of(row, func(cell string) *messages.PickleTableCell {
			return &messages.PickleTableCell{Value: cell}
		})}
	})}
}

// Rows returns the cells of every row of a table, the first row included.
func Rows(t *Table) [][]string {
	return lists.Of(t.Rows, func(row *messages.PickleTableRow) []string {
		return lists.Of(row.Cells, func(cell *messages.PickleTableCell) string { return cell.Value })
	})
}
