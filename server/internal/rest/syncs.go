package rest

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// syncOf shows a sync: an *api.Sync in the form of the dialect.
// match_rate_details belongs to the reply of an update in the spec dialect
// (spec 2.6).
func (h *Handlers) syncOf(y *store.Sync, update bool) any {
	shown := &api.Sync{
		ID: y.ID, Status: h.Shared.Dialect.SyncStatus(y.Status), SyncConfig: y.Config,
		CreatedAt: api.Time{Time: y.CreatedAt}, UpdatedAt: api.Time{Time: y.UpdatedAt},
	}
	shown.Mappings, shown.SourceAttributes = sources.Mappings(y), sources.SegmentSource(y.Config.SourceAttributes)
	if update || h.Shared.Dialect.UpdateOnlyProperties {
		shown.MatchRateDetails = api.Raw(y.MatchRate)
	}
	return h.Shared.Dialect.Sync(shown)
}

// ownSync finds the sync of the path.
var ownSync = one(callersWorkspace, "sync_id", store.Syncs.Read)

// syncOfPath is what runs belong to.
func syncOfPath(c *call.Call, tx *store.Tx) (int64, error) {
	y, err := store.Syncs.Head(tx, c.Who.WorkspaceID, c.ID("sync_id"))
	return y.ID, err
}

