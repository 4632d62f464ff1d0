package source

import (
	"fmt"
	"strings"
	"sync"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
	"github.com/destkit/destkit/internal/source/internal/generated"
)

// sampleColumn is a column of a sample table; make is a type of the generator.
type sampleColumn struct{ name, declared, make string }

// sampleTable is a table that every emulated warehouse starts with. Schema is
// an index into the schemas of the dialect.
type sampleTable struct {
	schema, rows int
	name         string
	columns      []sampleColumn
}

// sampleTables have a relation each: users.company_id, orders.user_id and
// events.user_id point at rows that are there.
var sampleTables = []sampleTable{
	{0, 40, "companies", []sampleColumn{
		{"id", "INTEGER", "id"}, {"name", "TEXT", "company"}, {"city", "TEXT", "city"},
		{"employees", "INTEGER", "up to 5000"}, {"founded_on", "DATE", "date"}, {"revenue", "DECIMAL(14,2)", "decimal"},
	}},
	{0, 300, "users", []sampleColumn{
		{"id", "INTEGER", "id"}, {"email", "TEXT", "email"}, {"first_name", "TEXT", "first_name"}, {"last_name", "TEXT", "last_name"},
		{"company_id", "INTEGER", "up to 40"}, {"active", "BOOLEAN", "boolean"}, {"score", "REAL", "float"},
		{"profile", "JSON", "object"}, {"created_on", "DATE", "date"}, {"updated_at", "DATETIME", "date_time"},
	}},
	{1, 400, "orders", []sampleColumn{
		{"id", "INTEGER", "id"}, {"user_id", "INTEGER", "up to 300"}, {"amount", "DECIMAL(12,2)", "decimal"},
		{"items", "ARRAY", "array"}, {"placed_at", "DATETIME", "date_time"},
	}},
	{2, 500, "events", []sampleColumn{
		{"id", "TEXT", "uuid"}, {"user_id", "INTEGER", "up to 300"}, {"name", "TEXT", "string"},
		{"properties", "JSON", "object"}, {"occurred_at", "DATETIME", "date_time"},
	}},
}

// fillSample makes the sample tables; the same in every warehouse, of every
// type, at every time.
func (w *warehouse) fillSample(conn *sqlite.Conn) error {
	for seed, table := range w.dialect.tables {
		if err := w.fillTable(conn, table, int64(seed)); err != nil {
			return fmt.Errorf("fill table %s of warehouse: %w", table.name, err)
		}
	}
	return sqlitex.ExecuteTransient(conn, fmt.Sprintf("PRAGMA application_id = %d", applicationID), nil)
}

// samples are the bytes of a database with nothing but the sample, by dialect:
// a process with many services fills the tables once.
var samples sync.Map // *warehouseDialect → func() ([]byte, error)

// copySample gives a database in memory the sample tables.
func (w *warehouse) copySample(conn *sqlite.Conn) error {
	made, _ := samples.LoadOrStore(w.dialect, sync.OnceValues(func() ([]byte, error) {
		one, err := handles.Open(":memory:", sqlite.OpenReadWrite|sqlite.OpenCreate)
		if err != nil {
			return nil, err
		}
		defer func() { _ = handles.Close(one) }()
		if err := w.fillSample(one); err != nil {
			return nil, err
		}
		return one.Serialize("main")
	}))
	data, err := made.(func() ([]byte, error))()
	if err != nil {
		return err
	}
	return replaceTables(conn, data)
}

// fillTable makes one table. Its cells come from the generator, whose values
// depend on nothing but seed, row and column.
func (w *warehouse) fillTable(conn *sqlite.Conn, table sampleTable, seed int64) error {
	name := quote(w.storedName(w.dialect.schemas[table.schema], w.cased(table.name)))
	made := &generated.Table{Seed: seed}
	var defined, marks []string
	for _, c := range table.columns {
		var limit int64
		if n, _ := fmt.Sscanf(c.make, "up to %d", &limit); n == 1 {
			made.Columns = append(made.Columns, generated.NewColumn(c.name, "id", &limit))
		} else {
			made.Columns = append(made.Columns, generated.NewColumn(c.name, c.make, nil))
		}
		key := ""
		if c.name == "id" {
			key = " PRIMARY KEY"
		}
		defined = append(defined, quote(w.cased(c.name))+" "+c.declared+key)
		// Values come as JSON; structures stay JSON text.
		mark := "?1 ->> '$[" + fmt.Sprint(len(marks)) + "]'"
		marks = append(marks, mark)
	}
	if err := sqlitex.ExecuteTransient(conn, "CREATE TABLE "+name+" ("+strings.Join(defined, ", ")+")", nil); err != nil {
		return err
	}
	insert, _, err := conn.PrepareTransient("INSERT INTO " + name + " VALUES (" + strings.Join(marks, ", ") + ")")
	if err != nil {
		return err
	}
	defer insert.Finalize()
	var row []byte
	for n := range table.rows {
		row = append(row[:0], '[')
		for i := range made.Columns {
			if i > 0 {
				row = append(row, ',')
			}
			row = made.AppendCell(row, int64(n), i)
		}
		insert.BindText(1, string(append(row, ']')))
		if _, err := insert.Step(); err != nil {
			return err
		}
		if err := insert.Reset(); err != nil {
			return err
		}
	}
	return nil
}

// cased is a sample name as the warehouse spells it.
func (w *warehouse) cased(name string) string {
	if w.dialect.upper {
		return strings.ToUpper(name)
	}
	return name
}
