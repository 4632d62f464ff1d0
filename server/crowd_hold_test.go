package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCallersThatGoAway: many at once take snapshots, restore,
// reset, seed, settle, advance and set the clock, start and cancel runs, and go away at
// any step. Afterwards nothing is held, no run is working, what runs
// next completes, and the audit finds nothing.
func TestCallersThatGoAway(t *testing.T) {
	for name, where := range map[string]func(*Config){"in memory": func(*Config) {}, "in a directory": inDir(t)} {
		t.Run(name, func(t *testing.T) {
			w, id := heldWorld(t, where)
			require.NoError(t, w.s.Settle(t.Context()))
			var snapshot bytes.Buffer
			require.NoError(t, w.s.Snapshot(t.Context(), &snapshot))
			goroutines := runtime.NumGoroutine()
			steps := []func(ctx context.Context, n int){
				func(ctx context.Context, _ int) { _ = w.s.Snapshot(ctx, io.Discard) },
				func(ctx context.Context, _ int) { _ = w.s.Restore(ctx, bytes.NewReader(snapshot.Bytes())) },
				func(ctx context.Context, _ int) { _ = w.s.Settle(ctx) },
				func(ctx context.Context, _ int) { _, _ = w.s.clock.Advance(ctx, time.Minute) },
				func(ctx context.Context, n int) {
					_, _ = w.s.Seed(ctx, "seed", fmt.Appendf(nil, "organizations: [{name: Seed %d, email: a@example.com, workspaces: [{name: W}]}]", n))
				},
				func(context.Context, int) {
					w.control("POST", "/clock", fmt.Sprintf(`{"set":%q}`, w.s.clock.Now().Add(-time.Hour).Format(time.RFC3339)))
				},
				func(context.Context, int) {
					w.changeSource(`UPDATE customers SET name = name || '+'`)
					w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, nil)
				},
				func(ctx context.Context, _ int) {
					if last := w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs?per_page=1", id), w.key, nil); last.code == 200 && len(last.at("data").([]any)) > 0 {
						w.do("POST", fmt.Sprintf("/sync_runs/%d/cancel", last.id("data.0.id")), w.key, nil)
					}
				},
			}
			var crowd sync.WaitGroup
			for client := range 12 {
				crowd.Go(func() {
					chance := rand.New(rand.NewPCG(uint64(client), 1))
					for n := range 12 {
						ctx, giveUp := context.WithTimeout(t.Context(), time.Duration(chance.IntN(60))*time.Millisecond)
						steps[chance.IntN(len(steps))](ctx, 100*client+n)
						giveUp()
					}
				})
			}
			crowd.Wait()
			require.NoError(t, w.s.Settle(t.Context()))
			w.nothingHeld()
			run := w.trigger(id)
			require.NoError(t, w.s.Settle(t.Context()))
			require.Equal(t, "completed", w.status(run))
			for _, was := range w.history(id) {
				require.NotContains(t, was, "working")
				require.NotContains(t, was, "queued")
			}
			w.world.dest.CloseClientConnections() // idle ones are kept for 90 seconds
			w.eventually(func() bool { return runtime.NumGoroutine() <= goroutines+20 })
		})
	}
}
