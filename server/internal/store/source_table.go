package store

import (
	"fmt"
	"reflect"

	"github.com/destkit/destkit/server/api"
)

// SourceTable is a table that was seen in a source. Its id stays the same for a
// catalog, schema and name, also when the table goes and comes back. Gone tables
// are not listed. Columns are nil until they were read.
type SourceTable struct {
	Row
	SourceID int64
	Catalog  string
	Schema   string
	Name     string
	Columns  []api.Column
	Gone     bool
}

var sourceTables = define(table[SourceTable]{
	name: "source_tables", kind: "table", scope: "source_id",
	columns: []string{"source_id", "table_catalog", "table_schema", "table_name", "columns", "gone"},
	row:     func(t *SourceTable) *Row { return &t.Row },
	values: func(t *SourceTable) []any {
		return []any{t.SourceID, t.Catalog, t.Schema, t.Name, doc{storeColumns(t.Columns)}, t.Gone}
	},
	load: func(s *scan, t *SourceTable) {
		t.SourceID, t.Catalog, t.Schema, t.Name = s.number(), s.text(), s.text(), s.text()
		t.Columns, t.Gone = s.columns(), s.flag()
	},
	duplicate: func(t *SourceTable) (string, string) { return "name", t.Name },
})

// storedColumn keeps the kind too, which is never on the wire.
type storedColumn struct {
	Name string   `json:"name"`
	Type string   `json:"type"`
	Kind api.Kind `json:"kind,omitempty"`
}

func storeColumns(columns []api.Column) []storedColumn {
	if columns == nil {
		return nil
	}
	stored := make([]storedColumn, len(columns))
	for i, c := range columns {
		stored[i] = storedColumn{c.Name, c.Type, c.Kind}
	}
	return stored
}

func (s *scan) columns() []api.Column {
	var stored []storedColumn
	s.doc(&stored)
	if stored == nil {
		return nil
	}
	columns := make([]api.Column, len(stored))
	for i, c := range stored {
		columns[i] = api.Column{Name: c.Name, Type: c.Type, Kind: c.Kind}
	}
	return columns
}

// PutSourceTables makes the tables of a source those given: new ones are
// created, known ones keep their ids, and missing ones are marked gone. Columns
// that are nil keep what is stored. Rows that stay the same are not written.
func (tx *Tx) PutSourceTables(sourceID int64, tables []api.Table) error {
	known, err := sourceTables.some(tx, "source_id = ?", sourceID)
	if err != nil {
		return err
	}
	type name struct{ catalog, schema, name string }
	missing := make(map[name]*SourceTable, len(known))
	for _, t := range known {
		missing[name{t.Catalog, t.Schema, t.Name}] = t
	}
	for _, t := range tables {
		n := name{t.TableCatalog, t.TableSchema, t.TableName}
		stored := missing[n]
		delete(missing, n)
		if stored == nil {
			err = sourceTables.create(tx, &SourceTable{SourceID: sourceID, Catalog: n.catalog, Schema: n.schema, Name: n.name, Columns: t.Columns})
		} else if stored.Gone || t.Columns != nil && !reflect.DeepEqual(t.Columns, stored.Columns) {
			stored.Gone = false
			if t.Columns != nil {
				stored.Columns = t.Columns
			}
			err = sourceTables.save(tx, stored)
		}
		if err != nil {
			return fmt.Errorf("put tables of source %d: %w", sourceID, err)
		}
	}
	for _, t := range known {
		if missing[name{t.Catalog, t.Schema, t.Name}] == nil || t.Gone {
			continue
		}
		t.Gone = true
		if err := sourceTables.save(tx, t); err != nil {
			return fmt.Errorf("put tables of source %d: %w", sourceID, err)
		}
	}
	return nil
}

// SaveSourceTable stores the changed columns of a table.
func (tx *Tx) SaveSourceTable(t *SourceTable) error { return sourceTables.save(tx, t) }

// SourceTable reads one table of a source, also one that is gone.
func (tx *Tx) SourceTable(sourceID, id int64) (*SourceTable, error) {
	return sourceTables.one(tx, "id = ? AND source_id = ?", id, sourceID)
}

// FindSourceTable reads a table by its names, also one that is gone.
func (tx *Tx) FindSourceTable(sourceID int64, catalog, schema, name string) (*SourceTable, error) {
	return sourceTables.one(tx, "source_id = ? AND table_catalog = ? AND table_schema = ? AND table_name = ?",
		sourceID, catalog, schema, name)
}

// presentTables lists without the tables that are gone.
var presentTables = func() *table[SourceTable] {
	t := *sourceTables
	t.visible = "gone = 0"
	return define(t)
}()

// SourceTables lists the tables of a source that are there.
func (tx *Tx) SourceTables(sourceID int64, p Page) ([]*SourceTable, int64, error) {
	return presentTables.list(tx, p, sourceID)
}
