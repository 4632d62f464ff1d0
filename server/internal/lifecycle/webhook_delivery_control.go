package lifecycle

import (
	"encoding/json"
	"slices"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/controlapi"
	"github.com/destkit/destkit/server/internal/store"
)

// deliveryFilter is a caller's filter; zero numbers are all.
type deliveryFilter struct {
	workspace, webhook, sync, run int64
	event, status                 string
}

func (f deliveryFilter) fits(d *store.WebhookDelivery) bool {
	is := func(wanted, id int64) bool { return wanted == 0 || wanted == id }
	return is(f.webhook, d.WebhookID) && is(f.sync, d.SyncID) && is(f.run, d.SyncRunID) &&
		(f.event == "" || f.event == d.Event) && (f.status == "" || f.status == d.Status)
}

// controlDeliveries pages after filtering, as the mailbox does: its total
// counts the matching deliveries.
func (l *Lifecycle) controlDeliveries(c *call.Control) (any, error) {
	query, err := c.Query("organization", "workspace", "webhook", "sync", "sync_run", "event", "status", "limit")
	if err != nil {
		return nil, err
	}
	filter := deliveryFilter{event: query.Get("event"), status: query.Get("status")}
	for name, into := range map[string]*int64{
		"workspace": &filter.workspace, "webhook": &filter.webhook, "sync": &filter.sync, "sync_run": &filter.run,
	} {
		if *into, err = call.Integer(query, name, 0, 1, 1<<62); err != nil {
			return nil, err
		}
	}
	limit, err := call.Integer(query, "limit", 1000, 1, 10_000)
	if err != nil {
		return nil, err
	}
	list := []controlapi.WebhookDelivery{}
	err = l.Shared.Store.View(c.R.Context(), func(tx *store.Tx) error {
		return eachChosen(tx, query, func(id int64) error {
			list, err = deliveriesIn(tx, id, filter, list)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b controlapi.WebhookDelivery) int { return int(b.ID - a.ID) })
	return map[string]any{"deliveries": list[:min(int64(len(list)), limit)], "total": len(list)}, nil
}

// deliveriesIn adds those of one organization.
func deliveriesIn(tx *store.Tx, organizationID int64, filter deliveryFilter, list []controlapi.WebhookDelivery) ([]controlapi.WebhookDelivery, error) {
	workspaces, _, err := store.Workspaces.List(tx, organizationID, store.Page{})
	if err != nil {
		return nil, err
	}
	for _, w := range workspaces {
		if filter.workspace != 0 && filter.workspace != w.ID {
			continue
		}
		sites := map[int64]string{}
		hooks, _, err := store.Webhooks.List(tx, w.ID, store.Page{})
		if err != nil {
			return nil, err
		}
		for _, hook := range hooks {
			sites[hook.ID] = hook.Site
		}
		rows, _, err := store.WebhookDeliveries.List(tx, w.ID, store.Page{})
		if err != nil {
			return nil, err
		}
		for _, d := range rows {
			if filter.fits(d) {
				list = append(list, deliveryOf(d, sites[d.WebhookID]))
			}
		}
	}
	return list, nil
}

func deliveryOf(d *store.WebhookDelivery, site string) controlapi.WebhookDelivery {
	shown := controlapi.WebhookDelivery{
		ID: d.ID, WorkspaceID: d.WorkspaceID, WebhookID: d.WebhookID, Site: site, SyncID: d.SyncID, SyncRunID: d.SyncRunID,
		Event: d.Event, Status: d.Status, Attempts: d.Attempts, CreatedAt: api.Time{Time: d.CreatedAt}, Body: json.RawMessage(d.Body),
		LastAttempt: api.At(d.LastAttempt), NextAttempt: api.At(d.NextAttempt),
	}
	if d.HTTPStatus != 0 {
		shown.HTTPStatus = &d.HTTPStatus
	}
	if d.Error != "" {
		shown.Error = &d.Error
	}
	return shown
}
