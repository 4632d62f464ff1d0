package loadgen

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
)

func BenchmarkSchedule(b *testing.B) {
	for name, s := range map[string]*schedule{
		"constant": newSchedule(constant(50_000), Burst{}),
		"ramp":     newSchedule([]Stage{{Duration: 1e12, From: 10, To: 50_000}}, Burst{}),
		"bursts":   newSchedule(constant(50_000), Burst{Size: 500, Every: 1e9}),
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
			p := newPacer(newClock(), newSchedule(constant(mostRate), Burst{}), connections, math.Inf(1))
			p.most = int64(b.N)
			var done sync.WaitGroup
			for range connections {
				w := &worker{wake: make(chan struct{}, 1)}
				done.Go(func() {
					for ok := true; ok; {
						_, _, ok = p.take(w)
					}
				})
			}
			var stop atomic.Bool
			p.run(&stop)
			done.Wait()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/request")
		})
	}
}

// BenchmarkMeasure is the taking over of what a connection has measured, of
// requests that were sent late by turns and at once.
func BenchmarkMeasure(b *testing.B) {
	for name, late := range map[string]int64{"closed": 0, "open": 30_000} {
		b.Run(name, func(b *testing.B) {
			m := newMeasure(0, 0)
			at := int64(0)
			for b.Loop() {
				at += 20_000
				took := 300_000 + at%700_000
				m.add(&sample{intended: at - late, start: at, end: at + took, records: 1, good: 1})
				if at%int64(look) == 0 {
					m.settle(at - int64(2*look))
				}
			}
		})
	}
}
