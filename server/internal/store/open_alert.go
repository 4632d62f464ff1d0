package store

// OpenAlert is a violation of an alert of a sync that lasts. Its ID is
// the alert_instance_id that the notices of raising and resolving share.
type OpenAlert struct {
	Row
	SyncID    int64
	AlertID   int64  // id of the alert in the sync; negative: of a deprecated field
	Type      string // of the alert when it was raised
	LastRunID int64  // the last run whose violation was reported
}

// OpenAlerts belong to a sync, which has one at most for each alert.
var OpenAlerts = define(Table[OpenAlert]{
	name: "open_alerts", kind: "open alert", scope: "sync_id",
	columns: []string{"sync_id", "alert_id", "type", "last_run_id"},
	cells: func(a *OpenAlert) []any {
		return []any{&a.SyncID, &a.AlertID, &a.Type, &a.LastRunID}
	},
})

// OpenAlerts reads the violations of a sync, oldest first.
func (tx *Tx) OpenAlerts(syncID int64) ([]*OpenAlert, error) {
	return OpenAlerts.some(tx, "sync_id = ? ORDER BY id", syncID)
}
