package store

import "github.com/destkit/destkit/server/api"

// SyncRun is one execution of a sync (spec 2.9). The ids and times of the Run
// itself are filled from the row.
type SyncRun struct {
	Row
	WorkspaceID int64
	SyncID      int64
	Run         api.SyncRun
}

var syncRuns = define(table[SyncRun]{
	name: "sync_runs", kind: "sync run", scope: "sync_id", counted: true,
	columns: []string{"workspace_id", "sync_id", "status", "canceled", "completed_at", "run"},
	row:     func(r *SyncRun) *Row { return &r.Row },
	values: func(r *SyncRun) []any {
		var completed any
		if r.Run.CompletedAt != nil {
			completed = r.Run.CompletedAt.Time
		}
		return []any{r.WorkspaceID, r.SyncID, r.Run.Status, r.Run.Canceled, completed, doc{r.Run}}
	},
	load: func(s *scan, r *SyncRun) {
		r.WorkspaceID, r.SyncID = s.number(), s.number()
		s.col += 3 // in the document too
		s.doc(&r.Run)
		r.fill()
	},
})

// fill repeats in the document what the row knows.
func (r *SyncRun) fill() {
	r.Run.ID, r.Run.SyncID = r.ID, r.SyncID
	r.Run.CreatedAt, r.Run.UpdatedAt = api.Time{Time: r.CreatedAt}, api.Time{Time: r.UpdatedAt}
}

// CreateSyncRun stores a new run.
func (tx *Tx) CreateSyncRun(r *SyncRun) error {
	err := syncRuns.create(tx, r)
	r.fill()
	return err
}

// SaveSyncRun stores a changed run.
func (tx *Tx) SaveSyncRun(r *SyncRun) error {
	err := syncRuns.save(tx, r)
	r.fill()
	return err
}

// SyncRun reads one run of a workspace.
func (tx *Tx) SyncRun(workspaceID, id int64) (*SyncRun, error) {
	return syncRuns.one(tx, "id = ? AND workspace_id = ?", id, workspaceID)
}

// SyncRuns lists the runs of a sync.
func (tx *Tx) SyncRuns(syncID int64, p Page) ([]*SyncRun, int64, error) {
	return syncRuns.list(tx, p, syncID)
}

const active = "status IN ('queued', 'working')"

// ActiveRun finds the oldest run of a sync that is queued or working.
func (tx *Tx) ActiveRun(syncID int64) (*SyncRun, error) {
	return syncRuns.one(tx, "sync_id = ? AND "+active+" ORDER BY id LIMIT 1", syncID)
}

// LastRun finds the newest run of a sync.
func (tx *Tx) LastRun(syncID int64) (*SyncRun, error) {
	return syncRuns.one(tx, "sync_id = ? ORDER BY created_at DESC, id DESC LIMIT 1", syncID)
}

// EveryActiveRun reads the queued and working runs of all workspaces, oldest
// first.
func (tx *Tx) EveryActiveRun() ([]*SyncRun, error) {
	return syncRuns.some(tx, active+" ORDER BY id")
}
