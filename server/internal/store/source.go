package store

import (
	"encoding/json"
	"time"
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
