package store

// OpenAlert is a violation of an alert of a sync that lasts. Its ID is
// the alert_instance_id that the notices of raising and resolving share.
type OpenAlert struct {
	Row
	SyncID    int64
	AlertID   int64  // id of the alert in the sync; negative: of a deprecated field
	Type      string // of the alert when it was raised
	LastRunID int64  // the last run whose violation was told
}

var openAlerts = define(table[OpenAlert]{
	name: "open_alerts", kind: "open alert", scope: "sync_id",
	columns: []string{"sync_id", "alert_id", "type", "last_run_id"},
	cells: func(a *OpenAlert) []any {
		return []any{&a.SyncID, &a.AlertID, &a.Type, &a.LastRunID}
	},
})

// CreateOpenAlert stores a new violation; a sync has one at most for each alert.
func (tx *Tx) CreateOpenAlert(a *OpenAlert) error { return openAlerts.create(tx, a) }

// SaveOpenAlert stores a violation that goes on.
func (tx *Tx) SaveOpenAlert(a *OpenAlert) error { return openAlerts.save(tx, a) }

// OpenAlerts reads the violations of a sync, oldest first.
func (tx *Tx) OpenAlerts(syncID int64) ([]*OpenAlert, error) {
	return openAlerts.some(tx, "sync_id = ? ORDER BY id", syncID)
}

// DeleteOpenAlert ends a violation.
func (tx *Tx) DeleteOpenAlert(syncID, id int64) error { return openAlerts.delete(tx, syncID, id) }
