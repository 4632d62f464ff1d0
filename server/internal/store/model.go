package store

import "github.com/destkit/destkit/server/api"

// Model is the deprecated form of a dataset (spec 2.11). It has its own dataset,
// created before it and deleted with it.
type Model struct {
	Row
	SourceID       int64
	DatasetID      int64
	SourceObjectID int64
	Name           string
	Description    *string
	Query          string
	CompiledQuery  *string
	Columns        []api.Column
}

// Models belong to a source. One is created with its dataset, which goes with it.
var Models = define(Table[Model]{
	name: "models", kind: "model", scope: "source_id",
	columns: []string{"source_id", "dataset_id", "source_object_id", "name", "description", "query", "compiled_query", "columns"},
	cells: func(m *Model) []any {
		return []any{&m.SourceID, &m.DatasetID, &m.SourceObjectID, &m.Name, &m.Description, &m.Query, &m.CompiledQuery, columns{&m.Columns}}
	},
	duplicate: func(*Model) (string, string) { return "dataset", "" },
	remove: func(t *Table[Model], tx *Tx, owner, id int64) error {
		m, err := t.Read(tx, owner, id)
		if err != nil {
			return err
		}
		err = tx.unused("model", id, use{"sync", "SELECT count(*) FROM syncs WHERE dataset_id = (SELECT dataset_id FROM models WHERE id = ?)"})
		if err != nil {
			return err
		}
		if err := t.delete(tx, owner, id); err != nil {
			return err
		}
		d, err := Datasets.one(tx, "id = ?", m.DatasetID)
		if err != nil {
			return err
		}
		return Datasets.delete(tx, d.WorkspaceID, d.ID)
	},
})

// ModelByName finds the oldest model of a source with that name.
func (tx *Tx) ModelByName(sourceID int64, name string) (*Model, error) {
	return Models.one(tx, "source_id = ? AND name = ? ORDER BY id LIMIT 1", sourceID, name)
}

// ModelOfDataset finds the model that a dataset belongs to.
func (tx *Tx) ModelOfDataset(datasetID int64) (*Model, error) {
	return Models.one(tx, "dataset_id = ?", datasetID)
}
