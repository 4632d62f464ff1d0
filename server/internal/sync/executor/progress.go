package executor

import (
	"context"
	"sync"
)

// progress is how far a run is, as its caller hears of it, and the first of its failures.
type progress struct {
	tell   func(Progress) // nil: no caller listens
	count  func(step string, found tally) Counters
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	shown  tally // results of the comparison
	step   string
	failed error // the first
}

// enter names the next step.
func (p *progress) enter(step string) {
	p.mu.Lock()
	p.step = step
	p.mu.Unlock()
	p.report()
}

// show hands what the comparison has found to the reports.
func (p *progress) show(found tally) {
	p.mu.Lock()
	p.shown = found
	p.mu.Unlock()
}

// report notifies the caller of the run's progress.
func (p *progress) report() {
	if p.tell == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell(Progress{p.step, p.count(p.step, p.shown)})
}

// counters are those of now.
func (p *progress) counters() Counters {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count(p.step, p.shown)
}

// end notes the first failure and calls everything else back.
func (p *progress) end(err error) {
	p.mu.Lock()
	if p.failed == nil {
		p.failed = err
	}
	p.mu.Unlock()
	p.cancel(err)
}

func (p *progress) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}
