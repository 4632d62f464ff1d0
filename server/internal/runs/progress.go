package runs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/internal/pause"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// countersOf writes the counters of a run as clients see them (spec 2.9). In the
// published example the source count has the deletes among it: it is never below
// the processed count, also where a mirror removes more than there is left.
func countersOf(r *api.SyncRun, c executor.Counters) {
	c.SourceRecords = max(c.SourceRecords, c.Processed+c.Invalid)
	r.SourceRecordCount, r.SourceRecordUpdates = &c.SourceRecords, &c.SourceUpdates
	r.SourceRecordDeletes, r.SourceRecordInvalids = &c.SourceDeletes, &c.SourceInvalids
	r.RecordsProcessed, r.RecordsUpdated = &c.Processed, &c.Updated
	r.RecordsFailed, r.RecordsInvalid = &c.Failed, &c.Invalid
}

// Progress shows a run while it works.
type Progress struct {
	e   *Engine
	ctx context.Context
	run *store.SyncRun
	to  Endpoint
	// generated are the mappings that the run has made; planned: it came so far.
	generated []api.Mapping
	planned   bool
	schema    sources.ColumnWatch

	mu  sync.Mutex
	now string // the step
}

// Progress is that of one run from here on.
func (e *Engine) Progress(ctx context.Context, run *store.SyncRun) *Progress {
	return &Progress{e: e, ctx: context.WithoutCancel(ctx), run: run}
}

// progressEvery is how often the progress of all runs is stored, in one change.
const progressEvery = 250 * time.Millisecond

func (p *Progress) step(name string) { p.Report(executor.Progress{Step: name}) }

// Report notes the progress of the run: at once for readers, a little later in the store.
func (p *Progress) Report(at executor.Progress) {
	p.e.show(p.run.ID, at)
	p.mu.Lock()
	p.now = at.Step
	p.mu.Unlock()
	p.e.progress.note(p.run, at)
}

// at is the last step that was reported.
func (p *Progress) at() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// progressBook stores the progress of all runs: those with something new together,
// in one change per tick. No run waits for it. A run that ends before costs
// nothing.
type progressBook struct {
	e *Engine

	mu      sync.Mutex
	pending map[int64]progressNote // by the id of the run
	writing bool                   // a writer is on its way
}

// progressNote is the progress of one run.
type progressNote struct {
	run   *store.SyncRun
	at    executor.Progress
	world int64
}

func (b *progressBook) note(run *store.SyncRun, at executor.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending == nil {
		b.pending = map[int64]progressNote{}
	}
	b.pending[run.ID] = progressNote{run, at, b.e.Lock.Number()}
	if !b.writing {
		b.writing = true
		b.e.Work.Run(b.write)
	}
}

// forget drops the unstored progress of a run that has ended.
func (b *progressBook) forget(runID int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pending, runID)
}

// write writes until nothing is new.
func (b *progressBook) write() {
	ctx := store.WithUrgency(b.e.Work.Ctx, store.Patient)
	for {
		if pause.For(ctx, progressEvery) != nil {
			return // the ledger knows the truth
		}
		b.mu.Lock()
		notes := b.pending
		b.pending = nil
		b.writing = len(notes) > 0
		b.mu.Unlock()
		if len(notes) == 0 {
			return
		}
		if err := b.e.Shared.Store.Update(ctx, func(tx *store.Tx) error { return b.save(tx, notes) }); err != nil && ctx.Err() == nil {
			b.e.Log.Warn("progress cannot be stored", "runs", len(notes), "error", err)
		}
	}
}

// save stores the notes of those runs that still work.
func (b *progressBook) save(tx *store.Tx, notes map[int64]progressNote) error {
	for _, id := range slices.Sorted(maps.Keys(notes)) {
		n := notes[id]
		if n.world != b.e.Lock.Number() || !b.e.worksOn(id) {
			continue
		}
		if err := n.save(tx, id); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}

func (n *progressNote) save(tx *store.Tx, id int64) error {
	kept, err := tx.SyncRun(n.run.WorkspaceID, id)
	if err != nil || kept.Run.Status != api.RunWorking {
		return err
	}
	kept.Run.CurrentStep = &n.at.Step
	if n.at.Counters != (executor.Counters{}) {
		countersOf(&kept.Run, n.at.Counters)
	}
	return store.SyncRuns.Save(tx, kept)
}

func (e *Engine) worksOn(runID int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.working[runID] != nil
}
