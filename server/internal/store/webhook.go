package store

import (
	"fmt"
	"net/url"
	"time"

	"github.com/destkit/destkit/server/internal/store/sealing"
)

// Webhook is notified of sync events. Its Endpoint may hold secrets in path
// and query, so it is kept sealed; Site is what may be shown of it, scheme
// and host. The secret that signs is read apart.
type Webhook struct {
	Row
	WorkspaceID int64
	Name        string
	Description *string
	Events      []string
	Endpoint    string
	Site        string // set from Endpoint
}

// Webhooks belong to a workspace. CreateWebhook stores one with its secret, which stays.
var Webhooks = define(Table[Webhook]{
	name: "webhooks", kind: "webhook", scope: "workspace_id",
	columns: []string{"workspace_id", "name", "description", "events", "site"},
	cells: func(w *Webhook) []any {
		w.Site = siteOf(w.Endpoint)
		return []any{&w.WorkspaceID, &w.Name, &w.Description, &w.Events, &w.Site}
	},
	stored: func(tx *Tx, w *Webhook) error {
		return tx.keys.Put(w.WorkspaceID, endpointPlace(w.ID), []byte(w.Endpoint))
	},
	loaded: func(tx *Tx, w *Webhook) error {
		endpoint, err := tx.keys.Open(endpointPlace(w.ID))
		if err != nil {
			return fmt.Errorf("read webhook %d: %w", w.ID, err)
		}
		w.Endpoint = string(endpoint)
		return nil
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
	if err := Webhooks.Create(tx, w); err != nil {
		return err
	}
	return tx.keys.Put(w.WorkspaceID, secretPlace(w.ID), []byte(secret))
}

// WebhookSecret opens the secret that signs the calls of a webhook.
func (tx *Tx) WebhookSecret(id int64) (string, error) {
	secret, err := tx.keys.Open(secretPlace(id))
	return string(secret), err
}

// The states of outgoing messages: a WebhookDelivery, and the copy of a Mail
// that goes to a mail server.
const (
	DeliveryOpen      = "open"      // NextAttempt holds when it is tried
	DeliveryDelivered = "delivered" // the endpoint has taken it
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

// WebhookDeliveries belong to a workspace. One goes with its webhook, and stays when the
// sync is deleted.
var WebhookDeliveries = define(Table[WebhookDelivery]{
	name: "webhook_deliveries", kind: "webhook delivery", scope: "workspace_id",
	columns: []string{"workspace_id", "webhook_id", "sync_id", "sync_run_id", "event", "body", "status",
		"attempts", "next_attempt", "last_attempt", "http_status", "error"},
	cells: func(d *WebhookDelivery) []any {
		return []any{&d.WorkspaceID, &d.WebhookID, &d.SyncID, &d.SyncRunID, &d.Event, &d.Body, &d.Status,
			&d.Attempts, &d.NextAttempt, &d.LastAttempt, &d.HTTPStatus, &d.Error}
	},
	begin: func(tx *Tx, d *WebhookDelivery) {
		d.Status = DeliveryOpen
		if d.NextAttempt.IsZero() {
			d.NextAttempt = tx.now
		}
	},
})

// OpenWebhookDeliveries reads the open deliveries of all workspaces with an id
// above after, in the order of their ids.
func (tx *Tx) OpenWebhookDeliveries(after int64) ([]*WebhookDelivery, error) {
	return WebhookDeliveries.some(tx, "status = 'open' AND id > ? ORDER BY id", after)
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
