package store

import "github.com/destkit/destkit/server/api"

// Model is the deprecated form of a dataset (spec 2.11). It has a dataset of its
// own, made before it, that goes with it.
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

var models = define(table[Model]{
	name: "models", kind: "model", scope: "source_id",
	columns: []string{"source_id", "dataset_id", "source_object_id", "name", "description", "query", "compiled_query", "columns"},
	cells: func(m *Model) []any {
		return []any{&m.SourceID, &m.DatasetID, &m.SourceObjectID, &m.Name, &m.Description, &m.Query, &m.CompiledQuery, columns{&m.Columns}}
	},
	duplicate: func(*Model) (string, string) { return "dataset", "" },
})

// CreateModel stores a new model beside its dataset; *DuplicateError when the
// dataset belongs to a model already.
func (tx *Tx) CreateModel(m *Model) error { return models.create(tx, m) }

// SaveModel stores a changed model.
func (tx *Tx) SaveModel(m *Model) error { return models.save(tx, m) }

// Model reads one model of a source.
func (tx *Tx) Model(sourceID, id int64) (*Model, error) {
	return models.one(tx, "id = ? AND source_id = ?", id, sourceID)
}

// ModelByName finds the oldest model of a source with that name.
func (tx *Tx) ModelByName(sourceID int64, name string) (*Model, error) {
	return models.one(tx, "source_id = ? AND name = ? ORDER BY id LIMIT 1", sourceID, name)
}

// ModelOfDataset finds the model that a dataset belongs to.
func (tx *Tx) ModelOfDataset(datasetID int64) (*Model, error) {
	return models.one(tx, "dataset_id = ?", datasetID)
}

// Models lists the models of a source.
func (tx *Tx) Models(sourceID int64, p Page) ([]*Model, int64, error) {
	return models.list(tx, p, sourceID)
}

// DeleteModel deletes a model and its dataset; *InUseError while a sync reads
// from that.
func (tx *Tx) DeleteModel(sourceID, id int64) error {
	m, err := tx.Model(sourceID, id)
	if err != nil {
		return err
	}
	err = tx.unused("model", id, use{"sync", "SELECT count(*) FROM syncs WHERE dataset_id = (SELECT dataset_id FROM models WHERE id = ?)"})
	if err != nil {
		return err
	}
	if err := models.delete(tx, sourceID, id); err != nil {
		return err
	}
	d, err := datasets.one(tx, "id = ?", m.DatasetID)
	if err != nil {
		return err
	}
	return datasets.delete(tx, d.WorkspaceID, d.ID)
}
