package lifecycle

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// keptDeliveries is how long a delivery is kept after it is over, as long as the
// records of a run.
const keptDeliveries = 14 * 24 * time.Hour

// The retries of a delivery on the service's clock (up to five, the first
// after 4 s, growing); each wait is twice the one before.
const (
	deliveryRetries = 5
	deliveryWait    = 4 * time.Second
)

// lifecycleBody is the body of a lifecycle webhook, in the published order. Status is
// that of sync.completed: ok or emergency. Only the two alert events have the alert
// fields.
type lifecycleBody struct {
	WorkspaceID int64 `json:"workspace_id"`
	SyncID      int64 `json:"sync_id"`
	SyncRunID   int64 `json:"sync_run_id"`
	*alertBody
	Event  string `json:"event"`
	Status string `json:"status,omitempty"`
}

// alertBody is what an alert event adds.
type alertBody struct {
	InstanceID  int64  `json:"alert_instance_id"` // the same when raised and when resolved
	Type        string `json:"alert_type"`
	Message     string `json:"message"`
	Details     string `json:"details"`
	FollowupURL string `json:"followup_url"`
}

// asksFor reports whether a webhook of the workspace subscribes to an event.
func asksFor(tx *store.Tx, workspaceID int64, event string) (bool, error) {
	hooks, _, err := store.Webhooks.List(tx, workspaceID, store.Page{Ascending: true})
	return slices.ContainsFunc(hooks, func(w *store.Webhook) bool { return slices.Contains(w.Events, event) }), err
}

// tell stores an event for every webhook of the workspace that subscribes to it.
func (l *Lifecycle) tell(tx *store.Tx, body lifecycleBody) error {
	hooks, _, err := store.Webhooks.List(tx, body.WorkspaceID, store.Page{Ascending: true})
	if err != nil {
		return err
	}
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write event %s: %w", body.Event, err)
	}
	for _, w := range hooks {
		if !slices.Contains(w.Events, body.Event) {
			continue
		}
		err := store.WebhookDeliveries.Create(tx, &store.WebhookDelivery{
			WorkspaceID: w.WorkspaceID, WebhookID: w.ID, SyncID: body.SyncID, SyncRunID: body.SyncRunID,
			Event: body.Event, Body: string(text),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// openDeliveries is what the outbox of webhooks looks for.
func openDeliveries(tx *store.Tx, after int64) ([]outgoing, error) {
	rows, err := tx.OpenWebhookDeliveries(after)
	list := make([]outgoing, len(rows))
	for i, d := range rows {
		list[i] = outgoing{id: d.ID, receiver: d.WebhookID, at: d.NextAttempt}
	}
	return list, err
}

// Signature is the X-Signature of a body: base64, not hex.
func Signature(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(body)) // never fails
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// deliver makes one attempt. Endpoint and secret are those of this moment: a
// corrected endpoint gets the open deliveries.
func (l *Lifecycle) deliver(ctx context.Context, id int64, keep func(func(*store.Tx) error) error) (time.Time, error) {
	var d *store.WebhookDelivery
	var hook *store.Webhook
	var workspace *store.Workspace
	var secret string
	err := l.Shared.Store.View(ctx, func(tx *store.Tx) (err error) {
		if d, err = store.WebhookDeliveries.Any(tx, id); err != nil {
			return err
		}
		if hook, err = store.Webhooks.Read(tx, d.WorkspaceID, d.WebhookID); err != nil {
			return err
		}
		if workspace, err = store.Workspaces.Any(tx, d.WorkspaceID); err != nil {
			return err
		}
		secret, err = tx.WebhookSecret(hook.ID)
		return err
	})
	if err != nil || d.Status != store.DeliveryOpen {
		return time.Time{}, err
	}
	header := http.Header{"Content-Type": {"application/json"}, "X-Signature": {Signature(secret, d.Body)}}
	began := time.Now() // durations are real time
	made, err := l.Gate.Post(ctx, destination.Delivery{
		URL: hook.Endpoint, Header: header, Body: []byte(d.Body), Timeout: l.Timeout,
		Made: int(d.Attempts), Most: deliveryRetries, First: deliveryWait,
	})
	if ctx.Err() != nil { // not the webhook's fault: the attempt does not count
		return time.Time{}, ctx.Err()
	}
	l.judge(d, made, err)
	l.Called(workspace.OrganizationID, hook, d, time.Since(began))
	if d.Status != store.DeliveryDelivered {
		l.Log.Warn("webhook not delivered", "delivery", d.ID, "webhook", d.WebhookID, "site", hook.Site,
			"event", d.Event, "attempt", d.Attempts, "http_status", d.HTTPStatus, "error", d.Error)
	}
	return d.NextAttempt, keep(func(tx *store.Tx) error { return store.WebhookDeliveries.Save(tx, d) })
}

// judge notes how an attempt went and when the next one is due.
func (l *Lifecycle) judge(d *store.WebhookDelivery, made destination.Delivered, err error) {
	status := made.Status
	now := l.Clock.Now()
	d.Attempts++
	d.LastAttempt, d.NextAttempt, d.HTTPStatus, d.Error = now, time.Time{}, int64(status), ""
	switch {
	case err != nil:
		d.Error = err.Error()
	case status < 200 || status > 299:
		d.Error = fmt.Sprintf("http status %d %s", status, http.StatusText(status))
		if status >= 300 && status < 400 {
			d.Error += "; redirects are not followed, set the URL that finally answers"
		}
	default:
		d.Status = store.DeliveryDelivered
		return
	}
	if !made.Again {
		d.Status = store.DeliveryFailed
		return
	}
	d.NextAttempt = now.Add(made.Wait)
}
