package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// Plan holds when a sync runs by itself.
type Plan struct {
	DueAt time.Time // the next moment of its schedule; zero: none
	Turn  int64     // of those due at one moment the lower one comes first
	After int64     // the sync whose end starts it; 0: none
}

// Due is a sync with the next moment of its schedule.
type Due struct {
	SyncID, WorkspaceID int64
	At                  time.Time
	Turn                int64
}

// plan keeps when a sync runs, in the change that stores the sync: so no way of
// storing one passes it by.
func (tx *Tx) plan(y *Sync) error {
	if tx.store.plan == nil {
		return nil
	}
	return tx.PlanSync(y, tx.now)
}

// PlanSync computes again when a sync runs, the first time after from.
func (tx *Tx) PlanSync(y *Sync, from time.Time) (err error) {
	if y.Due = (Due{}); tx.store.plan == nil {
		return errors.New("plan sync: the store does not know when syncs fall due")
	}
	p := tx.store.plan(y, from)
	if p.DueAt.IsZero() && p.After == 0 {
		_, err = tx.exec("DELETE FROM schedules WHERE sync_id = ?", y.ID)
	} else {
		var after *int64
		if p.After != 0 {
			after = &p.After
		}
		_, err = tx.exec(`INSERT INTO schedules (sync_id, workspace_id, due_at, turn, planned_at, after_sync) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (sync_id) DO UPDATE SET due_at = excluded.due_at, turn = excluded.turn, planned_at = excluded.planned_at, after_sync = excluded.after_sync`,
			y.ID, y.WorkspaceID, p.DueAt, p.Turn, from, after)
		y.Due = Due{y.ID, y.WorkspaceID, p.DueAt, p.Turn}
	}
	if err != nil {
		return fmt.Errorf("plan sync %d: %w", y.ID, err)
	}
	return nil
}

// Unschedule keeps a sync from falling due until it is planned again.
func (tx *Tx) Unschedule(syncID int64) error {
	if _, err := tx.exec("UPDATE schedules SET due_at = NULL WHERE sync_id = ?", syncID); err != nil {
		return fmt.Errorf("unschedule sync %d: %w", syncID, err)
	}
	return nil
}

// FirstDue is what falls due first; ErrNotFound when nothing does.
func (tx *Tx) FirstDue() (Due, error) {
	found, err := tx.dues("due_at IS NOT NULL ORDER BY due_at, turn LIMIT 1")
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("read schedules: %w", ErrNotFound)
	}
	if err != nil {
		return Due{}, err
	}
	return found[0], nil
}

// DueSyncs are at most limit of those that are due by now, in their order.
func (tx *Tx) DueSyncs(now time.Time, limit int64) ([]Due, error) {
	return tx.dues("due_at <= ? ORDER BY due_at, turn LIMIT ?", now, limit)
}

// UnplannedSyncs are at most limit syncs with an id above after that have to be planned
// again by a clock that shows now: those that no moment was found for yet, that were
// planned from a later moment, and, unless it is zero, that were due by missed.
func (tx *Tx) UnplannedSyncs(after int64, now, missed time.Time, limit int64) ([]*Sync, error) {
	return Syncs.some(tx, `id IN (SELECT sync_id FROM schedules WHERE sync_id > ? AND (planned_at IS NULL OR planned_at > ? OR due_at <= ?)
		ORDER BY sync_id LIMIT ?) ORDER BY id`, after, now, missed, limit)
}

// LastTurn is the highest turn that was given.
func (tx *Tx) LastTurn() (int64, error) {
	n, err := tx.number("SELECT coalesce(max(turn), 0) FROM schedules")
	if err != nil {
		return 0, fmt.Errorf("read schedules: %w", err)
	}
	return n, nil
}

// Followers are the syncs of a workspace that the end of a sync starts, in the order
// in which they were made.
func (tx *Tx) Followers(workspaceID, syncID int64) (ids []int64, err error) {
	err = tx.query(`SELECT s.id FROM schedules p JOIN syncs s ON s.id = p.sync_id
		WHERE p.after_sync = ? AND p.workspace_id = ? ORDER BY s.created_at, s.id`, func(c sqlite.Row) error {
		id, _ := c.Number(0)
		ids = append(ids, id)
		return nil
	}, syncID, workspaceID)
	if err != nil {
		return nil, fmt.Errorf("read followers of sync %d: %w", syncID, err)
	}
	return ids, nil
}

func (tx *Tx) dues(condition string, args ...any) (found []Due, err error) {
	err = tx.query("SELECT sync_id, workspace_id, due_at, turn FROM schedules WHERE "+condition, func(c sqlite.Row) error {
		s := scan{cells: c}
		found = append(found, Due{SyncID: s.number(), WorkspaceID: s.number(), At: s.time(), Turn: s.number()})
		return nil
	}, args...)
	if err != nil {
		return nil, fmt.Errorf("read schedules: %w", err)
	}
	return found, nil
}
