package store

import (
	"fmt"
	"time"
)

// Refresh is one reading of metadata that a client can query: Kind is what
// (RefreshObjects of a destination, RefreshTables of a source, RefreshColumns of
// a table) and TargetID of which.
type Refresh struct {
	Row
	WorkspaceID int64
	Kind        string
	TargetID    int64
	Status      string
	Error       string // "" unless it failed
	StartedAt   time.Time
	CompletedAt time.Time // zero while it is under way
}

// The kinds and states of a refresh.
const (
	RefreshObjects = "objects"
	RefreshTables  = "tables"
	RefreshColumns = "columns"
	RefreshDataset = "dataset"

	RefreshProcessing = "processing"
	RefreshCompleted  = "completed"
	RefreshFailed     = "failed"
)

// Key is the key of a client's query.
func (r *Refresh) Key() int64 { return r.ID }

// Refreshes belong to a workspace.
var Refreshes = define(Table[Refresh]{
	name: "refreshes", kind: "refresh", scope: "workspace_id",
	columns: []string{"workspace_id", "kind", "target_id", "status", "error", "started_at", "completed_at"},
	cells: func(r *Refresh) []any {
		return []any{&r.WorkspaceID, &r.Kind, &r.TargetID, &r.Status, &r.Error, &r.StartedAt, &r.CompletedAt}
	},
	begin: func(tx *Tx, r *Refresh) {
		if r.StartedAt.IsZero() {
			r.StartedAt = tx.now
		}
		if r.Status == "" {
			r.Status = RefreshProcessing
		}
	},
})

// Refresh reads a refresh of that kind and target.
func (tx *Tx) Refresh(kind string, targetID, key int64) (*Refresh, error) {
	return Refreshes.one(tx, "id = ? AND kind = ? AND target_id = ?", key, kind, targetID)
}

// LastRefresh is when the last refresh of a target that succeeded had ended; zero
// when there was none.
func (tx *Tx) LastRefresh(kind string, targetID int64) (at time.Time, err error) {
	r, err := Refreshes.some(tx, "kind = ? AND target_id = ? AND status = ? ORDER BY completed_at DESC LIMIT 1", kind, targetID, RefreshCompleted)
	if err != nil || len(r) == 0 {
		return at, err
	}
	return r[0].CompletedAt, nil
}

// AbandonRefreshes fails every refresh that a stopped process, or the state of a snapshot,
// has left under way.
func (tx *Tx) AbandonRefreshes() error {
	_, err := tx.exec(`UPDATE refreshes SET status = 'failed', error = ?, completed_at = ?, updated_at = ?,
		version = version + 1 WHERE status = 'processing'`, "the service was stopped", tx.now, tx.now)
	if err != nil {
		return fmt.Errorf("abandon refreshes: %w", err)
	}
	return nil
}
