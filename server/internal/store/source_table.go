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

// SourceTables belong to a source; Read finds also those that are gone.
var SourceTables = define(Table[SourceTable]{
	name: "source_tables", kind: "table", scope: "source_id",
	columns: []string{"source_id", "table_catalog", "table_schema", "table_name", "columns", "gone"},
	cells: func(t *SourceTable) []any {
		return []any{&t.SourceID, &t.Catalog, &t.Schema, &t.Name, columns{&t.Columns}, &t.Gone}
	},
	duplicate: func(t *SourceTable) (string, string) { return "name", t.Name },
})

// storedColumn keeps the kind too, which is never on the wire.
type storedColumn struct {
	Name string   `json:"name"`
	Type string   `json:"type"`
	Kind api.Kind `json:"kind,omitempty"`
}

// columns are a cell with the columns of a table or query; nil is kept as nil.
type columns struct{ list *[]api.Column }

func (c columns) argument() any {
	if *c.list == nil {
		return doc{nil}
	}
	stored := make([]storedColumn, len(*c.list))
	for i, column := range *c.list {
		stored[i] = storedColumn{column.Name, column.Type, column.Kind}
	}
	return doc{stored}
}

func (c columns) read(s *scan) {
	var stored []storedColumn
	if s.doc(&stored); stored == nil {
		return
	}
	*c.list = make([]api.Column, len(stored))
	for i, column := range stored {
		(*c.list)[i] = api.Column{Name: column.Name, Type: column.Type, Kind: column.Kind}
	}
}

// PutSourceTables makes the tables of a source those given: new ones are
// created, known ones keep their ids, and missing ones are marked gone. Columns
// that are nil keep the stored ones. Rows that stay the same are not written.
func (tx *Tx) PutSourceTables(sourceID int64, tables []api.Table) error {
	known, err := SourceTables.some(tx, "source_id = ?", sourceID)
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
			err = SourceTables.Create(tx, &SourceTable{SourceID: sourceID, Catalog: n.catalog, Schema: n.schema, Name: n.name, Columns: t.Columns})
		} else if stored.Gone || t.Columns != nil && !reflect.DeepEqual(t.Columns, stored.Columns) {
			stored.Gone = false
			if t.Columns != nil {
				stored.Columns = t.Columns
			}
			err = SourceTables.Save(tx, stored)
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
		if err := SourceTables.Save(tx, t); err != nil {
			return fmt.Errorf("put tables of source %d: %w", sourceID, err)
		}
	}
	return nil
}

// FindSourceTable reads a table by its names, also one that is gone.
func (tx *Tx) FindSourceTable(sourceID int64, catalog, schema, name string) (*SourceTable, error) {
	return SourceTables.one(tx, "source_id = ? AND table_catalog = ? AND table_schema = ? AND table_name = ?",
		sourceID, catalog, schema, name)
}

// presentTables lists without the tables that are gone.
var presentTables = func() *Table[SourceTable] {
	t := *SourceTables
	t.visible = "gone = 0"
	return define(t)
}()

// SourceTables lists the tables of a source that are there.
func (tx *Tx) SourceTables(sourceID int64, p Page) ([]*SourceTable, int64, error) {
	return presentTables.List(tx, sourceID, p)
}
