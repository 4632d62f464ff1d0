package syncs

import (
	"context"
	"fmt"

	"github.com/destkit/destkit/server/api"
)

// Sync reads one sync.
func (c *Client) Sync(ctx context.Context, id int64) (s Sync, err error) {
	err = c.Get(ctx, fmt.Sprintf("/syncs/%d", id), &s)
	return s, err
}

// Trigger asks for a run of a sync and returns its id.
func (c *Client) Trigger(ctx context.Context, id int64, full bool) (int64, error) {
	var body any
	if full {
		body = map[string]bool{"force_full_sync": true}
	}
	var made struct {
		ID int64 `json:"sync_run_id"`
	}
	err := c.Post(ctx, fmt.Sprintf("/syncs/%d/trigger", id), body, &made)
	return made.ID, err
}

// Run reads one run.
func (c *Client) Run(ctx context.Context, id int64) (r api.SyncRun, err error) {
	err = c.Get(ctx, fmt.Sprintf("/sync_runs/%d", id), &r)
	return r, err
}

// Cancel asks for the end of a run.
func (c *Client) Cancel(ctx context.Context, run int64) error {
	return c.Post(ctx, fmt.Sprintf("/sync_runs/%d/cancel", run), nil, nil)
}

// LastRuns are the latest runs of a sync, newest first, at most 100.
func (c *Client) LastRuns(ctx context.Context, id int64, most int) ([]api.SyncRun, error) {
	var list []api.SyncRun
	err := c.Get(ctx, fmt.Sprintf("/syncs/%d/sync_runs?per_page=%d", id, most), &list)
	return list, err
}
