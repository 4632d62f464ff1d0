package loadgen

import "testing"

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
