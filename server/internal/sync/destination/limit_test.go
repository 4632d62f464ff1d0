package destination

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// watch is a clock that moves when a caller waits, and notes when calls came.
type watch struct {
	mu    sync.Mutex
	now   time.Time
	still bool // waiting moves nothing
	waits []time.Duration
	calls []time.Time
}

func newWatch() *watch { return &watch{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (w *watch) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *watch) Pause(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits = append(w.waits, d)
	if !w.still {
		w.now = w.now.Add(d)
	}
	return ctx.Err()
}

// serve notes each call, and answers with the headers.
func (w *watch) serve(t *testing.T, header map[string]string, answer http.HandlerFunc) string {
	return server(t, func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.calls = append(w.calls, w.now)
		w.mu.Unlock()
		for name, value := range header {
			rw.Header()[name] = []string{value}
		}
		answer(rw, r)
	})
}

// busiest is the most calls within one second.
func (w *watch) busiest() (most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, from := range w.calls {
		n := 0
		for _, at := range w.calls[i:] {
			if at.Before(from.Add(time.Second)) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// TestPlanningKeepsTheLimit: whatever reply names a limit, tests and planning
// calls keep it, as batches do (spec 8: all calls on one connection).
func TestPlanningKeepsTheLimit(t *testing.T) {
	many := `{"objects":[`
	for i := range 12 {
		many += fmt.Sprintf(`{"object_api_name":"o%d","label":"O"},`, i)
	}
	good := endpoint(t, map[string]string{
		"test_connection": `"result":{"success":true}`, "list_objects": `"result":` + many[:len(many)-1] + `]}`,
		"list_fields": `"result":` + goodFields, "supported_operations": `"result":` + everything,
	})
	for _, name := range []string{"X-RateLimit-Limit", "X-Ratelimit-Limit", "X-RateLimit_Limit"} {
		t.Run(name, func(t *testing.T) {
			w := newWatch()
			g := newGate(t, Options{Now: w.Now, Pause: w.Pause, CallTimeout: time.Hour})
			c := openURL(t, g, w.serve(t, map[string]string{name: "5"}, good))
			require.True(t, Succeeded(c.Test(t.Context())))
			list, err := c.Objects(t.Context())
			require.NoError(t, err)
			require.Len(t, list, 12)
			require.Len(t, w.calls, 26)
			// The watch leaps while parallel calls are on their way, so only the
			// total time is meaningful.
			require.GreaterOrEqual(t, w.Now().Sub(w.calls[0]), 4990*time.Millisecond, "25 more calls at five in a second")
			w.calls = nil
			for range 30 {
				_, failed := call(t.Context(), c, rpc.MethodListObjects, nil)
				require.Nil(t, failed)
			}
			require.LessOrEqual(t, w.busiest(), 5)
			require.Same(t, g.Limiter(1), g.Limiter(1))
			require.NotSame(t, g.Limiter(1), g.Limiter(2))
		})
	}
}

// TestFailuresAnnounceTheLimit: any reply may carry it, errors too; what cannot
// be a limit is ignored.
func TestFailuresAnnounceTheLimit(t *testing.T) {
	refusals := map[string]http.HandlerFunc{
		"error object": endpoint(t, nil),
		"500":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"401":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) },
		"no JSON":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("oops")) },
	}
	for name, refuse := range refusals {
		for value, paced := range map[string]bool{"1": true, " 1 ": true, "0": false, "-1": false, "1.5": false, "many": false, "": false, "99999999999999999999": false} {
			t.Run(name+"/"+value, func(t *testing.T) {
				w := newWatch()
				c := openURL(t, newGate(t, Options{Now: w.Now, Pause: w.Pause}), w.serve(t, map[string]string{"X-Ratelimit-Limit": value}, refuse))
				for range 3 {
					_, failed := call(t.Context(), c, rpc.MethodListObjects, nil)
					require.NotNil(t, failed)
				}
				require.Len(t, w.calls, 3)
				if paced {
					require.Equal(t, 1, w.busiest())
				} else {
					require.Empty(t, w.waits)
				}
			})
		}
	}
}

