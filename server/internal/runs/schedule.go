package runs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// Schedule starts runs when they fall due on the service's clock (UTC; continuous is
// every minute), and after another sync has completed. The store holds what falls
// due, in the order of time; one timer here waits for the first.
type Schedule struct {
	Planning
	live    *Live
	retries *Retries

	// Looking keeps looks one after the other, so that an older answer of the store
	// never replaces a newer one. No change of the store waits for it.
	Looking sync.Mutex

	mu    sync.Mutex // never held during calls of the store
	timer *clock.Timer
	first store.Due // the timer waits for it
	asked bool      // the store is being queried for the first one
	awake bool      // schedules were taken up (since), so that none is due by mistake
}

// NewSchedule starts what falls due, and with it live syncs and retries.
func NewSchedule(parts Planning, l *Live, r *Retries) *Schedule {
	return &Schedule{Planning: parts, live: l, retries: r}
}

// dueAtOnce is how many runs one change queues where many fall due: API calls come
// between two of them.
const dueAtOnce = 50

// Plan computes for the store when a sync runs by itself.
func (p *Schedule) Plan(y *store.Sync, from time.Time) store.Plan {
	plan := store.Plan{DueAt: NextRun(&y.Config, from), Turn: p.Clock.Turn()}
	if !y.Config.Paused {
		plan.After = SequenceParent(&y.Config)
	}
	return plan
}

// Put follows a sync that was created or changed.
func (p *Schedule) Put(y *store.Sync) {
	p.live.begin(y)
	p.mu.Lock()
	// Later ones are found when the first has run.
	moot := p.timer != nil && !p.asked && p.first.SyncID != y.ID && (y.Due.At.IsZero() || y.Due.At.After(p.first.At))
	p.mu.Unlock()
	if !moot {
		p.Look()
	}
}

// Drop forgets a sync that is gone.
func (p *Schedule) Drop(id int64) {
	p.live.forget(id)
	p.mu.Lock()
	awaited := p.timer != nil && p.first.SyncID == id
	p.mu.Unlock()
	if awaited {
		p.Look()
	}
}

// Look sets the timer to what falls due first.
func (p *Schedule) Look() {
	p.Looking.Lock()
	defer p.Looking.Unlock()
	if !p.ask() {
		return
	}
	first, err := store.Read(p.Work.Ctx, p.Shared.Store, (*store.Tx).FirstDue)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = false
	if !p.awake { // forgotten since
		return
	}
	// The timer before goes on until there is another one: a clock that is advanced
	// meanwhile would find that nothing falls due, and pass by all of it.
	defer p.timer.Stop()
	switch {
	case err == nil:
		p.first = first
		p.timer = p.Clock.AtTurn(first.At, first.Turn, "schedule of sync", p.due)
	case errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrClosed) || p.Work.Ctx.Err() != nil:
		p.timer = nil
	default:
		p.Log.Error("what falls due cannot be read", "error", err)
		p.first = store.Due{}
		p.timer = p.Clock.AfterFunc(MostWait, "look at schedules", func(context.Context) { p.Look() })
	}
}

// ask reports whether there is anything to wait for, and stops the timer where there is
// not.
func (p *Schedule) ask() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked = p.awake; !p.asked {
		p.timer.Stop()
		p.timer = nil
	}
	return p.asked
}

// Forget stops the timer, those of live syncs and retries too, until schedules are taken
// up again: another state comes, by whose clock they fall due.
func (p *Schedule) Forget() {
	p.mu.Lock()
	p.timer.Stop()
	p.timer, p.awake = nil, false
	p.mu.Unlock()
	p.live.forgetAll()
	p.retries.forgetAll()
}

// due starts the runs that are due, and waits for the next one. While the clock is
// being advanced it starts one: all that follows from that comes before the next one.
func (p *Schedule) due(ctx context.Context) {
	most := int64(dueAtOnce)
	if p.Clock.Advancing() {
		most = 1
	}
	for wait := FirstWait; ; wait = min(2*wait, MostWait) {
		runs, err := p.start(ctx, most)
		if err == nil {
			for _, run := range runs {
				p.Runs.Launch(run)
			}
			break
		}
		if p.Work.Ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
			return
		}
		p.Log.Error("scheduled runs cannot be queued", "error", err)
		if !store.Passing(err) && most == 1 {
			p.skip(ctx)
			break
		}
		most = 1 // one of them must not keep the others
		if p.Clock.Sleep(ctx, wait) != nil {
			return
		}
	}
	p.Look()
}

// start queues runs of at most so many syncs that are due, and finds when those fall
// due again, in one change: no moment is started twice, and none is lost.
func (p *Schedule) start(ctx context.Context, most int64) (runs []*store.SyncRun, err error) {
	err = p.Shared.Store.Update(ctx, func(tx *store.Tx) error {
		runs = nil
		if !p.TakenUp() { // forgotten since
			return nil
		}
		now := p.Clock.Now()
		dues, err := tx.DueSyncs(now, most)
		if err != nil {
			return err
		}
		for _, d := range dues {
			y, err := store.Syncs.Read(tx, d.WorkspaceID, d.SyncID)
			if err != nil {
				return err
			}
			run := &store.SyncRun{WorkspaceID: d.WorkspaceID, SyncID: d.SyncID}
			if err := p.Runs.Queue(tx, run, false, dueReason(&y.Config)); err != nil {
				return err
			}
			if err := tx.PlanSync(y, now); err != nil {
				return err
			}
			runs = append(runs, run)
		}
		return nil
	})
	return runs, err
}

func (p *Schedule) TakenUp() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.awake
}

// skip gives up a sync whose run cannot be queued for a reason that does not pass by
// itself: it runs again by its schedule when it is saved, and all others as ever.
func (p *Schedule) skip(ctx context.Context) {
	err := p.Shared.Store.Update(ctx, func(tx *store.Tx) error {
		dues, err := tx.DueSyncs(p.Clock.Now(), 1)
		for _, d := range dues {
			p.Log.Error("a sync runs by its schedule no more; save it to plan it anew", "sync", d.SyncID)
			err = tx.Unschedule(d.SyncID)
		}
		return err
	})
	if err != nil && p.Work.Ctx.Err() == nil {
		p.Log.Error("schedule of a sync cannot be given up", "error", err)
	}
}

// After queues runs of the syncs that run when this one has completed, in the change
// that ends its run: so none is lost with the process. Launch them afterwards.
func (p *Schedule) After(tx *store.Tx, parent *store.Sync) (queued []*store.SyncRun, err error) {
	followers, err := tx.Followers(parent.WorkspaceID, parent.ID)
	if err != nil {
		return nil, err
	}
	for _, id := range followers {
		run := &store.SyncRun{WorkspaceID: parent.WorkspaceID, SyncID: id}
		if err := p.Runs.Queue(tx, run, false, api.TriggerReason{UITag: "Sequence", UIDetail: "Another sync has completed"}); err != nil {
			return nil, err
		}
		queued = append(queued, run)
	}
	return queued, nil
}
