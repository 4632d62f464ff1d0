package rest

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// startRefresh notes a refresh, runs it beside the call, and answers its key.
func (h *Handlers) startRefresh(c *call.Call, kind string, target int64, work func(context.Context) error) (*call.Reply, error) {
	r := &store.Refresh{WorkspaceID: c.Who.WorkspaceID, Kind: kind, TargetID: target, Status: store.RefreshProcessing, StartedAt: h.Clock.Now()}
	if err := c.Update(func(tx *store.Tx) error { return store.Refreshes.Create(tx, r) }); err != nil {
		return nil, err
	}
	// The client asks for the status; it need not wait for a slow destination.
	h.Work.Later("refresh "+kind, func(ctx context.Context) {
		// A failure is noted as one: a client that waits must see an end.
		r.Status, r.Error = store.RefreshCompleted, ""
		if err := work(ctx); err != nil {
			r.Status, r.Error = store.RefreshFailed, err.Error()
			h.Log.Warn("refresh failed", "kind", kind, "target", target, "error", err)
		}
		r.CompletedAt = h.Clock.Now()
		err := h.Shared.Store.Update(ctx, func(tx *store.Tx) error { return store.Refreshes.Save(tx, r) })
		// Who has deleted its target does not ask for it.
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrNotFound) {
			h.Log.Error("refresh cannot be noted", "kind", kind, "target", target, "error", err)
		}
	})
	return h.refreshReply(r.Key())
}

// refreshReply is {"refresh_key": n}, bare in the live dialect.
func (h *Handlers) refreshReply(key int64) (*call.Reply, error) {
	body := map[string]any{"refresh_key": key}
	if !h.Shared.Dialect.BareKeys {
		body["status"] = api.StatusSuccess
	}
	return &call.Reply{Code: http.StatusOK, Body: body}, nil
}

// refreshStatus answers {"status": "processing"} until the refresh has ended.
func (h *Handlers) refreshStatus(c *call.Call, kind string, target int64) (*call.Reply, error) {
	r, err := h.refreshOf(c, kind, target)
	if err != nil {
		return nil, err
	}
	return &call.Reply{Code: http.StatusOK, Body: map[string]string{"status": r.Status}}, nil
}

// refreshOf is the refresh of a target that the caller's key names.
func (h *Handlers) refreshOf(c *call.Call, kind string, target int64) (*store.Refresh, error) {
	// Keys count on within a target, so one of another target is not found.
	key, err := strconv.ParseInt(c.R.URL.Query().Get("refresh_key"), 10, 64)
	if err != nil {
		return nil, problem.InvalidField("refresh_key", "must be the key that the refresh answered")
	}
	r, err := view(c, func(c *call.Call, tx *store.Tx) (*store.Refresh, error) { return tx.Refresh(kind, target, key) })
	return r, err
}
