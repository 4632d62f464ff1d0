package restload

import (
	"sync"
	"sync/atomic"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/histogram"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// Runs are what became of the runs that were started.
type Runs struct {
	Started, Completed, Failed, Skipped, Canceled, Unfinished int64
	// Failure is the message of one that failed.
	Failure string
}

// Found is what all clients have found together.
type Found struct {
	Walks, Items atomic.Int64
	Open         atomic.Int64 // runs that have not ended

	mu    sync.Mutex
	runs  Runs
	ids   map[int64]bool // of all runs that were started
	toEnd *histogram.Histogram
}

func newFound() *Found {
	return &Found{ids: map[int64]bool{}, toEnd: histogram.New()}
}

// begin counts a run; false: there was one with its id.
func (f *Found) begin(id int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ids[id] {
		return false
	}
	f.ids[id] = true
	f.runs.Started++
	f.Open.Add(1)
	return true
}

// finish counts a run that has ended.
func (f *Found) finish(run Item, took int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Open.Add(-1)
	switch {
	case run.status == "completed":
		f.runs.Completed++
		histogram.Record(f.toEnd, took)
	case run.status == "skipped":
		f.runs.Skipped++
	case run.canceled, run.status != "failed":
		f.runs.Canceled++
	default:
		f.runs.Failed++
		f.runs.Failure = foreign.Clip(run.message, wire.LongestMessage)
	}
}

// giveUp counts a run that has not ended in time.
func (f *Found) giveUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Open.Add(-1)
	f.runs.Unfinished++
}

// Ended is what became of the runs, with the times to the end of those that completed.
func (f *Found) Ended() (Runs, *histogram.Histogram) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs, f.toEnd
}

// Reset forgets what a warm-up has found; no run is open.
func (f *Found) Reset() {
	f.Walks.Store(0)
	f.Items.Store(0)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs, f.toEnd = Runs{}, histogram.New()
}
