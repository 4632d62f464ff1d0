package pace

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
)

func BenchmarkSchedule(b *testing.B) {
	for name, s := range map[string]*Schedule{
		"constant": NewSchedule(constant(50_000), Burst{}),
		"ramp":     NewSchedule([]Stage{{Duration: 1e12, From: 10, To: 50_000}}, Burst{}),
		"bursts":   NewSchedule(constant(50_000), Burst{Size: 500, Every: 1e9}),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.next()
			}
		})
	}
}

// BenchmarkPacer is the hand-over of one request to a connection that is free.
func BenchmarkPacer(b *testing.B) {
	for _, connections := range []int{1, 32} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			p := New(NewClock(), NewSchedule(constant(1e7), Burst{}), connections, math.Inf(1))
			p.Most = int64(b.N)
			var done sync.WaitGroup
			for range connections {
				wake := make(chan struct{}, 1)
				done.Go(func() {
					for ok := true; ok; {
						_, _, ok = p.Take(wake)
					}
				})
			}
			var stop atomic.Bool
			p.Run(&stop)
			done.Wait()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/request")
		})
	}
}
