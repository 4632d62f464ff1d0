package store

import (
	"encoding/json"
	"time"

	"github.com/destkit/destkit/server/api"
)

// Source is a connection to read from. Details are shown in replies
// and hold no secret; the credentials are kept apart, sealed. WritebackRetention
// is in days.
type Source struct {
	Row
	WorkspaceID        int64
	Name               string
	Type               string
	Engine             string // basic, advanced
	Details            map[string]any
	WritebackRetention *int64
	TestSucceeded      *bool
	TestedAt           time.Time
}

// Sources belong to a workspace. Tables, topics and models go with one; a dataset that is
// not that of a model keeps it.
var Sources = define(Table[Source]{
	name: "sources", kind: "source", scope: "workspace_id", counted: true,
	columns: []string{"workspace_id", "name", "type", "engine", "details", "writeback_retention", "test_succeeded", "tested_at"},
	cells: func(s *Source) []any {
		return []any{&s.WorkspaceID, &s.Name, &s.Type, &s.Engine, &s.Details, &s.WritebackRetention, &s.TestSucceeded, &s.TestedAt}
	},
	uses: []use{
		{"sync", "SELECT count(*) FROM syncs WHERE source_id = ?"},
		{"dataset", `SELECT count(*) FROM datasets WHERE source_id = ?
			AND NOT EXISTS (SELECT 1 FROM models WHERE dataset_id = datasets.id)`},
	},
})

// CreateSource stores a new source with its credentials.
func (tx *Tx) CreateSource(s *Source, credentials map[string]json.RawMessage) error {
	if err := Sources.Create(tx, s); err != nil {
		return err
	}
	return tx.putCredentials(s.WorkspaceID, "sources", s.ID, credentials)
}

// SaveSource stores a changed source; nil credentials keep the ones that are
// stored.
func (tx *Tx) SaveSource(s *Source, credentials map[string]json.RawMessage) error {
	if err := Sources.Save(tx, s); err != nil {
		return err
	}
	return tx.putCredentials(s.WorkspaceID, "sources", s.ID, credentials)
}

// SourceCredentials opens the credentials of a source; nil when it has none.
// They are secrets.
func (tx *Tx) SourceCredentials(id int64) (map[string]json.RawMessage, error) {
	return tx.credentials("sources", id)
}

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

// Segment is the part of a dataset that meets Query, a condition in SQL. Name is
// unique in its dataset.
type Segment struct {
	Row
	SourceID          int64 // of the dataset
	DatasetID         int64
	Name              string
	Description       *string
	Query             string
	CachedRecordCount *int64
}

// Segments belong to a source.
var Segments = define(Table[Segment]{
	name: "segments", kind: "segment", scope: "source_id",
	columns: []string{"source_id", "dataset_id", "name", "description", "query", "cached_record_count"},
	cells: func(g *Segment) []any {
		return []any{&g.SourceID, &g.DatasetID, &g.Name, &g.Description, &g.Query, &g.CachedRecordCount}
	},
	duplicate: func(g *Segment) (string, string) { return "name", g.Name },
	uses:      []use{{"sync", "SELECT count(*) FROM syncs WHERE segment_id = ?"}},
})

// SegmentsOfDataset reads the segments of a dataset by their names.
func (tx *Tx) SegmentsOfDataset(datasetID int64) ([]*Segment, error) {
	return Segments.some(tx, "dataset_id = ? ORDER BY name, id", datasetID)
}

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
