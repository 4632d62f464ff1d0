package syncs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// Sync is what the commands need of a sync.
type Sync struct {
	ID    int64   `json:"id"`
	Label *string `json:"label"`
}

// name is the label for people, "" without one.
func (s Sync) name() string {
	if s.Label == nil {
		return ""
	}
	return *s.Label
}

// HasStatus reports whether a status is one of some words: dialects differ in their
// capitals.
func HasStatus(status string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(status, word) })
}

// Over reports whether nothing more happens to a run. Clients were seen to meet a
// separate status for cancelled runs.
func Over(r api.SyncRun) bool {
	return HasStatus(r.Status, api.RunCompleted, api.RunFailed, api.RunSkipped, "cancelled", "canceled")
}

// Count reads a counter; one that is not known yet is 0.
func Count(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// Text reads a text; null is "".
func Text(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// Sync reads one sync.
func (c *Client) Sync(ctx context.Context, id int64) (s Sync, err error) {
	err = c.Get(ctx, fmt.Sprintf("/syncs/%d", id), &s)
	return s, err
}

// Trigger requests a run of a sync and returns its id.
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

// Cancel requests the end of a run.
func (c *Client) Cancel(ctx context.Context, run int64) error {
	return c.Post(ctx, fmt.Sprintf("/sync_runs/%d/cancel", run), nil, nil)
}

// LastRuns are the latest runs of a sync, newest first, at most 100.
func (c *Client) LastRuns(ctx context.Context, id int64, most int) ([]api.SyncRun, error) {
	var list []api.SyncRun
	err := c.Get(ctx, fmt.Sprintf("/syncs/%d/sync_runs?per_page=%d", id, most), &list)
	return list, err
}
