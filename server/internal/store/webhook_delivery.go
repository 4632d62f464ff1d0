package store

import (
	"fmt"
	"time"
)

// The states of what is sent to others: a WebhookDelivery, and the copy of a
// Mail that goes to a mail server.
const (
	DeliveryOpen      = "open"      // NextAttempt says when it is tried
	DeliveryDelivered = "delivered" // the other side has taken it
	DeliveryFailed    = "failed"    // given up
)

// WebhookDelivery is one event on its way to one webhook. Body is the
// exact text that every attempt sends and signs; it holds no secret, and neither
// may Error.
type WebhookDelivery struct {
	Row
	WorkspaceID int64
	WebhookID   int64
	SyncID      int64
	SyncRunID   int64
	Event       string
	Body        string
	Status      string // set to DeliveryOpen at creation
	Attempts    int64
	NextAttempt time.Time // zero when it is over; at creation zero is now
	LastAttempt time.Time
	HTTPStatus  int64  // of the last attempt; 0: no answer
	Error       string // of the last attempt; "" when it was delivered
}

var webhookDeliveries = define(table[WebhookDelivery]{
	name: "webhook_deliveries", kind: "webhook delivery", scope: "workspace_id",
	columns: []string{"workspace_id", "webhook_id", "sync_id", "sync_run_id", "event", "body", "status",
		"attempts", "next_attempt", "last_attempt", "http_status", "error"},
	row: func(d *WebhookDelivery) *Row { return &d.Row },
	values: func(d *WebhookDelivery) []any {
		return []any{d.WorkspaceID, d.WebhookID, d.SyncID, d.SyncRunID, d.Event, d.Body, d.Status,
			d.Attempts, d.NextAttempt, d.LastAttempt, d.HTTPStatus, d.Error}
	},
	load: func(s *scan, d *WebhookDelivery) {
		d.WorkspaceID, d.WebhookID, d.SyncID, d.SyncRunID = s.number(), s.number(), s.number(), s.number()
		d.Event, d.Body, d.Status, d.Attempts = s.text(), s.text(), s.text(), s.number()
		d.NextAttempt, d.LastAttempt, d.HTTPStatus, d.Error = s.time(), s.time(), s.number(), s.text()
	},
})

// CreateWebhookDelivery stores an open delivery. It goes with its webhook and
// with its workspace, and stays when the sync is deleted.
func (tx *Tx) CreateWebhookDelivery(d *WebhookDelivery) error {
	d.Status = DeliveryOpen
	if d.NextAttempt.IsZero() {
		d.NextAttempt = tx.now
	}
	return webhookDeliveries.create(tx, d)
}

// SaveWebhookDelivery stores what became of an attempt.
func (tx *Tx) SaveWebhookDelivery(d *WebhookDelivery) error { return webhookDeliveries.save(tx, d) }

// WebhookDelivery reads a delivery of any workspace.
func (tx *Tx) WebhookDelivery(id int64) (*WebhookDelivery, error) {
	return webhookDeliveries.one(tx, "id = ?", id)
}

// WebhookDeliveries lists the deliveries of a workspace.
func (tx *Tx) WebhookDeliveries(workspaceID int64, p Page) ([]*WebhookDelivery, int64, error) {
	return webhookDeliveries.list(tx, p, workspaceID)
}

// OpenWebhookDeliveries reads the open deliveries of all workspaces with an id
// above after, in the order of their ids.
func (tx *Tx) OpenWebhookDeliveries(after int64) ([]*WebhookDelivery, error) {
	return webhookDeliveries.some(tx, "status = 'open' AND id > ? ORDER BY id", after)
}

// GiveUpDeliveries ends everything that is open, webhooks and e-mails, with a
// reason, and tells how many they were.
func (tx *Tx) GiveUpDeliveries(why string) (int64, error) {
	hooks, err := tx.exec("UPDATE webhook_deliveries SET status = 'failed', next_attempt = NULL, error = ?, version = version + 1 WHERE status = 'open'", why)
	if err != nil {
		return 0, fmt.Errorf("give up webhook deliveries: %w", err)
	}
	mails, err := tx.exec("UPDATE mails SET delivery = 'failed', next_attempt = NULL, error = ?, version = version + 1 WHERE delivery = 'open'", why)
	if err != nil {
		return 0, fmt.Errorf("give up e-mails: %w", err)
	}
	return hooks + mails, nil
}

// PruneWebhookDeliveries deletes the deliveries of a workspace that are over and
// were created before a moment.
func (tx *Tx) PruneWebhookDeliveries(workspaceID int64, before time.Time) error {
	_, err := tx.exec("DELETE FROM webhook_deliveries WHERE workspace_id = ? AND created_at < ? AND status <> 'open'", workspaceID, before)
	if err != nil {
		return fmt.Errorf("prune webhook deliveries: %w", err)
	}
	return nil
}
