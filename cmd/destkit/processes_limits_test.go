//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

// seeing is a destination that notes when each request came, and what was there
// at once.
type seeing struct {
	sim    *destsim.Sim
	server *httptest.Server
	limit  atomic.Int64 // that its replies announce; 0: none

	mu       sync.Mutex
	requests []time.Time
	batches  map[int64][]arrival // by sync
	open     map[int64]int       // batches in work
	parallel map[int64]int       // the most of them
}

// arrival is one batch.
type arrival struct {
	at      time.Time
	records int
}

func newSeeing(t *testing.T, config destsim.Config, limit int64) *seeing {
	t.Helper()
	sim, err := destsim.New(config)
	require.NoError(t, err)
	w := &seeing{sim: sim, batches: map[int64][]arrival{}, open: map[int64]int{}, parallel: map[int64]int{}}
	w.limit.Store(limit)
	w.server = httptest.NewServer(w)
	t.Cleanup(func() { w.server.Close(); require.NoError(t, sim.Close()) })
	return w
}

func (w *seeing) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	now := time.Now()
	if r.Method != http.MethodPost || r.URL.Path != "/" {
		w.sim.ServeHTTP(rw, r)
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	var call struct {
		Method string `json:"method"`
		Params struct {
			Plan struct {
				Sync int64 `json:"sync_id"`
			} `json:"sync_plan"`
			Records []json.RawMessage `json:"records"`
		} `json:"params"`
	}
	_ = json.Unmarshal(text, &call)
	id := call.Params.Plan.Sync
	w.mu.Lock()
	w.requests = append(w.requests, now)
	if call.Method == rpc.MethodSyncBatch {
		w.batches[id] = append(w.batches[id], arrival{now, len(call.Params.Records)})
		w.open[id]++
		w.parallel[id] = max(w.parallel[id], w.open[id])
	}
	w.mu.Unlock()
	if limit := w.limit.Load(); limit > 0 {
		rw.Header().Set("X-RateLimit-Limit", strconv.FormatInt(limit, 10))
	}
	w.sim.ServeHTTP(rw, r)
	if call.Method == rpc.MethodSyncBatch {
		w.mu.Lock()
		w.open[id]--
		w.mu.Unlock()
	}
}

// busiestSecond is the most that came in any second between two moments.
func busiestSecond(list []arrival, from, to time.Time) int {
	slices.SortFunc(list, func(a, b arrival) int { return a.at.Compare(b.at) })
	most, sum, last := 0, 0, 0
	for first := range list {
		for last < len(list) && list[last].at.Before(list[first].at.Add(time.Second)) {
			sum += list[last].records
			last++
		}
		if !list[first].at.Before(from) && list[first].at.Before(to) {
			most = max(most, sum)
		}
		sum -= list[first].records
	}
	return most
}

func (w *seeing) arrivals() (list []arrival) {
	for _, at := range w.requests {
		list = append(list, arrival{at, 1})
	}
	return list
}

// tolerated is what the destination may see above a limit: first bytes keep it,
// and some arrive late.
func tolerated(limit int) int { return limit + max(1, limit/10) }

// TestMatrixProcessesKeepTheLimits: one process serves the API, three work, twenty syncs
// on four connections. No connection gets more than its limit from all of them
// together, in any second that begins more than a second after the limit changed.
func TestMatrixProcessesKeepTheLimits(t *testing.T) {
	rows := int64(100_000)
	if given := os.Getenv("DESTKIT_PROCESSES_ROWS"); given != "" {
		var err error
		rows, err = strconv.ParseInt(given, 10, 64)
		require.NoError(t, err)
	} else if os.Getenv("DESTKIT_TIER") != "matrix" {
		t.Skip("part of make matrix; make processes runs it with a million records")
	}
	in := newInstallation(t)
	in.start("api")
	for range 3 {
		in.start("worker", "--workers", "7")
	}
	const perSecond, parallel, size = 20_000, 4, 100
	var destinations []*seeing
	var syncs []int64
	for i, limit := range []int64{30, 60, 120, 240} {
		w := newSeeing(t, destsim.Config{Objects: things(5), Speed: rpc.Speed{MaximumBatchSize: size, MaximumParallelBatches: parallel, MaximumRecordsPerSecond: perSecond}}, limit*max(1, rows/250_000))
		destinations = append(destinations, w)
		to := in.destination(fmt.Sprintf("destination %d", i), w.server.URL)
		for j := range 5 {
			from := in.make("/sources", map[string]any{"connection": map[string]any{
				"name": fmt.Sprintf("source %d %d", i, j), "type": "generator", "credentials": map[string]any{"rows": rows / 20, "seed": 5*i + j},
			}})
			syncs = append(syncs, in.sync(from, to, thing(j), api.OperationUpsert, map[string]any{
				"type": api.ObjectTable, "table_catalog": "main", "table_schema": "main", "table_name": "generated",
			}, "id", "email", "city"))
		}
	}
	var runs []int64
	for _, id := range syncs {
		runs = append(runs, in.run(id))
	}
	// The second connection is slowed down while it works.
	changing := destinations[1]
	began := time.Now()
	changed := began.Add(3 * time.Second)
	time.AfterFunc(time.Until(changed), func() { changing.limit.Store(changing.limit.Load() / 2) })
	for i, id := range runs {
		r := in.wait(id)
		require.Equal(t, api.RunCompleted, r.Status, "run %d: %v", id, r.ErrorMessage)
		require.EqualValues(t, rows/20, *r.RecordsUpdated, "run %d of sync %d", id, syncs[i])
	}
	ended := time.Now()
	for i, w := range destinations {
		limit := int(w.limit.Load())
		w.mu.Lock()
		from := began.Add(2 * time.Second) // the limit is known from the first replies
		if w == changing {
			from = changed.Add(time.Second)
			require.LessOrEqual(t, busiestSecond(w.arrivals(), began.Add(2*time.Second), changed.Add(-time.Second)), tolerated(2*limit), "connection %d before its limit changed", i)
		}
		seen := busiestSecond(w.arrivals(), from, ended)
		require.LessOrEqual(t, seen, tolerated(limit), "requests of connection %d", i)
		t.Logf("connection %d: limit %d, at most %d in a second, %.1f on average", i, limit, seen, float64(len(w.requests))/w.requests[len(w.requests)-1].Sub(w.requests[0]).Seconds())
		for id, list := range w.batches {
			require.LessOrEqual(t, busiestSecond(list, began, ended), tolerated(perSecond), "records of sync %d", id)
			require.LessOrEqual(t, w.parallel[id], parallel, "batches of sync %d at once", id)
		}
		w.mu.Unlock()
	}
	for i, id := range syncs {
		a := in.audit(id, destinations[i/5].server.URL)
		require.True(t, a.Clean, "sync %d: %v %v", id, a.Totals, a.Findings)
		require.EqualValues(t, rows/20, a.Checked.Destination)
	}
	t.Logf("%d records of %d syncs in %s", rows, len(syncs), ended.Sub(began).Round(time.Millisecond))
}
