package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// TestDeletedWhileAsked: a destination is deleted while its objects are fetched.
// Neither the destination nor the service counts as failed.
func TestDeletedWhileAsked(t *testing.T) {
	w := newWorld(t)
	source, kept := w.newSource(), w.newDestination()
	sync := w.do("POST", "/syncs", w.key, syncBody(source, kept)).want(200).id("data.sync_id")
	for name, tc := range map[string]struct {
		code         int
		method, path string
		body         func(destination int64) any
	}{
		"sync created":    {409, "POST", "/syncs", func(id int64) any { return syncBody(source, id) }},
		"sync changed":    {409, "PATCH", fmt.Sprintf("/syncs/%d", sync), func(id int64) any { return syncBody(source, id) }},
		"objects listed":  {404, "GET", "/destinations/%d/objects", nil},
		"object read":     {404, "GET", "/destinations/%d/objects/person", nil},
		"itself read":     {404, "GET", "/destinations/%d", nil},
		"refresh started": {200, "POST", "/destinations/%d/refresh_objects", nil},
	} {
		id := w.newDestination()
		w.control("POST", "/clock", map[string]any{"advance": "2h"}).want(200) // the cached objects are old
		path, body := tc.path, any(nil)
		if tc.body != nil {
			body = tc.body(id)
		} else {
			path = fmt.Sprintf(tc.path, id)
		}
		remove := func() {
			w.onCall.Store(nil)
			w.do("DELETE", fmt.Sprintf("/destinations/%d", id), w.key, nil).want(200)
		}
		w.onCall.Store(&remove)
		a := w.do(tc.method, path, w.key, body)
		require.Equal(t, tc.code, a.code, "%s: %s", name, a.text)
		w.control("POST", "/settle", nil).want(200)
		w.do("GET", fmt.Sprintf("/destinations/%d", id), w.key, nil).want(404)
	}
}

// TestReplacedWhileAsked: a restore waits for the call to a destination. If the
// destination takes too long, the client gets a request to retry.
func TestReplacedWhileAsked(t *testing.T) {
	w := newWorld(t)
	path := fmt.Sprintf("/destinations/%d/objects", w.newDestination())
	w.control("POST", "/clock", map[string]any{"advance": "2h"}).want(200) // the cached objects are old
	before := w.saved()
	restoring := func(answer func(restored <-chan error)) (restored chan error) {
		restored = make(chan error, 1)
		hook := func() {
			w.onCall.Store(nil)
			done := make(chan error)
			go func() {
				err := w.s.Restore(t.Context(), bytes.NewReader(before))
				restored <- err
				close(done)
			}()
			w.untilHeld()
			answer(done)
		}
		w.onCall.Store(&hook)
		return restored
	}
	restored := restoring(func(<-chan error) {})
	w.do("GET", path, w.key, nil).want(200)
	require.NoError(t, <-restored)

	w.s.lock.Grace = time.Millisecond
	restored = restoring(func(done <-chan error) { <-done })
	ended := w.do("GET", path, w.key, nil).want(503)
	require.Equal(t, "1", ended.header.Get("Retry-After"))
	require.NoError(t, <-restored)
	w.do("GET", path, w.key, nil).want(200)
}

// TestGoneIsAConflict: a dangling reference that the store reports is no failure of
// the service.
func TestGoneIsAConflict(t *testing.T) {
	w := newWorld(t)
	err := w.s.store.Update(t.Context(), func(tx *store.Tx) error {
		broken := map[string]error{
			"sync":         store.Syncs.Create(tx, &store.Sync{WorkspaceID: 1, DestinationID: 99, SourceID: 99}),
			"destination":  tx.CreateDestination(&store.Destination{WorkspaceID: 99}, nil),
			"source":       tx.CreateSource(&store.Source{WorkspaceID: 99}, nil),
			"dataset":      store.Datasets.Create(tx, &store.Dataset{WorkspaceID: 1, SourceID: 99}),
			"model":        store.Models.Create(tx, &store.Model{SourceID: 99, DatasetID: 99}),
			"segment":      store.Segments.Create(tx, &store.Segment{SourceID: 99, DatasetID: 99}),
			"topic":        store.Topics.Create(tx, &store.Topic{SourceID: 99}),
			"refresh":      store.Refreshes.Create(tx, &store.Refresh{WorkspaceID: 99}),
			"run":          store.SyncRuns.Create(tx, &store.SyncRun{WorkspaceID: 1, SyncID: 99}),
			"object cache": tx.PutObjectCache(99, &store.ObjectCache{FetchedAt: w.s.Clock().Now()}),
		}
		for what, err := range broken {
			require.ErrorIs(t, err, store.ErrGone, what)
			require.Equal(t, http.StatusConflict, problem.Of(err).Code, what)
		}
		return errors.New("undone")
	})
	require.EqualError(t, err, "undone")
}

