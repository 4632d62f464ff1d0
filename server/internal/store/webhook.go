package store

import (
	"fmt"
	"net/url"
	"time"

	"github.com/destkit/destkit/server/internal/store/sealing"
)

// Webhook is told of the life of syncs. Its Endpoint may hold secrets
// in path and query, so it is kept sealed; Site is what may be shown of it,
// scheme and host. The secret that signs is read apart.
type Webhook struct {
	Row
	WorkspaceID int64
	Name        string
	Description *string
	Events      []string
	Endpoint    string
	Site        string // set from Endpoint
}

var webhooks = define(table[Webhook]{
	name: "webhooks", kind: "webhook", scope: "workspace_id",
	columns: []string{"workspace_id", "name", "description", "events", "site"},
	cells: func(w *Webhook) []any {
		return []any{&w.WorkspaceID, &w.Name, &w.Description, &w.Events, &w.Site}
	},
})

func endpointPlace(id int64) sealing.Place {
	return sealing.Place{Table: "webhooks", ID: id, Column: "sealed_endpoint"}
}

func secretPlace(id int64) sealing.Place {
	return sealing.Place{Table: "webhooks", ID: id, Column: "sealed_secret"}
}

// siteOf is the part of a URL that holds no secret.
func siteOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// CreateWebhook stores a new webhook and the secret that signs its calls.
func (tx *Tx) CreateWebhook(w *Webhook, secret string) error {
	w.Site = siteOf(w.Endpoint)
	if err := webhooks.create(tx, w); err != nil {
		return err
	}
	if err := tx.keys.Put(w.WorkspaceID, endpointPlace(w.ID), []byte(w.Endpoint)); err != nil {
		return err
	}
	return tx.keys.Put(w.WorkspaceID, secretPlace(w.ID), []byte(secret))
}

// SaveWebhook stores a changed webhook; its secret stays.
func (tx *Tx) SaveWebhook(w *Webhook) error {
	w.Site = siteOf(w.Endpoint)
	if err := webhooks.save(tx, w); err != nil {
		return err
	}
	return tx.keys.Put(w.WorkspaceID, endpointPlace(w.ID), []byte(w.Endpoint))
}

// Webhook reads one webhook of a workspace.
func (tx *Tx) Webhook(workspaceID, id int64) (*Webhook, error) {
	w, err := webhooks.one(tx, "id = ? AND workspace_id = ?", id, workspaceID)
	if err != nil {
		return nil, err
	}
	return w, tx.openEndpoints(w)
}

// Webhooks lists the webhooks of a workspace.
func (tx *Tx) Webhooks(workspaceID int64, p Page) ([]*Webhook, int64, error) {
	found, total, err := webhooks.list(tx, p, workspaceID)
	if err == nil {
		err = tx.openEndpoints(found...)
	}
	return found, total, err
}

func (tx *Tx) openEndpoints(found ...*Webhook) error {
	for _, w := range found {
		endpoint, err := tx.keys.Open(endpointPlace(w.ID))
		if err != nil {
			return fmt.Errorf("read webhook %d: %w", w.ID, err)
		}
		w.Endpoint = string(endpoint)
	}
	return nil
}

// WebhookSecret opens the secret that signs the calls of a webhook.
func (tx *Tx) WebhookSecret(id int64) (string, error) {
	secret, err := tx.keys.Open(secretPlace(id))
	return string(secret), err
}

// DeleteWebhook deletes a webhook.
func (tx *Tx) DeleteWebhook(workspaceID, id int64) error {
	return webhooks.delete(tx, workspaceID, id)
}

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
	cells: func(d *WebhookDelivery) []any {
		return []any{&d.WorkspaceID, &d.WebhookID, &d.SyncID, &d.SyncRunID, &d.Event, &d.Body, &d.Status,
			&d.Attempts, &d.NextAttempt, &d.LastAttempt, &d.HTTPStatus, &d.Error}
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

// PruneWebhookDeliveries deletes the deliveries of a workspace that are over and
// were created before a moment.
func (tx *Tx) PruneWebhookDeliveries(workspaceID int64, before time.Time) error {
	_, err := tx.exec("DELETE FROM webhook_deliveries WHERE workspace_id = ? AND created_at < ? AND status <> 'open'", workspaceID, before)
	if err != nil {
		return fmt.Errorf("prune webhook deliveries: %w", err)
	}
	return nil
}
