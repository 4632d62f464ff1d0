package store

import (
	"time"

	"github.com/destkit/destkit/server/api"
)

// Dataset is a named query. Slug is unique in its workspace.
// RecordCountAt is zero while CachedRecordCount is nil.
type Dataset struct {
	Row
	WorkspaceID       int64
	SourceID          int64
	Name              string
	Description       *string
	Query             string
	Slug              string
	Columns           []api.Column
	CachedRecordCount *int64
	RecordCountAt     time.Time
}

var datasets = define(table[Dataset]{
	name: "datasets", kind: "dataset", scope: "workspace_id", counted: true,
	columns: []string{"workspace_id", "source_id", "name", "description", "query", "slug", "columns",
		"cached_record_count", "record_count_at"},
	cells: func(d *Dataset) []any {
		return []any{&d.WorkspaceID, &d.SourceID, &d.Name, &d.Description, &d.Query, &d.Slug, columns{&d.Columns},
			&d.CachedRecordCount, &d.RecordCountAt}
	},
	duplicate: func(d *Dataset) (string, string) { return "slug", d.Slug },
})

// CreateDataset stores a new dataset; *DuplicateError for a slug that the
// workspace has already.
func (tx *Tx) CreateDataset(d *Dataset) error { return datasets.create(tx, d) }

// SaveDataset stores a changed dataset.
func (tx *Tx) SaveDataset(d *Dataset) error { return datasets.save(tx, d) }

// Dataset reads one dataset of a workspace.
func (tx *Tx) Dataset(workspaceID, id int64) (*Dataset, error) {
	return datasets.one(tx, "id = ? AND workspace_id = ?", id, workspaceID)
}

// Datasets lists the datasets of a workspace.
func (tx *Tx) Datasets(workspaceID int64, p Page) ([]*Dataset, int64, error) {
	return datasets.list(tx, p, workspaceID)
}

// DeleteDataset deletes a dataset, and its model when it belongs to one;
// *InUseError while a sync reads from it.
func (tx *Tx) DeleteDataset(workspaceID, id int64) error {
	if _, err := datasets.head(tx, workspaceID, id); err != nil {
		return err
	}
	if err := tx.unused("dataset", id, use{"sync", "SELECT count(*) FROM syncs WHERE dataset_id = ?"}); err != nil {
		return err
	}
	return datasets.delete(tx, workspaceID, id)
}
