package quota

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/destkit/destkit/server/internal/sync/pace"
)

// BenchmarkExchange is what the database takes: processes that ask for one limit,
// or each for its own, as fast as they can.
func BenchmarkExchange(b *testing.B) {
	process := installation(b, "bench_exchange")
	for _, own := range []bool{false, true} {
		for _, processes := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("own=%t/processes=%d", own, processes), func(b *testing.B) {
				sources := make([]pace.Source, processes)
				for i := range sources {
					id := int64(1)
					if own {
						id += int64(i)
					}
					sources[i] = join(b, process(), nil).Connection(id)
					if _, err := sources[i].Exchange(b.Context(), asks(1)); err != nil {
						b.Fatal(err)
					}
				}
				b.ResetTimer()
				var left atomic.Int64
				left.Store(int64(b.N))
				var all sync.WaitGroup
				for _, s := range sources {
					all.Go(func() {
						for left.Add(-1) >= 0 {
							if _, err := s.Exchange(b.Context(), asks(100)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "exchanges/s")
			})
		}
	}
}

// BenchmarkReached is which part of a limit several processes reach together, by
// real time, and what it costs the database.
func BenchmarkReached(b *testing.B) {
	process := installation(b, "bench_reached")
	for _, limit := range []int64{1, 10, 100, 10_000, 50_000} {
		for _, processes := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("limit=%d/processes=%d", limit, processes), func(b *testing.B) {
				pools := make([]*pgxpool.Pool, processes)
				for i := range pools {
					pools[i] = process()
				}
				for b.Loop() {
					reach(b, pools, limit, limit*100+int64(processes))
				}
			})
		}
	}
}

func reach(b *testing.B, pools []*pgxpool.Pool, limit, id int64) {
	length := 4 * time.Second
	if limit < 100 {
		length = 12 * time.Second
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var sent []time.Time
	least := 1 << 40
	for _, pool := range pools {
		l := limiter(join(b, pool, nil), id)
		l.Announce(limit)
		all.Go(func() {
			own := drive(l, 8, time.Now().Add(length))
			mu.Lock()
			defer mu.Unlock()
			sent, least = append(sent, own...), min(least, len(own))
		})
	}
	all.Wait()
	most := densest(sent)
	span := sent[len(sent)-1].Sub(sent[0])
	b.ReportMetric(100*float64(len(sent)-1)/span.Seconds()/float64(limit), "%limit")
	b.ReportMetric(100*float64(most)/float64(limit), "%densest")
	b.ReportMetric(100*float64(least*len(pools))/float64(len(sent)), "%least")
}
