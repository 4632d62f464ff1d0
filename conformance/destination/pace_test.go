package destination

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// busiest is the largest sum of what arrived within any second.
func busiest(arrivals []arrival, of func(arrival) int) int {
	most := 0
	for i, first := range arrivals {
		sum := 0
		for _, a := range arrivals[i:] {
			if a.at.Sub(first.at) < time.Second {
				sum += of(a)
			}
		}
		most = max(most, sum)
	}
	return most
}

func one(arrival) int       { return 1 }
func carried(a arrival) int { return a.records }

// volley sends much at once: 30 batches of one record and 20 planning calls.
const volley = `
  @VOL-001 @must @spec @write @records-30 @each-object
  Scenario: many batches
    Given an object
    When the service sends 30 new records with operation "upsert", one by one in parallel
    Then every batch is processed

  @VOL-002 @must @spec
  Scenario: many calls
    When the service calls "list_fields" for every object 20 times in parallel
    Then every reply has a result
`

// TestNeverFasterThanDeclared is measured where the calls arrive.
func TestNeverFasterThanDeclared(t *testing.T) {
	cases := []struct {
		name      string
		records   int64 // declared per second
		rateLimit string
		limit     int // of requests in a second
	}{
		{"records", 5, "", defaultRateLimit},
		{"requests", 100_000, "4", 4},
		{"both", 3, "7", 7},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newSmall()
				e.speed.MaximumRecordsPerSecond, e.rateLimit = c.records, c.rateLimit
				r := judged(t, e, volley, conformance.Options{Write: true, Objects: []string{"contact"}})
				require.Equal(t, 0, r.ExitStatus, r.Summary)
				// The first reply tells the limit; nothing is known before it.
				require.LessOrEqual(t, busiest(e.arrivals[1:], one), c.limit)
				sum, start := 0, time.Time{}
				for _, a := range e.arrivals {
					if a.records > 0 && start.IsZero() {
						start = a.at
					}
					if a.records > 0 {
						require.LessOrEqual(t, float64(sum), float64(c.records)*a.at.Sub(start).Seconds(), "each batch waits for those before it")
					}
					sum += a.records
				}
				writes := slices.DeleteFunc(slices.Clone(e.arrivals), func(a arrival) bool { return a.records != 1 })
				require.Len(t, writes, 30+trialOfSmall)
				require.LessOrEqual(t, int64(busiest(writes, carried)), c.records)
			})
		})
	}
}

func TestNeverMoreBatchesAtOnceThanDeclared(t *testing.T) {
	for _, declared := range []int64{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			e := newSmall()
			e.speed.MaximumParallelBatches = declared
			e.before = func(method string) {
				if method == rpc.MethodSyncBatch {
					time.Sleep(100 * time.Millisecond) // of the bubble
				}
			}
			r := judged(t, e, volley+writeCheck, writing(e))
			require.Equal(t, 0, r.ExitStatus, r.Summary)
			require.EqualValues(t, declared, e.mostOnce, "as many as declared, and no more")
		})
	}
}

func TestPaceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		p.declare(rpc.Speed{MaximumBatchSize: 1, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		require.NoError(t, p.wait(ctx, 10))
		require.ErrorIs(t, p.wait(ctx, 1), context.DeadlineExceeded, "it would have to wait ten seconds")

		require.NoError(t, p.enter(t.Context()))
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		require.ErrorIs(t, p.enter(short), context.DeadlineExceeded)
		p.leave()
		require.NoError(t, p.enter(t.Context()))
	})
}

func TestParallelCap(t *testing.T) {
	for declared, want := range map[int64]int{-1: 1, 0: 1, 1: 1, 50: 50, 51: 50, 1 << 40: 50} {
		require.Equal(t, want, parallelCap(rpc.Speed{MaximumParallelBatches: declared}))
	}
}

func TestRateLimitHeader(t *testing.T) {
	for value, want := range map[string]float64{
		"10": 10, " 10 ": 10, "1": 1,
		"": defaultRateLimit, "0": defaultRateLimit, "-5": defaultRateLimit, "1.5": defaultRateLimit,
		"100/s": defaultRateLimit, "1e3": defaultRateLimit,
	} {
		s := &session{pace: newPace()}
		s.noticeRateLimit(&wire.Reply{Header: http.Header{"X-Ratelimit-Limit": {value}}})
		require.Equal(t, want, s.pace.requests, "%q", value)
	}
	s := &session{pace: newPace()}
	s.noticeRateLimit(&wire.Reply{Header: http.Header{}})
	require.EqualValues(t, defaultRateLimit, s.pace.requests)
}

// TestPaceSpreadsEvenly: parallel callers get turns of their own.
func TestPaceSpreadsEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		p.requests = 10
		start := time.Now()
		var mu sync.Mutex
		var turns []time.Duration
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				_ = p.wait(t.Context(), 0)
				mu.Lock()
				turns = append(turns, time.Since(start))
				mu.Unlock()
			})
		}
		wg.Wait()
		slices.Sort(turns)
		require.Equal(t, []time.Duration{0, 100e6, 200e6, 300e6, 400e6}, turns)
	})
}
