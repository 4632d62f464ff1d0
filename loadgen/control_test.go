package loadgen

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
)

func TestControlStopsPausesAndPaces(t *testing.T) {
	matrixtest.Long(t)
	url := simulator(t, destsim.Config{})
	for name, change := range map[string]func(*Options){
		"open":   func(o *Options) { o.Closed, o.Stages = false, constant(200) },
		"closed": func(*Options) {},
	} {
		t.Run(name, func(t *testing.T) {
			o := against(url)
			o.Seed, o.Count, o.Duration, o.Control = 0, 0, time.Hour, &Control{}
			change(&o)
			require.ErrorContains(t, o.Control.SetRate(5), "nothing is sent now")
			// Each moment goes a step on: run, pause, wait, go on, stop.
			var step, before int64
			standing := 0
			o.Progress = func(m Moment) {
				switch {
				case step == 0 && m.Requests > 0:
					require.False(t, m.Paused)
					if o.Closed {
						require.ErrorContains(t, o.Control.SetRate(5), "a closed loop")
					} else {
						require.EqualValues(t, 200, m.Asked)
						require.NoError(t, o.Control.SetRate(100))
						require.Error(t, o.Control.SetRate(0))
					}
					o.Control.Pause()
					o.Control.Pause()
					step = 1
				case step == 1 && m.InFlight == 0 && m.Paused: // requests under way have ended
					require.Equal(t, !o.Closed, m.Open)
					if before != m.Requests {
						before, standing = m.Requests, 0
					}
					if standing++; standing > 3 {
						o.Control.Resume()
						step = 2
					}
				case step == 2 && m.Requests > before+1:
					if !o.Closed {
						require.EqualValues(t, 100, m.Asked)
					}
					o.Control.Stop()
					step = 3
				}
			}
			r, err := Run(context.Background(), o)
			require.NoError(t, err)
			require.EqualValues(t, 3, step)
			require.Equal(t, "stopped", r.Ended)
			require.Greater(t, r.Requests, before)
			require.Zero(t, r.Errors)
			did, text := []string{}, strings.Join(r.Notes, "\n")
			for i, c := range r.ByHand {
				did = append(did, fmt.Sprintf("%s %g %g", c.Did, c.From, c.To))
				require.Positive(t, c.At)
				require.True(t, i == 0 || c.At >= r.ByHand[i-1].At)
			}
			want := []string{"rate 200 100", "pause 100 0", "resume 0 100"}
			if o.Closed {
				want = []string{"pause 0 0", "resume 0 0"}
			} else {
				require.Regexp(t, `the rate was changed by hand after \d+\.\d s: from 200 to 100 requests/s`, text)
			}
			require.Equal(t, want, did)
			require.Regexp(t, `paused by hand after \d+\.\d s`, text)
			require.Regexp(t, `figures and thresholds are those of all \d+\.\d s, of which it was paused \d+\.\d s`, text)
			var list bytes.Buffer
			require.NoError(t, json.NewEncoder(&list).Encode(r))
			require.Contains(t, list.String(), `"did":"pause"`)
		})
	}
}

// TestLimitsThatChangeAreFollowedAndTold: the declared limit falls in the middle.
func TestLimitsThatChangeAreFollowedAndTold(t *testing.T) {
	sim, err := destsim.New(destsim.Config{})
	require.NoError(t, err)
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := "200"
		if calls.Add(1) > 30 {
			limit = "50"
		}
		sim.ServeHTTP(&limited{w, limit}, r)
	}))
	t.Cleanup(func() { server.Close(); require.NoError(t, sim.Close()) })
	o := against(server.URL + "/")
	o.Closed, o.AsDeclared, o.Connections, o.Count, o.Work.BatchSize, o.Duration = false, true, 1, 60, 1, 6*time.Second
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Len(t, r.Declared.Changes, 1)
	require.EqualValues(t, 50, r.Declared.Changes[0].RateLimit)
	require.Positive(t, r.Declared.Changes[0].At)
	require.Less(t, r.Load.Rate, 200.0)
	require.Greater(t, r.Load.Rate, 50.0)
	require.EqualValues(t, 50, r.Series[len(r.Series)-1].Asked)
	require.EqualValues(t, 200, r.Series[0].Asked)
}

