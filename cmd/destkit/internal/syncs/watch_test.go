package syncs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/testkit"
)

func TestSyncWatch(t *testing.T) {
	two := `200 {"status":"success","pagination":{"page":1,"next_page":null},"data":[{"id":1,"label":"Contacts"},{"id":2,"label":null}]}`
	list := func(runs ...string) string {
		return `200 {"status":"success","data":[` + strings.Join(runs, ",") + `]}`
	}
	other := strings.Replace(testkit.RunText("completed", "", 7, 7, 7, 0, ""), `"id":4,"sync_id":1`, `"id":3,"sync_id":2`, 1)
	t.Run("once", func(t *testing.T) {
		_, url := testkit.Answering(t, map[string][]string{
			"GET /api/v1/syncs":             {two},
			"GET /api/v1/syncs/1/sync_runs": {list(testkit.RunText("working", "reading", 5, 5, 1, 0, ""))},
			"GET /api/v1/syncs/2/sync_runs": {list(other)},
			"GET /api/v1/sync_runs/4":       {testkit.OneRun("working", "reading", 5, 5, 1, 0, ""), testkit.OneRun("failed", "reading", 5, 5, 1, 1, "")},
		})
		status, out, screen := runHere(t.Context(), "sync", "watch", "--once", "--url", url, "--interval", "1ms")
		require.Equal(t, exit.GateFailed, status, screen)
		require.Contains(t, out, "sync 2, run 3: completed")
		require.Contains(t, out, "sync 1 (Contacts), run 4: reading")
		require.Contains(t, out, "sync 1 (Contacts), run 4: failed")
	})
	t.Run("until interrupted", func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		s, url := testkit.Answering(t, map[string][]string{
			"GET /api/v1/syncs": {two},
			// A run comes, is over before anybody has looked, and another is followed.
			"GET /api/v1/syncs/1/sync_runs": {list(), list(testkit.RunText("working", "reading", 5, 5, 1, 0, ""))},
			"GET /api/v1/syncs/2/sync_runs": {list(), list(other)},
			"GET /api/v1/sync_runs/4":       {testkit.OneRun("working", "reading", 5, 5, 1, 0, ""), testkit.OneRun("completed", "", 5, 5, 5, 0, "")},
		})
		looked := 0
		s.Each = func(call string) {
			if call == "GET /api/v1/sync_runs/4" {
				looked++
			}
			if looked == 2 && call == "GET /api/v1/syncs" {
				interrupt() // both ends have been shown by now
			}
		}
		status, out, screen := runHere(ctx, "sync", "watch", "--url", url, "--interval", "1ms")
		require.Equal(t, exit.OK, status, screen)
		require.Contains(t, screen, "watching 2 syncs")
		require.Equal(t, 1, strings.Count(out, "sync 2, run 3: completed"))
		require.Equal(t, 1, strings.Count(out, "sync 1 (Contacts), run 4: completed"))
	})
	t.Run("a sync that is gone", func(t *testing.T) {
		_, url := testkit.Answering(t, nil)
		status, _, screen := runHere(t.Context(), "sync", "watch", "9", "--url", url)
		require.Equal(t, exit.BadUsage, status)
		require.Contains(t, screen, "404")
	})
}

// TestWatchIsPolite: of many syncs only some are looked at between two pauses.
func TestWatchIsPolite(t *testing.T) {
	var data []string
	answers := map[string][]string{}
	for id := 1; id <= 35; id++ {
		data = append(data, fmt.Sprintf(`{"id":%d}`, id))
		answers[fmt.Sprintf("GET /api/v1/syncs/%d/sync_runs", id)] = []string{`200 {"data":[]}`}
	}
	answers["GET /api/v1/syncs"] = []string{`200 {"pagination":{"page":1},"data":[` + strings.Join(data, ",") + `]}`}
	s, url := testkit.Answering(t, answers)
	client := &Client{Root: url, Token: "the-key-of-the-test", HTTP: http.DefaultClient}
	var counts []int
	enough := errors.New("enough")
	w := &syncWatch{syncs: map[int64]*watched{}, Follower: &Follower{Client: client, Show: Quiet{}, Now: time.Now,
		Wait: func(context.Context, time.Duration) error {
			counts = append(counts, len(s.Said()))
			if len(counts) == 6 {
				return enough
			}
			return nil
		}}}
	require.ErrorIs(t, w.run(t.Context()), enough)
	require.Equal(t, []int{36, 46, 56, 66, 71, 82}, counts)
}