// TestThrottledPlanning: a 429 holds every call of the connection for its
// Retry-After, with a cap; a caller that would wait longer than a call may take
// gets an error.
func TestThrottledPlanning(t *testing.T) {
	for _, tc := range []struct {
		retryAfter string
		rest       time.Duration
	}{
		{"7", 7 * time.Second}, {"", time.Second}, {"soon", time.Second}, {"-1", time.Second}, {"0", 0},
		{newWatch().now.Add(9 * time.Second).Format(http.TimeFormat), 9 * time.Second},
		{newWatch().now.Add(-time.Hour).Format(http.TimeFormat), 0},
		{"1000000000", time.Minute}, {newWatch().now.Add(1000 * time.Hour).Format(http.TimeFormat), time.Minute},
	} {
		t.Run(tc.retryAfter, func(t *testing.T) {
			w := newWatch()
			g := newGate(t, Options{Now: w.Now, Pause: w.Pause})
			url := w.serve(t, map[string]string{"Retry-After": tc.retryAfter}, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(429) })
			c := openURL(t, g, url)
			_, failed := call(t.Context(), c, rpc.MethodListObjects, nil)
			require.NotNil(t, failed)
			_, failed = call(t.Context(), c, rpc.MethodListObjects, nil)
			require.NotNil(t, failed)
			if tc.rest > 30*time.Second {
				require.Equal(t, OutcomeLimit, failed.Outcome)
				require.Contains(t, failed.Message, "rest for another 1m0s")
				require.Len(t, w.calls, 1, "nothing is sent")
				require.NoError(t, g.Forget(1))
				_, failed = call(t.Context(), openURL(t, g, url), rpc.MethodListObjects, nil)
				require.NotNil(t, failed)
				require.Len(t, w.calls, 2, "another endpoint has said nothing yet")
				return
			}
			require.Len(t, w.calls, 2)
			require.Equal(t, tc.rest, w.calls[1].Sub(w.calls[0]))
		})
	}
}

// TestAClockThatStandsStillHoldsNoAnswer: a client waits for planning calls, so
// they go on after the wait in real time.
func TestAClockThatStandsStillHoldsNoAnswer(t *testing.T) {
	w := newWatch()
	w.still = true
	c := openURL(t, newGate(t, Options{Now: w.Now, Pause: w.Pause}), w.serve(t, map[string]string{"X-RateLimit-Limit": "1"}, endpoint(t, nil)))
	for range 4 {
		_, failed := call(t.Context(), c, rpc.MethodListObjects, nil)
		require.NotNil(t, failed)
	}
	require.Len(t, w.calls, 4)
	require.Len(t, w.waits, 3)
}

// TestPacedCallsAreTheRuns: a run takes and reports by itself.
func TestPacedCallsAreTheRuns(t *testing.T) {
	w := newWatch()
	g := newGate(t, Options{Now: w.Now, Pause: w.Pause})
	c := openURL(t, g, w.serve(t, map[string]string{"X-RateLimit-Limit": "1"}, endpoint(t, nil)))
	for range 3 {
		_, failed := call(Paced(t.Context()), c, rpc.MethodListObjects, nil)
		require.NotNil(t, failed)
	}
	require.Empty(t, w.waits)
	require.Zero(t, g.Limiter(1).Take(w.Now(), nil, 0), "nothing was counted")
}

// Only other credentials make a limit unknown: the end of a process, or of its
// connections, does not, since other processes go on under it.
func TestLimitOutlivesConnections(t *testing.T) {
	g := New(Options{})
	l, now := g.Limiter(7), time.Now()
	l.Pause(now.Add(time.Minute))
	_, _ = g.pool(7)
	require.NoError(t, g.Close())
	require.Equal(t, time.Minute, l.Rest(now))
	require.NoError(t, g.Forget(7))
	require.Zero(t, l.Rest(now))
}