// TestAsDeclaredRestsAsAServiceDoes: a throttled reply with Retry-After stops all that is sent.
func TestAsDeclaredRestsAsAServiceDoes(t *testing.T) {
	url := simulator(t, destsim.Config{})
	arm(t, url, `{"kind":"throttle","retry_after":"seconds","seconds":1,"when":{"method":"sync_batch","first":1}}`)
	o := against(url)
	o.Closed, o.AsDeclared, o.Count = false, true, 400
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"throttled": 1}, r.ErrorsByKind)
	require.EqualValues(t, 1, r.Declared.Rests.Times)
	require.InDelta(t, 1, r.Declared.Rests.Seconds, 0.01)
	require.GreaterOrEqual(t, r.Seconds, 1.0)
}

// TestTheSpeedIsAskedAgain: a changed get_sync_speed is followed and reported.
func TestTheSpeedIsAskedAgain(t *testing.T) {
	sim, err := destsim.New(destsim.Config{Speed: rpc.Speed{MaximumBatchSize: 10, MaximumParallelBatches: 4, MaximumRecordsPerSecond: 1000}})
	require.NoError(t, err)
	var asked, small, large atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		switch {
		case bytes.Contains(body, []byte(`"get_sync_speed"`)):
			if asked.Add(1) > 1 && large.Load() > 0 {
				var call struct{ ID json.RawMessage }
				_ = json.Unmarshal(body, &call)
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"maximum_batch_size":5,"maximum_parallel_batches":1,"maximum_records_per_second":200}}`, call.ID)
				return
			}
		case bytes.Contains(body, []byte(`"sync_batch"`)):
			var call struct {
				Params struct{ Records []json.RawMessage }
			}
			_ = json.Unmarshal(body, &call)
			if len(call.Params.Records) == 5 {
				small.Add(1)
			} else {
				large.Add(1)
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		sim.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.Close(); require.NoError(t, sim.Close()) })
	o := against(server.URL + "/")
	o.Closed, o.AsDeclared, o.Connections, o.Count, o.Work.BatchSize, o.Duration, o.AskSpeed = false, true, 0, 0, 0, time.Minute, 200*time.Millisecond
	o.Control = new(Control)
	var notes []string
	o.Note = func(text string) { notes = append(notes, text) }
	o.Progress = func(Moment) {
		if small.Load() >= 10 {
			o.Control.Stop()
		}
	}
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Zero(t, r.Errors, r.ErrorMessages)
	require.Equal(t, "stopped", r.Ended, "ten batches of the new size came")
	require.Positive(t, large.Load())
	require.Len(t, r.Declared.SpeedChanges, 1, "told once, however often it is asked")
	c := r.Declared.SpeedChanges[0]
	require.Positive(t, c.At)
	c.At = 0
	require.Equal(t, SpeedChange{BatchSize: 5, Parallel: 1, RecordsPerSecond: 200}, c)
	require.EqualValues(t, 10, r.Declared.BatchSize, "what was said first stays")
	require.Less(t, r.Load.Rate, 100.0, "the mean of 100 and 40 requests per second")
	require.Greater(t, r.Load.Rate, 40.0)
	require.Len(t, notes, 1)
	require.Contains(t, notes[0], "200 records/s in 1 batch of 5 at once")

	// Only so many connections send as the target takes at once.
	e := &engine{quit: make(chan struct{})}
	first, second := &worker{e: e}, &worker{e: e, number: 1}
	require.True(t, second.maySend())
	e.parallel.Store(1)
	require.True(t, first.maySend())
	went := make(chan bool)
	go func() { went <- second.maySend() }()
	e.parallel.Store(2)
	require.True(t, <-went)
	e.parallel.Store(1)
	close(e.quit)
	require.False(t, second.maySend())

	// Verified loads keep their batches, and say so.
	s := &session{o: o, e: &engine{acks: newAcks(1, 1), plan: &plan{size: 10}}}
	require.Contains(t, s.followSize(5), "keep their batches")
	require.Empty(t, s.followSize(10))
}

// limited states another limit than the simulator.
type limited struct {
	http.ResponseWriter
	limit string
}

func (l *limited) WriteHeader(status int) {
	l.Header().Set("X-RateLimit-Limit", l.limit)
	l.ResponseWriter.WriteHeader(status)
}

func (l *limited) Write(p []byte) (int, error) {
	l.Header().Set("X-RateLimit-Limit", l.limit)
	return l.ResponseWriter.Write(p)
}

func TestReplicasShareTheLoad(t *testing.T) {
	first, second := simulator(t, destsim.Config{}), simulator(t, destsim.Config{})
	for _, standard := range []bool{false, true} {
		o := against(first)
		o.Seed, o.Target.Replicas, o.Connections, o.Count, o.Transport.Standard = 0, []string{second}, 4, 200, standard
		before := stored(t, second)["contact"]
		r, err := Run(context.Background(), o)
		require.NoError(t, err)
		require.Zero(t, r.Errors)
		require.Len(t, r.Replicas, 2)
		require.EqualValues(t, 200, r.Replicas[0].Requests+r.Replicas[1].Requests)
		require.Equal(t, 2, r.Replicas[1].Connections)
		require.Positive(t, r.Replicas[1].Latency.P50)
		require.EqualValues(t, r.Replicas[1].Acknowledged, stored(t, second)["contact"]-before)
	}
	o := against(first)
	o.Target.Replicas = []string{"ftp://x"}
	_, err := Run(context.Background(), o)
	require.ErrorContains(t, err, "replica: ")
}

// TestEachObjectHasItsOwnSync: the plans of several syncs are distinguished.
func TestEachObjectHasItsOwnSync(t *testing.T) {
	sim, err := destsim.New(destsim.Config{})
	require.NoError(t, err)
	var mu sync.Mutex
	syncs := map[string]map[[2]int64]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var call struct {
			Params struct {
				Plan struct {
					Object struct {
						Name string `json:"object_api_name"`
					} `json:"object"`
					Sync int64 `json:"sync_id"`
					Run  int64 `json:"sync_run_id"`
				} `json:"sync_plan"`
			} `json:"params"`
		}
		if json.Unmarshal(body, &call) == nil && call.Params.Plan.Sync != 0 {
			mu.Lock()
			name := call.Params.Plan.Object.Name
			if syncs[name] == nil {
				syncs[name] = map[[2]int64]bool{}
			}
			syncs[name][[2]int64{call.Params.Plan.Sync, call.Params.Plan.Run}] = true
			mu.Unlock()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		sim.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.Close(); require.NoError(t, sim.Close()) })
	o := against(server.URL + "/")
	o.Work.Objects, o.Count, o.Cleanup = []Share{{Name: "contact"}, {Name: "order", Weight: 2}}, 60, true
	o.Work.Operations = []Share{{Name: "upsert"}, {Name: "update"}}
	_, err = Run(context.Background(), o)
	require.NoError(t, err)
	run := syncRun(7)
	require.Equal(t, map[string]map[[2]int64]bool{"contact": {{1, run}: true}, "order": {{2, run + 1}: true}}, syncs)
}

// TestLimitsAreHeldAgainstARunThatGoesOn: a moment holds their state, and what the run
// is; the result is as without them.
func TestLimitsAreHeldAgainstARunThatGoesOn(t *testing.T) {
	o := against(simulator(t, destsim.Config{}))
	o.Seed, o.Count, o.Duration, o.Closed, o.Stages, o.Control = 0, 0, time.Hour, false, constant(200), &Control{}
	for _, text := range []string{"p99>1ns", "errors>0", "rate<0.001%", "lost>0"} {
		limit, err := ParseThreshold(text)
		require.NoError(t, err)
		o.Limits = append(o.Limits, limit)
	}
	var seen []Threshold
	o.Progress = func(m Moment) {
		require.Equal(t, "open", m.Load.Mode)
		require.Equal(t, "contact", m.Target.Objects[0].Name)
		if m.Latest.Max > 0 {
			require.LessOrEqual(t, m.Latest.P50, m.Latest.P90)
			require.LessOrEqual(t, m.Latest.P90, m.Latest.P95)
		}
		if len(m.Limits) > 0 && seen == nil {
			seen = m.Limits
			o.Control.Stop()
		}
	}
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Len(t, seen, 4)
	require.True(t, seen[0].Failed, "%v", seen[0])
	require.Positive(t, seen[0].Got)
	require.False(t, seen[1].Failed, "%v", seen[1])
	require.False(t, seen[2].Failed, "%v", seen[2])
	require.True(t, seen[3].Unmeasured, "what is read back is known after the load")
	require.Zero(t, o.Limits[0].Got, "those that were given are not written to")
	require.Empty(t, r.Thresholds)
}