// listSyncs answers from rendered replies: 100 syncs are much text, and most
// have not changed since they were last shown.
func (h *Handlers) listSyncs(c *call.Call) (*call.Reply, error) {
	at := syncPage{c.Who.WorkspaceID, c.Page()}
	// Read before the rows: a change in between makes the kept page useless,
	// never wrong.
	generation := h.Shared.Store.Generation()
	if l, ok := h.replies.listed(generation, at); ok {
		if texts := h.replies.all(l.heads); texts != nil {
			return listRendered(c, at.page, l.total, texts)
		}
	}
	var l listedSyncs
	var texts [][]byte
	err := c.View(func(tx *store.Tx) (err error) {
		if l.heads, l.total, err = store.Syncs.Heads(tx, at.workspaceID, at.page); err != nil {
			return err
		}
		for _, head := range l.heads {
			text, err := h.renderedSync(tx, at.workspaceID, head)
			if err != nil {
				return err
			}
			texts = append(texts, text)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	h.replies.keepListed(generation, at, l)
	return listRendered(c, at.page, l.total, texts)
}

// renderedSync is one sync as JSON, from the kept replies when its version is
// still the same.
func (h *Handlers) renderedSync(tx *store.Tx, workspaceID int64, head store.Head) ([]byte, error) {
	if text := h.replies.get(head.ID, head.Version); text != nil {
		return text, nil
	}
	y, err := store.Syncs.Read(tx, workspaceID, head.ID)
	if err != nil {
		return nil, err
	}
	text, err := rawjson.Encode(h.syncOf(y, false))
	if err != nil {
		return nil, err
	}
	text = text[:len(text)-1] // the newline of the encoder
	h.replies.put(y.ID, y.Version, text)
	return text, nil
}

// fetchSync answers from the kept text: clients ask for one sync more often
// than for anything else.
func (h *Handlers) fetchSync(c *call.Call) (*call.Reply, error) {
	var text []byte
	err := c.View(func(tx *store.Tx) error {
		head, err := store.Syncs.Head(tx, c.Who.WorkspaceID, c.ID("sync_id"))
		if err == nil {
			text, err = h.renderedSync(tx, c.Who.WorkspaceID, head)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	raw := make([]byte, 0, len(text)+40)
	raw = append(append(append(raw, `{"status":"success","data":`...), text...), "}\n"...)
	return &call.Reply{Code: http.StatusOK, Raw: raw}, nil
}

// deprecatedSyncFields are those of spec 9.
var deprecatedSyncFields = []string{
	"high_water_mark_attributes", "failed_run_notifications_enabled",
	"failed_record_notifications_enabled", "failed_record_notifications_threshold_percent",
}

// sentDeprecatedFields reports whether the body of the call has one of them.
func sentDeprecatedFields(c *call.Call) bool {
	for _, field := range deprecatedSyncFields {
		if c.Has(field) {
			return true
		}
	}
	return false
}

// onlyValidates reports whether the call only validates (spec 4.1.2).
func onlyValidates(c *call.Call) bool {
	return c.Has("validate_only") && string(c.Present["validate_only"]) == "true"
}

// createSync stores a valid configuration; it starts nothing.
func (h *Handlers) createSync(c *call.Call) (*call.Reply, error) {
	y := &store.Sync{WorkspaceID: c.Who.WorkspaceID, Status: api.SyncReady}
	return h.configured(c, y, store.Syncs.Create, func() api.Reply {
		return api.Reply{Status: api.StatusCreated, Data: map[string]int64{"sync_id": y.ID}}
	})
}

// configured lays the body over a sync and stores it, or returns what it would store; shown
// is the answer once it is stored.
func (h *Handlers) configured(c *call.Call, y *store.Sync, save func(*store.Tx, *store.Sync) error, shown func() api.Reply) (*call.Reply, error) {
	if err := h.configure(c, y); err != nil {
		return nil, err
	}
	if onlyValidates(c) {
		return h.validated(c, y)
	}
	if err := c.Update(func(tx *store.Tx) error {
		numberAlerts(y)
		return save(tx, y)
	}); err != nil {
		return nil, err
	}
	h.Schedule.Put(y)
	return &call.Reply{Code: http.StatusOK, Deprecated: sentDeprecatedFields(c), Body: shown()}, nil
}

// validated answers a call with validate_only: the sync as it would be.
func (h *Handlers) validated(c *call.Call, y *store.Sync) (*call.Reply, error) {
	// As it would be after the change.
	now := h.Clock.Now()
	if y.ID == 0 {
		y.CreatedAt = now
	}
	y.UpdatedAt = now
	shown := h.syncOf(y, true)
	body := api.Reply{Status: api.StatusSuccess, Data: shown}
	if y.ID == 0 {
		// A sync that does not exist has no id.
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(api.Raw(shown), &fields); err != nil {
			return nil, err
		}
		delete(fields, "id")
		body.Data = fields
	}
	return &call.Reply{Code: http.StatusOK, Deprecated: sentDeprecatedFields(c), Body: body}, nil
}

// updateSync changes what the body holds and keeps the rest (spec 4.1.1). Two
// updates at once never mix: the later one is refused with 409.
func (h *Handlers) updateSync(c *call.Call) (*call.Reply, error) {
	y, err := view(c, ownSync)
	if err != nil {
		return nil, err
	}
	return h.configured(c, y, store.Syncs.Save, func() api.Reply {
		return api.Reply{Status: api.StatusUpdated, Data: h.syncOf(y, true)}
	})
}

// configure lays the body over the sync, checks the whole and completes it.
func (h *Handlers) configure(c *call.Call, y *store.Sync) error {
	// An update names by id the alerts that stay; unknown ids are
	// refused.
	existing := mapping.AlertIDs(&y.Config)
	before := sources.OriginOf(y)
	if err := overlay(c, &y.Config); err != nil {
		return err
	}
	sources.DropGenerated(y)
	return h.check(c, y, before, existing)
}

// overlay lays the body over the stored configuration: its values replace the
// stored ones whole, null included, and omitted ones stay.
func overlay(c *call.Call, dst *api.SyncConfig) error {
	before := *dst
	mapping.Supersede(dst, c.Keys())
	if err := c.Decode(dst); err != nil {
		return err
	}
	mapping.FollowDeprecated(&before, dst, c.Keys())
	return nil
}

// numberAlerts gives each new alert its id.
func numberAlerts(y *store.Sync) {
	for i := range y.Config.AlertAttributes {
		alert := &y.Config.AlertAttributes[i]
		if alert.ID == nil {
			y.NextAlertID++
			alert.ID = api.Ptr(y.NextAlertID)
		}
	}
}

// deleteSync refuses while a run is active; finished runs go with the sync.
func (h *Handlers) deleteSync(c *call.Call) (*call.Reply, error) {
	id := c.ID("sync_id")
	err := c.Update(func(tx *store.Tx) error {
		y, err := store.Syncs.Read(tx, c.Who.WorkspaceID, id)
		if err != nil {
			return err
		}
		run, err := tx.ActiveRun(y.ID)
		if err == nil {
			return problem.Refuse(http.StatusConflict, "sync run %d is %s; cancel it first", run.ID, run.Run.Status)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return store.Syncs.Delete(tx, y.WorkspaceID, y.ID)
	})
	if err != nil {
		return nil, err
	}
	if err := h.Ends.Forget(id); err != nil {
		h.Log.Warn("books of a deleted sync stay", "sync", id, "error", err)
	}
	return call.Deleted()
}
