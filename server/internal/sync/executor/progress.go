package executor

import (
	"context"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
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

// operation is what an operation of a sync makes of the differences between
// source and state (spec 2.6, 4.2).
type operation struct {
	wire    string // of the batches that write
	changed bool   // records that were sent before are sent again when they change
	all     bool   // every record is sent in every run
	deletes bool   // rows missing from the source are deleted
	events  bool   // a key that was sent is sent again for another moment
}

// operationOf reads the configuration. append is insert on the wire, since the
// protocol has no operation of that name. A mirror sends upserts and
// deletes; only the strategy with nulls sends no deletes.
func operationOf(c *api.SyncConfig) operation {
	switch c.Operation {
	case api.OperationInsert:
		return operation{wire: rpc.OperationInsert}
	case api.OperationAppend:
		return operation{wire: rpc.OperationInsert, events: HighWaterColumn(c) != ""}
	case api.OperationUpdate:
		return operation{wire: rpc.OperationUpdate, changed: true}
	case api.OperationMirror:
		o := operation{wire: rpc.OperationUpsert, changed: true, deletes: true}
		switch strategy := c.MirrorStrategy; {
		case strategy == nil:
		case *strategy == api.MirrorNulls:
			o.deletes = false
		case *strategy == api.MirrorSwap:
			o.all = true
		}
		return o
	}
	return operation{wire: rpc.OperationUpsert, changed: true}
}

// action is what becomes of one key in one run.
type action uint8

const (
	leave  action = iota
	write         // send the record
	remove        // send a delete
)

// decide compares one key. row is nil where the source has no row of the key
// and state where nothing of it was ever sent. A row that is invalid is never
// sent and keeps its record from being deleted.
func (o operation) decide(row *entry, print ledger.Fingerprint, state *ledger.Entry, full bool) action {
	switch {
	case row == nil && o.deletes && state != nil:
		return remove
	case row == nil, row.invalid != "":
		return leave
	case full, o.all, state == nil:
		return write
	case !o.changed:
		// Only what the destination never took: an insert that was taken once
		// is over, also when a later one of the same key was refused.
		if state.Known && (!o.events || state.Print == print) {
			return leave
		}
		return write
	case state.Verdict != ledger.Acknowledged, state.Print != print:
		return write
	}
	return leave
}
