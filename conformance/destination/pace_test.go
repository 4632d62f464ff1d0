package destination

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
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
		{"records", 5, "", 50_000},
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
				// The first reply carries the limit; nothing is known before it.
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
