package records

import (
	"fmt"
	"testing"
)

func BenchmarkPrepareAndCheck(b *testing.B) {
	for _, size := range []int{1, 100, 1000} {
		for _, refused := range []int{0, 100} {
			if refused > size {
				continue
			}
			b.Run(fmt.Sprintf("records=%d/refused=1of%d", size, refused), func(b *testing.B) {
				bare, err := NewBare(size, refused)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					bare.Prepare()
					if _, err := bare.Check(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/record")
			})
		}
	}
}

// BenchmarkScan is the check of replies whose form is never the same.
func BenchmarkScan(b *testing.B) {
	for _, size := range []int{1, 1000} {
		b.Run(fmt.Sprintf("records=%d", size), func(b *testing.B) {
			bare, err := NewBare(size, 0)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				bare.check.form.known = false
				if _, err := bare.check.scan(bare.batch, bare.reply); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/record")
		})
	}
}
