package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// Start lets the workers begin; without any it does nothing. They work until Stop,
// also when ctx ends before.
func (q *Queue) Start(ctx context.Context) error {
	if q.o.Workers == 0 {
		return nil
	}
	if q.working.Err() != nil {
		return fmt.Errorf("start workers: %w", ErrStop)
	}
	if err := q.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start workers: %w", err)
	}
	q.started.Store(true)
	said, _ := q.client.Subscribe(river.EventKindJobSnoozed, river.EventKindQueuePaused)
	go q.beside(said)
	return nil
}

// Stop takes no new runs, ends the contexts of those that work by ErrStop and waits
// until they have been handed back. When ctx ends before, it says so, and those that
// are left count as lost once the process is.
func (q *Queue) Stop(ctx context.Context) error {
	q.stop(ErrStop)
	if !q.started.Load() {
		return nil
	}
	err := q.client.Stop(ctx)
	if err != nil {
		_ = q.client.StopAndCancel(ctx)
		return fmt.Errorf("stop workers: runs are still at work: %w", err)
	}
	<-q.aside
	return nil
}

// beside gives notice of what was handed back, which River leaves to be found, and
// looks after what River does not. It ends with River.
func (q *Queue) beside(said <-chan *river.Event) {
	defer close(q.aside)
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		look := q.notify
		select {
		case event := <-said:
			if event == nil {
				return
			}
			if event.Kind == river.EventKindQueuePaused {
				look = q.goOn
			}
		case <-tick.C:
			look = q.look
		}
		ctx, cancel := context.WithTimeout(context.Background(), lookTime)
		if err := look(ctx); err != nil { // what waits is found all the same
			q.log.Debug("the queue cannot reach the database", "error", err)
		}
		cancel()
	}
}

func (q *Queue) notify(ctx context.Context) error {
	_, err := q.o.Pool.Exec(ctx, "SELECT pg_notify($1, $2)", q.wake, notice)
	return err
}

func (q *Queue) look(ctx context.Context) error {
	if err := q.clock.set(ctx, q.o.Pool); err != nil {
		return err
	}
	if _, err := q.paused(ctx); err != nil {
		return err
	}
	return q.free(ctx)
}

// paused reads whether the queue is paused, in River's own way. We never
// do, so a change is said.
func (q *Queue) paused(ctx context.Context) (paused bool, err error) {
	err = q.o.Pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM river_queue WHERE name = $1 AND paused_at IS NOT NULL)", river.QueueDefault).Scan(&paused)
	if err != nil {
		return false, fmt.Errorf("read whether the queue is paused: %w", err)
	}
	if q.rests.Swap(paused) != paused {
		if paused {
			q.log.Warn("the queue is paused: no run is worked on until it is resumed")
		} else {
			q.log.Info("the queue goes on")
		}
	}
	return paused, nil
}

// goOn follows the notice of a pause: every role of the database may give notices,
// and the workers believe them. One that is not in the table is none.
func (q *Queue) goOn(ctx context.Context) error {
	paused, err := q.paused(ctx)
	if err != nil || paused {
		return err
	}
	q.log.Warn("the queue was paused by a notice alone; it goes on")
	if err := q.client.QueueResume(ctx, river.QueueDefault, nil); err != nil {
		return fmt.Errorf("resume the queue: %w", err)
	}
	return nil
}

// work is one job.
func (q *Queue) work(outer context.Context, job *river.Job[turn]) error {
	defer q.orphans.mind(job.ID)()
	// Due since it was due first, so it is before all that wait. River's own
	// JobSnooze takes no moment that has passed.
	handBack := func() error { return &river.JobSnoozeError{Duration: job.ScheduledAt.Sub(q.clock.Now())} }
	if q.working.Err() != nil {
		// The place of a run that ended by Stop was given to this one, before River
		// was told to stop.
		return handBack()
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(outer))
	defer cancel(nil)
	// Whatever ends the job means the same to the run.
	end := func() { cancel(ErrStop) }
	defer context.AfterFunc(outer, end)()
	defer context.AfterFunc(q.working, end)()

	again, err := q.o.Work(ctx, job.Args.run())
	if err != nil && errors.Is(context.Cause(ctx), ErrStop) {
		if !errors.Is(err, ErrStop) && !errors.Is(err, context.Canceled) {
			q.of(job.JobRow).Warn("run failed while the worker stopped; it is handed back", "error", err)
		}
		again, err = true, nil
	}
	if again && err == nil {
		return handBack()
	}
	return err
}

// errorHandler is what follows an error of Work.
type errorHandler struct{ q *Queue }

var (
	_ river.ClientRetryPolicy = errorHandler{}
	_ river.ErrorHandler      = errorHandler{}
)

// NextRetry is River's policy, capped at a minute.
func (t errorHandler) NextRetry(job *rivertype.JobRow) time.Time {
	wait := min(60, math.Pow(float64(len(job.Errors)+1), 4)) * (0.9 + 0.2*rand.Float64())
	return t.q.clock.Now().Add(time.Duration(wait * float64(time.Second)))
}

// HandleError logs an error.
func (t errorHandler) HandleError(_ context.Context, job *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	t.q.of(job).Error("run cannot be worked on; it is tried again", "attempt", job.Attempt, "error", err)
	return nil
}

// HandlePanic logs a panic, which counts as an error.
func (t errorHandler) HandlePanic(_ context.Context, job *rivertype.JobRow, value any, trace string) *river.ErrorHandlerResult {
	t.q.of(job).Error("run cannot be worked on; it is tried again", "attempt", job.Attempt, "panic", value, "stack", trace)
	return nil
}

// of is the log of a run.
func (q *Queue) of(job *rivertype.JobRow) *slog.Logger {
	var t turn
	_ = json.Unmarshal(job.EncodedArgs, &t) // zeros tell that it is none of ours
	return q.log.With("job", job.ID, "run", t.Run, "sync", t.Sync, "workspace", t.Workspace, "turn", t.Turn)
}
