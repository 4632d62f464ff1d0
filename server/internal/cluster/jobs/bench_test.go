package jobs

import (
	"context"
	"testing"
	"time"
)

// How long a worker of another process takes to begin, counted from the commit.
func BenchmarkTakeUp(b *testing.B) {
	f := newFleet(b, "jobs_bench")
	begun := make(chan time.Time)
	work := func(context.Context, Run) (bool, error) {
		begun <- time.Now()
		return false, nil
	}
	api := f.process("api", 0, nil)
	for _, name := range []string{"one", "two", "three"} {
		f.process(name, 2, work)
	}
	var sum, longest time.Duration
	for i := 0; b.Loop(); i++ {
		f.add(api, Run{ID: int64(i), SyncID: 1, Turn: 1})
		committed := time.Now()
		took := (<-begun).Sub(committed)
		sum, longest = sum+took, max(longest, took)
	}
	b.ReportMetric(sum.Seconds()*1000/float64(b.N), "ms/begin")
	b.ReportMetric(longest.Seconds()*1000, "ms/longest")
}

// How long a run that is handed back takes to begin in another process, counted from
// the order to stop.
func BenchmarkHandOver(b *testing.B) {
	f := newFleet(b, "jobs_bench_hand")
	begun := make(chan time.Time)
	work := func(ctx context.Context, _ Run) (bool, error) {
		begun <- time.Now()
		<-ctx.Done()
		return true, nil
	}
	worker := f.process("0", 1, work)
	f.add(worker, Run{ID: 1, SyncID: 1, Turn: 1})
	<-begun
	var sum, longest time.Duration
	for i := 1; b.Loop(); i++ {
		next := f.process(time.Now().String(), 1, work)
		asked := time.Now()
		go func(before *Queue) {
			_ = before.Stop(context.Background())
			before.o.Pool.Close() // the server has not connections for all of them
		}(worker)
		took := (<-begun).Sub(asked)
		sum, longest = sum+took, max(longest, took)
		worker = next
	}
	b.ReportMetric(sum.Seconds()*1000/float64(b.N), "ms/begin")
	b.ReportMetric(longest.Seconds()*1000, "ms/longest")
}
