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

// Datasets belong to a workspace. A model goes with its dataset.
var Datasets = define(Table[Dataset]{
	name: "datasets", kind: "dataset", scope: "workspace_id", counted: true,
	columns: []string{"workspace_id", "source_id", "name", "description", "query", "slug", "columns",
		"cached_record_count", "record_count_at"},
	cells: func(d *Dataset) []any {
		return []any{&d.WorkspaceID, &d.SourceID, &d.Name, &d.Description, &d.Query, &d.Slug, columns{&d.Columns},
			&d.CachedRecordCount, &d.RecordCountAt}
	},
	duplicate: func(d *Dataset) (string, string) { return "slug", d.Slug },
	uses:      []use{{"sync", "SELECT count(*) FROM syncs WHERE dataset_id = ?"}},
})
