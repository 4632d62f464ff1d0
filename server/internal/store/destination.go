package store

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// Destination is a connection to write to (spec 2.2). The credentials
// are kept apart, sealed. TestedAt is zero until a connection test has run.
type Destination struct {
	Row
	WorkspaceID   int64
	Name          string
	Type          string
	TestResults   *api.TestResults
	TestSucceeded *bool
	TestedAt      time.Time
}

// Destinations belong to a workspace. The cached objects of one go with it.
var Destinations = define(Table[Destination]{
	name: "destinations", kind: "destination", scope: "workspace_id", counted: true,
	columns: []string{"workspace_id", "name", "type", "test_results", "test_succeeded", "tested_at"},
	cells: func(d *Destination) []any {
		return []any{&d.WorkspaceID, &d.Name, &d.Type, &d.TestResults, &d.TestSucceeded, &d.TestedAt}
	},
	uses: []use{{"sync", "SELECT count(*) FROM syncs WHERE destination_id = ?"}},
})

// CreateDestination stores a new destination with its credentials.
func (tx *Tx) CreateDestination(d *Destination, credentials map[string]json.RawMessage) error {
	if err := Destinations.Create(tx, d); err != nil {
		return err
	}
	return tx.putCredentials(d.WorkspaceID, "destinations", d.ID, credentials)
}

// SaveDestination stores a changed destination; nil credentials keep the ones
// that are stored.
func (tx *Tx) SaveDestination(d *Destination, credentials map[string]json.RawMessage) error {
	if err := Destinations.Save(tx, d); err != nil {
		return err
	}
	return tx.putCredentials(d.WorkspaceID, "destinations", d.ID, credentials)
}

// DestinationCredentials opens the credentials of a destination; nil when it has
// none. They are secrets.
func (tx *Tx) DestinationCredentials(id int64) (map[string]json.RawMessage, error) {
	return tx.credentials("destinations", id)
}

// ObjectCache is what the planning calls of a destination gave.
type ObjectCache struct {
	FetchedAt time.Time
	Objects   []*api.DestinationObject
}

// PutObjectCache replaces the cached objects of a destination.
func (tx *Tx) PutObjectCache(destinationID int64, c *ObjectCache) error {
	_, err := tx.exec(`INSERT INTO object_caches (destination_id, fetched_at, objects) VALUES (?, ?, ?)
		ON CONFLICT (destination_id) DO UPDATE SET fetched_at = excluded.fetched_at, objects = excluded.objects`,
		destinationID, c.FetchedAt, doc{c.Objects})
	if err != nil {
		return fmt.Errorf("keep objects of destination %d: %w", destinationID, err)
	}
	return nil
}

// ObjectCache reads the cached objects; ErrNotFound when none were fetched yet.
func (tx *Tx) ObjectCache(destinationID int64) (*ObjectCache, error) {
	var found *ObjectCache
	err := tx.query("SELECT fetched_at, objects FROM object_caches WHERE destination_id = ?", func(c sqlite.Row) error {
		s := scan{cells: c}
		found = &ObjectCache{FetchedAt: s.time()}
		s.doc(&found.Objects)
		return s.err
	}, destinationID)
	if err == nil && found == nil {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read objects of destination %d: %w", destinationID, err)
	}
	return found, nil
}

// DropObjectCache forgets the cached objects of a destination, as when its
// credentials have changed.
func (tx *Tx) DropObjectCache(destinationID int64) error {
	_, err := tx.exec("DELETE FROM object_caches WHERE destination_id = ?", destinationID)
	return err
}
