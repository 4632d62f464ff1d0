package conformance

// Table is the table below a step. Steps must not change its rows.
type Table struct{ rows [][]string }

// NewTable makes a table of rows of cells.
func NewTable(rows ...[]string) *Table { return &Table{rows: rows} }

// Rows returns the cells of every row, the first row included.
func (t *Table) Rows() [][]string { return t.rows }

// docString is the quoted text below a step.
type docString struct{ text, mediaType string }

// Text returns the text without its quotes.
func (d *docString) Text() string { return d.text }

// MediaType returns the word behind the opening quotes, or "".
func (d *docString) MediaType() string { return d.mediaType }
