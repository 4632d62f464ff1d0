package store

import (
	"fmt"
	"time"
)

// Mail is a message that the service sent; WorkspaceID is nil for those of the
// organization. Kind is the caller's word. Delivery follows the copy for a mail
// server: DeliveryOpen, DeliveryDelivered or DeliveryFailed, "" when there is
// none to be sent.
type Mail struct {
	Row
	OrganizationID int64
	WorkspaceID    *int64
	To             []string
	From           string
	Subject        string
	Text           string
	Kind           string
	At             time.Time // zero at creation: now
	Delivery       string
	Attempts       int64
	NextAttempt    time.Time // zero unless it is open
	Error          string    // of the last attempt
}

// Mails belong to an organization.
var Mails = define(Table[Mail]{
	name: "mails", kind: "mail", scope: "organization_id", counted: true,
	columns: []string{"organization_id", "workspace_id", "recipients", "sender", "subject", "body", "kind", "at",
		"delivery", "attempts", "next_attempt", "error"},
	cells: func(m *Mail) []any {
		return []any{&m.OrganizationID, &m.WorkspaceID, &m.To, &m.From, &m.Subject, &m.Text, &m.Kind, &m.At,
			&m.Delivery, &m.Attempts, &m.NextAttempt, &m.Error}
	},
	begin: func(tx *Tx, m *Mail) {
		if m.At.IsZero() {
			m.At = tx.now
		}
		if m.Delivery == DeliveryOpen && m.NextAttempt.IsZero() {
			m.NextAttempt = tx.now
		}
	},
})

// OpenMails reads the messages of all organizations that are still to be sent,
// with an id above after, in the order of their ids.
func (tx *Tx) OpenMails(after int64) ([]*Mail, error) {
	return Mails.some(tx, "delivery = 'open' AND id > ? ORDER BY id", after)
}

// DeleteMails empties the mailbox of an organization.
func (tx *Tx) DeleteMails(organizationID int64) error {
	if _, err := tx.exec("DELETE FROM mails WHERE organization_id = ?", organizationID); err != nil {
		return fmt.Errorf("delete mails: %w", err)
	}
	return nil
}

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
