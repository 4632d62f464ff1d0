package main

import (
	"context"
	"fmt"

	"github.com/destkit/destkit/cmd/destkit/internal/syncview"
	"github.com/destkit/destkit/server/api"
)

func (c *restClient) sync(ctx context.Context, id int64) (s syncview.Sync, err error) {
	err = c.get(ctx, fmt.Sprintf("/syncs/%d", id), &s)
	return s, err
}

// trigger asks for a run of a sync and returns its id.
func (c *restClient) trigger(ctx context.Context, id int64, full bool) (int64, error) {
	var body any
	if full {
		body = map[string]bool{"force_full_sync": true}
	}
	var made struct {
		ID int64 `json:"sync_run_id"`
	}
	err := c.post(ctx, fmt.Sprintf("/syncs/%d/trigger", id), body, &made)
	return made.ID, err
}

func (c *restClient) run(ctx context.Context, id int64) (r api.SyncRun, err error) {
	err = c.get(ctx, fmt.Sprintf("/sync_runs/%d", id), &r)
	return r, err
}

func (c *restClient) cancel(ctx context.Context, run int64) error {
	return c.post(ctx, fmt.Sprintf("/sync_runs/%d/cancel", run), nil, nil)
}

// lastRuns are the latest runs of a sync, newest first, at most 100.
func (c *restClient) lastRuns(ctx context.Context, id int64, most int) ([]api.SyncRun, error) {
	var list []api.SyncRun
	err := c.get(ctx, fmt.Sprintf("/syncs/%d/sync_runs?per_page=%d", id, most), &list)
	return list, err
}
