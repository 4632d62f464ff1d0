package wire

// DataTable is the table below a step. Steps must not change its rows.
type DataTable struct{ rows [][]string }

// NewDataTable makes a table of rows of cells.
func NewDataTable(rows ...[]string) *DataTable { return &DataTable{rows} }

// Rows returns the cells of every row, the first row included.
func (t *DataTable) Rows() [][]string { return t.rows }
