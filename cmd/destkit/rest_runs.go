package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// restSync is what the commands need of a sync.
type restSync struct {
	ID    int64   `json:"id"`
	Label *string `json:"label"`
}

// name is the label for people, "" without one.
func (s restSync) name() string {
	if s.Label == nil {
		return ""
	}
	return *s.Label
}

func (c *restClient) sync(ctx context.Context, id int64) (s restSync, err error) {
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

// is compares words of a status: dialects differ in their capitals.
func is(status string, words ...string) bool {
	for _, word := range words {
		if strings.EqualFold(status, word) {
			return true
		}
	}
	return false
}

// over tells that nothing more happens to a run. Clients were seen to meet a
// status of their own for cancelled runs.
func over(r api.SyncRun) bool {
	return is(r.Status, api.RunCompleted, api.RunFailed, api.RunSkipped, "cancelled", "canceled")
}

// number reads a counter that may be unknown yet.
func number(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// words reads a text that may be null.
func words(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
