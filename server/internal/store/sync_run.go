package store

import (
	"fmt"
	"math"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// SyncRun is one execution of a sync (spec 2.9). The ids and times of the Run itself are filled
// from the row. StartedAt is when work began, ToldAt when others were notified of its end; zero
// before. SetRunStarted and SetRunTold set them.
type SyncRun struct {
	Row
	WorkspaceID int64
	SyncID      int64
	StartedAt   time.Time
	ToldAt      time.Time
	Run         api.SyncRun
}

// SyncRuns belong to a sync.
var SyncRuns = define(Table[SyncRun]{
	name: "sync_runs", kind: "sync run", scope: "sync_id", counted: true,
	columns: []string{"workspace_id", "sync_id", "status", "canceled", "completed_at", "started_at", "told_at", "run"},
	cells: func(r *SyncRun) []any {
		// Written for conditions of queries; reads use the document.
		status, canceled, completed := r.Run.Status, r.Run.Canceled, time.Time{}
		if r.Run.CompletedAt != nil {
			completed = r.Run.CompletedAt.Time
		}
		return []any{&r.WorkspaceID, &r.SyncID, &status, &canceled, &completed, &r.StartedAt, &r.ToldAt, runCell{r}}
	},
	stored: func(_ *Tx, r *SyncRun) error {
		r.fill()
		return nil
	},
})

// runCell keeps the document of a run.
type runCell struct{ *SyncRun }

func (c runCell) argument() any { return doc{c.Run} }

func (c runCell) read(s *scan) {
	s.doc(&c.Run)
	c.fill()
}

// fill repeats in the document what the row knows.
func (r *SyncRun) fill() {
	r.Run.ID, r.Run.SyncID = r.ID, r.SyncID
	r.Run.CreatedAt, r.Run.UpdatedAt = api.Time{Time: r.CreatedAt}, api.Time{Time: r.UpdatedAt}
}

// SyncRun reads one run of a workspace.
func (tx *Tx) SyncRun(workspaceID, id int64) (*SyncRun, error) {
	return SyncRuns.one(tx, "id = ? AND workspace_id = ?", id, workspaceID)
}

// SetRunStarted keeps the moment of the transaction as the one at which work on a
// run began. It reports whether this was the first time; a run that is resumed
// keeps its moment. The version counts up, so that no one saves over it.
func (tx *Tx) SetRunStarted(id int64) (first bool, err error) {
	return tx.setRunMoment("started_at", id)
}

// SetRunTold keeps the moment of the transaction at which others were notified of
// the end of a run. It reports whether this was the first time.
func (tx *Tx) SetRunTold(id int64) (first bool, err error) {
	return tx.setRunMoment("told_at", id)
}

func (tx *Tx) setRunMoment(column string, id int64) (first bool, err error) {
	changed, err := tx.exec("UPDATE sync_runs SET "+column+" = ?, version = version + 1 WHERE id = ? AND "+column+" IS NULL", tx.now, id)
	if err != nil {
		return false, fmt.Errorf("set %s of sync run %d: %w", column, id, err)
	}
	return changed > 0, nil
}

// UntoldRuns reads the runs of all workspaces that were started and have
// ended, but whose end was not reported, oldest first.
func (tx *Tx) UntoldRuns() ([]*SyncRun, error) {
	return SyncRuns.some(tx, "started_at IS NOT NULL AND told_at IS NULL AND NOT ("+active+") ORDER BY id")
}

// CompletedRuns reads the last limit completed runs of a sync that were created
// before the run with that id, newest first.
func (tx *Tx) CompletedRuns(syncID, before, limit int64) ([]*SyncRun, error) {
	return SyncRuns.some(tx, "sync_id = ? AND status = 'completed' AND id < ? ORDER BY created_at DESC, id DESC LIMIT ?", syncID, before, limit)
}

// KeptRun is a run that is over and whose records may still be kept.
type KeptRun struct {
	ID, SyncID  int64
	CompletedAt time.Time
}

// KeptRuns are at most limit of them that come after another one (the zero value:
// from the first) in the order of their ends.
func (tx *Tx) KeptRuns(after KeptRun, limit int64) (found []KeptRun, err error) {
	err = tx.query(`SELECT id, sync_id, completed_at FROM sync_runs WHERE records_gone = 0 AND completed_at IS NOT NULL
		AND completed_at >= ? AND (completed_at > ? OR id > ?) ORDER BY completed_at, id LIMIT ?`, func(c sqlite.Row) error {
		s := scan{cells: c}
		found = append(found, KeptRun{ID: s.number(), SyncID: s.number(), CompletedAt: s.time()})
		return nil
	}, milliseconds(after.CompletedAt), milliseconds(after.CompletedAt), after.ID, limit)
	if err != nil {
		return nil, fmt.Errorf("read runs with records: %w", err)
	}
	return found, nil
}

// milliseconds is a moment as rows keep it; the zero time comes before all of them.
func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return t.UnixMilli()
}

// SetRecordsGone notes that no records are kept of a run any more. No reply shows it, so
// its version stays.
func (tx *Tx) SetRecordsGone(id int64) error {
	if _, err := tx.exec("UPDATE sync_runs SET records_gone = 1 WHERE id = ?", id); err != nil {
		return fmt.Errorf("note that sync run %d has no records: %w", id, err)
	}
	return nil
}

// NewestRunID is the greatest id that a run was ever given, in a store that is not
// shared; 0: there was none.
func (tx *Tx) NewestRunID() (int64, error) {
	return tx.number("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'sync_runs'")
}

const active = "status IN ('queued', 'working')"

// ActiveRun finds the oldest run of a sync that is queued or working.
func (tx *Tx) ActiveRun(syncID int64) (*SyncRun, error) {
	return SyncRuns.one(tx, "sync_id = ? AND "+active+" ORDER BY id LIMIT 1", syncID)
}

// LastRun finds the newest run of a sync.
func (tx *Tx) LastRun(syncID int64) (*SyncRun, error) {
	return SyncRuns.one(tx, "sync_id = ? ORDER BY created_at DESC, id DESC LIMIT 1", syncID)
}

// EveryActiveRun reads the queued and working runs of all workspaces, oldest
// first.
func (tx *Tx) EveryActiveRun() ([]*SyncRun, error) {
	return SyncRuns.some(tx, active+" ORDER BY id")
}