// TestCallersThatGoAway: many at once take snapshots, restore, reset, seed, settle,
// advance and set the clock, start and cancel runs, and go away at any step. Afterwards
// nothing is held, no run is working, the next runs complete, and the audit finds
// nothing.
func TestCallersThatGoAway(t *testing.T) {
	for name, where := range map[string]func(*Config){"in memory": func(*Config) {}, "in a directory": inDir(t)} {
		t.Run(name, func(t *testing.T) {
			w, id := heldWorld(t, where)
			require.NoError(t, w.s.Settle(t.Context()))
			snapshot := w.saved()
			goroutines := runtime.NumGoroutine()
			steps := []func(ctx context.Context, n int){
				func(ctx context.Context, _ int) { _ = w.s.Snapshot(ctx, io.Discard) },
				func(ctx context.Context, _ int) { _ = w.s.Restore(ctx, bytes.NewReader(snapshot)) },
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
				lacks(t, was, "working", "queued")
			}
			w.world.dest.CloseClientConnections() // idle ones are kept for 90 seconds
			w.eventually(func() bool { return runtime.NumGoroutine() <= goroutines+20 })
		})
	}
}

// TestSwapsUnderLoad: the state is saved, restored and reset while 100 clients call and 20
// runs work. No call fails on the service's side except with a 503 and Retry-After, every
// run in a snapshot ends, and the audit is clean.
func TestSwapsUnderLoad(t *testing.T) {
	matrixtest.Long(t)
	const clients, syncs, swaps = 100, 20, 3
	for name, where := range map[string]func(*Config){"in memory": func(*Config) {}, "in a directory": inDir(t)} {
		t.Run(name, func(t *testing.T) {
			w, id := heldWorld(t, where)
			ids := []int64{id}
			for len(ids) < syncs {
				ids = append(ids, w.kept(map[string]any{"label": fmt.Sprint("Sync ", len(ids))}).id("data.id"))
			}
			var calls, turnedAway atomic.Int64
			call := func(method, path, token, body string) {
				var sent []byte
				if body != "" {
					sent = []byte(body)
				}
				answer := serve(w.s, request(method, "http://127.0.0.1"+path, token, sent))
				calls.Add(1)
				if answer.Code >= 500 {
					turnedAway.Add(1)
					if answer.Code != 503 || answer.Header().Get("Retry-After") == "" {
						t.Errorf("%s %s: %d %s", method, path, answer.Code, answer.Body)
					}
				}
			}
			over := make(chan struct{})
			var crowd sync.WaitGroup
			for client := range clients {
				crowd.Go(func() {
					for n := client; ; n++ {
						select {
						case <-over:
							return
						case <-time.After(20 * time.Millisecond):
						}
						one := fmt.Sprintf("%s/syncs/%d", api.BasePath, ids[n%syncs])
						switch n % 6 {
						case 0:
							call("PATCH", one, w.key, fmt.Sprintf(`{"label":"Sync %d"}`, n))
						case 1:
							call("GET", one+"/sync_runs", w.key, "")
						case 2:
							if n%600 == 2 { // it goes on after its answer
								call("POST", api.BasePath+"/destinations/1/refresh_objects", w.key, "")
							}
							call("GET", api.BasePath+"/destinations/1/objects", w.key, "")
						case 3:
							call("POST", api.BasePath+"/workspaces", w.pat, fmt.Sprintf(`{"name":"W %d"}`, n))
						case 4:
							call("GET", "/_control/clock", "", "")
						default:
							call("GET", api.BasePath+"/syncs", w.key, "")
						}
					}
				})
			}
			for range swaps {
				// Of the world before, so that each of these runs has something to send.
				w.changeSource(`UPDATE customers SET name = name || '+'`)
				var begun []int64
				for _, id := range ids {
					begun = append(begun, w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, nil).want(200).id("data.sync_run_id"))
				}
				snapshot := w.saved()
				for range 2 { // the second one while the runs of the first one work
					require.NoError(t, w.s.Restore(t.Context(), bytes.NewReader(snapshot)))
				}
				require.NoError(t, w.s.Settle(t.Context()))
				for i, run := range begun {
					shown := w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200).ended("completed")
					require.EqualValues(t, 300, shown.id("data.records_updated"))
					flawless(t, w.audits(ids[i], nil))
				}
			}
			require.NoError(t, w.s.Reset(t.Context()))
			close(over)
			crowd.Wait()
			w.nothingHeld()
			require.NoError(t, w.s.Settle(t.Context()))
			w.do("GET", "/syncs/1", w.key, nil).want(404)
			t.Logf("%d calls, %d of them 503", calls.Load(), turnedAway.Load())
		})
	}
}
