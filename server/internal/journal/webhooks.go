package journal

import (
	"encoding/json"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/store"
)

// WebhookEntry is one call of a webhook. Of the endpoint only scheme
// and host are kept: the rest may be secret. Neither is the signature, which
// proves to a webhook who calls it.
type WebhookEntry struct {
	Number         int64     `json:"number"`
	ID             string    `json:"id"`
	At             api.Time  `json:"at"` // on the service's clock
	DurationMS     float64   `json:"duration_ms"`
	OrganizationID int64     `json:"organization_id"`
	WorkspaceID    int64     `json:"workspace_id"`
	WebhookID      int64     `json:"webhook_id"`
	DeliveryID     int64     `json:"delivery_id"` // that of /webhook_deliveries
	SyncID         int64     `json:"sync_id"`
	SyncRunID      int64     `json:"sync_run_id"`
	Event          string    `json:"event"`
	Attempt        int64     `json:"attempt"` // from 1; above it are retries
	Endpoint       string    `json:"endpoint"`
	Status         int       `json:"http_status"`     // 0: no answer
	Error          string    `json:"error"`           // "" for a status of 2xx
	NextAttempt    *api.Time `json:"next_attempt_at"` // null when it is over
	// Body is the sent body, null where bodies are switched off.
	Body json.RawMessage `json:"body"`
}

// Webhook keeps one call of a webhook that took so long in real time.
func (j *Journal) Webhook(organizationID int64, hook *store.Webhook, d *store.WebhookDelivery, took time.Duration) {
	entry := WebhookEntry{
		At: api.Time{Time: d.LastAttempt}, DurationMS: float64(took.Microseconds()) / 1000,
		OrganizationID: organizationID, WorkspaceID: d.WorkspaceID, WebhookID: d.WebhookID, DeliveryID: d.ID,
		SyncID: d.SyncID, SyncRunID: d.SyncRunID, Event: d.Event, Attempt: d.Attempts, Endpoint: hook.Site,
		Status: int(d.HTTPStatus), Error: d.Error, NextAttempt: api.At(d.NextAttempt),
	}
	if j.bodies.Load() {
		entry.Body = json.RawMessage(d.Body)
	}
	j.webhooks.add(entry)
}

// controlWebhookCalls lists calls of webhooks.
func (j *Journal) controlWebhookCalls(c *call.Control) (any, error) {
	query, err := c.Query(append([]string{"workspace", "webhook", "sync", "sync_run", "event"}, common...)...)
	if err != nil {
		return nil, err
	}
	f, err := j.filter(query)
	if err != nil {
		return nil, err
	}
	var workspace, webhook, sync, run int64
	for name, into := range map[string]*int64{"workspace": &workspace, "webhook": &webhook, "sync": &sync, "sync_run": &run} {
		if *into, err = call.Integer(query, name, 0, 1, 1<<62); err != nil {
			return nil, err
		}
	}
	if f.after, err = call.Integer(query, "after", 0, 0, 1<<62); err != nil {
		return nil, err
	}
	event := query.Get("event")
	return read(&j.webhooks, &f, func(e *WebhookEntry) bool {
		return is(f.organization, e.OrganizationID) && is(workspace, e.WorkspaceID) && is(webhook, e.WebhookID) &&
			is(sync, e.SyncID) && is(run, e.SyncRunID) && f.status(e.Status) && is(event, e.Event)
	}), nil
}
