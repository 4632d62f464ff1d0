// Package datatable has the table below a step of a feature, for the steps of both suites.
package datatable

// Table is the table below a step. Steps must not change its rows.
type Table struct{ rows [][]string }

// New makes a table of rows of cells.
func New(rows ...[]string) *Table { return &Table{rows} }

// Rows returns the cells of every row, the first row included.
func (t *Table) Rows() [][]string { return t.rows }
