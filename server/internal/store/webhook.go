package store

import (
	"fmt"
	"net/url"
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
	row:     func(w *Webhook) *Row { return &w.Row },
	values: func(w *Webhook) []any {
		return []any{w.WorkspaceID, w.Name, doc{w.Description}, doc{w.Events}, w.Site}
	},
	load: func(s *scan, w *Webhook) {
		w.WorkspaceID, w.Name = s.number(), s.text()
		s.doc(&w.Description)
		s.doc(&w.Events)
		w.Site = s.text()
	},
})

func endpointPlace(id int64) place { return place{"webhooks", id, "sealed_endpoint"} }
func secretPlace(id int64) place   { return place{"webhooks", id, "sealed_secret"} }

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
	if err := tx.put(w.WorkspaceID, endpointPlace(w.ID), []byte(w.Endpoint)); err != nil {
		return err
	}
	return tx.put(w.WorkspaceID, secretPlace(w.ID), []byte(secret))
}

// SaveWebhook stores a changed webhook; its secret stays.
func (tx *Tx) SaveWebhook(w *Webhook) error {
	w.Site = siteOf(w.Endpoint)
	if err := webhooks.save(tx, w); err != nil {
		return err
	}
	return tx.put(w.WorkspaceID, endpointPlace(w.ID), []byte(w.Endpoint))
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
		endpoint, err := tx.open(endpointPlace(w.ID))
		if err != nil {
			return fmt.Errorf("read webhook %d: %w", w.ID, err)
		}
		w.Endpoint = string(endpoint)
	}
	return nil
}

// WebhookSecret opens the secret that signs the calls of a webhook.
func (tx *Tx) WebhookSecret(id int64) (string, error) {
	secret, err := tx.open(secretPlace(id))
	return string(secret), err
}

// DeleteWebhook deletes a webhook.
func (tx *Tx) DeleteWebhook(workspaceID, id int64) error {
	return webhooks.delete(tx, workspaceID, id)
}
