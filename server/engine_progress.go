package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/executor"
	"github.com/destkit/destkit/server/lease"
	"github.com/destkit/destkit/server/store"
)

// countersOf writes the counters of a run as clients see them (spec 2.9). In the
// published example the source count has the deletes among it (facts B5): it is never
// below what was processed, also where a mirror removes more than there is left.
func countersOf(r *api.SyncRun, c executor.Counters) {
	c.SourceRecords = max(c.SourceRecords, c.Processed+c.Invalid)
	r.SourceRecordCount, r.SourceRecordUpdates = &c.SourceRecords, &c.SourceUpdates
	r.SourceRecordDeletes, r.SourceRecordInvalids = &c.SourceDeletes, &c.SourceInvalids
	r.RecordsProcessed, r.RecordsUpdated = &c.Processed, &c.Updated
	r.RecordsFailed, r.RecordsInvalid = &c.Failed, &c.Invalid
}

// runProgress shows a run while it works. It writes at most every progressEvery,
// and at each new step.
type runProgress struct {
	e   *engine
	ctx context.Context
	run *store.SyncRun
	to  endpoint
	// doomed: a client has cancelled the run while another process worked on it. It
	// ends as soon as its books are open, which have the true counters.
	doomed bool
	// generated are the mappings that the run has made; planned: it came so far.
	generated []api.Mapping
	planned   bool
	schema    schemaWatch

	mu    sync.Mutex
	now   string
	wrote time.Time
}

const progressEvery = 250 * time.Millisecond

func (p *runProgress) step(name string) { p.report(executor.Progress{Step: name}) }

// report stores where the run stands. A failure is only logged: the ledger
// knows the truth.
func (p *runProgress) report(at executor.Progress) {
	p.e.show(p.run.ID, at)
	if p.doomed && at.Step != executor.StepPlanning {
		p.e.cancel(p.run.ID)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.Step == p.now && time.Since(p.wrote) < progressEvery {
		return
	}
	p.now, p.wrote = at.Step, time.Now()
	err := p.e.s.store.Update(p.ctx, p.e.guarded(p.ctx, p.run.ID, func(tx *store.Tx) error {
		kept, err := tx.SyncRun(p.run.WorkspaceID, p.run.ID)
		if err != nil || kept.Run.Status != api.RunWorking {
			return err
		}
		kept.Run.CurrentStep = &at.Step
		if at.Counters != (executor.Counters{}) {
			countersOf(&kept.Run, at.Counters)
		}
		return tx.SaveSyncRun(kept)
	}))
	if err != nil && !errors.Is(err, lease.ErrLost) {
		p.e.logOf(p.run.ID).Warn("progress cannot be stored", "error", err)
	}
}
