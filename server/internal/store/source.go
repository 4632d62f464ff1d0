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

var sources = define(table[Source]{
	name: "sources", kind: "source", scope: "workspace_id", counted: true,
	columns: []string{"workspace_id", "name", "type", "engine", "details", "writeback_retention", "test_succeeded", "tested_at"},
	cells: func(s *Source) []any {
		return []any{&s.WorkspaceID, &s.Name, &s.Type, &s.Engine, &s.Details, &s.WritebackRetention, &s.TestSucceeded, &s.TestedAt}
	},
})

// CreateSource stores a new source with its credentials.
func (tx *Tx) CreateSource(s *Source, credentials map[string]json.RawMessage) error {
	if err := sources.create(tx, s); err != nil {
		return err
	}
	return tx.putCredentials(s.WorkspaceID, "sources", s.ID, credentials)
}

// SaveSource stores a changed source; nil credentials keep the ones that are
// stored.
func (tx *Tx) SaveSource(s *Source, credentials map[string]json.RawMessage) error {
	if err := sources.save(tx, s); err != nil {
		return err
	}
	return tx.putCredentials(s.WorkspaceID, "sources", s.ID, credentials)
}

// Source reads one source of a workspace.
func (tx *Tx) Source(workspaceID, id int64) (*Source, error) {
	return sources.one(tx, "id = ? AND workspace_id = ?", id, workspaceID)
}

// Sources lists the sources of a workspace.
func (tx *Tx) Sources(workspaceID int64, p Page) ([]*Source, int64, error) {
	return sources.list(tx, p, workspaceID)
}

// SourceCredentials opens the credentials of a source; nil when it has none.
// They are secrets.
func (tx *Tx) SourceCredentials(id int64) (map[string]json.RawMessage, error) {
	return tx.credentials("sources", id)
}

// DeleteSource deletes a source with its tables, topics and models; *InUseError
// while a sync or a dataset that is not one of its models reads from it.
func (tx *Tx) DeleteSource(workspaceID, id int64) error {
	if _, err := sources.head(tx, workspaceID, id); err != nil {
		return err
	}
	err := tx.unused("source", id,
		use{"sync", "SELECT count(*) FROM syncs WHERE source_id = ?"},
		use{"dataset", `SELECT count(*) FROM datasets WHERE source_id = ?
			AND NOT EXISTS (SELECT 1 FROM models WHERE dataset_id = datasets.id)`})
	if err != nil {
		return err
	}
	return sources.delete(tx, workspaceID, id)
}
