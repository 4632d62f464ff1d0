package server

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// TestSwapsUnderLoad: the state is taken, put back and reset while 100 clients call and 20
// runs work. No call fails on the service's side but with a 503 that says when to come
// again, every run that a snapshot has seen comes to its end, and the audit is clean.
func TestSwapsUnderLoad(t *testing.T) {
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
				r := httptest.NewRequest(method, "http://127.0.0.1"+path, bytes.NewBufferString(body))
				r.RemoteAddr = "127.0.0.1:4711"
				if body != "" {
					r.Header.Set("Content-Type", "application/json")
				}
				if token != "" {
					r.Header.Set("Authorization", "Bearer "+token)
				}
				answer := httptest.NewRecorder()
				w.s.ServeHTTP(answer, r)
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
				var snapshot bytes.Buffer
				require.NoError(t, w.s.Snapshot(t.Context(), &snapshot))
				for range 2 { // the second one while the runs of the first one work
					require.NoError(t, w.s.Restore(t.Context(), bytes.NewReader(snapshot.Bytes())))
				}
				require.NoError(t, w.s.Settle(t.Context()))
				for i, run := range begun {
					shown := w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200)
					require.Equal(t, "completed", shown.at("data.status"), string(shown.text))
					require.EqualValues(t, 300, shown.id("data.records_updated"))
					report := w.audits(ids[i], nil)
					require.True(t, report.Clean, "%+v", report.Findings)
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
