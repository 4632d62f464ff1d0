package journal

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/server/internal/cluster/chronicle"
	"github.com/destkit/destkit/server/internal/settings"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// journalWriter brings the entries of this process to where all processes of the
// installation have theirs. It reads and writes beside the store: nothing that the
// API shows has changed, so nothing that is kept in memory becomes old.
type journalWriter struct {
	log      *slog.Logger
	settings *settings.Settings
	all      *chronicle.Chronicle
	books    []func(context.Context) error

	awake atomic.Bool
	bell  chan struct{}
}

const (
	// writeEvery is how long entries are gathered before they are written.
	writeEvery = 100 * time.Millisecond
	// writeRest is the longest wait after failures, doubled from one to the next.
	writeRest = 5 * time.Second
	// lastWrite bounds the last one, when the process ends.
	lastWrite = 2 * time.Second
)

// Share lets the journals of this process be those of the installation.
func (j *Journal) Share(ctx context.Context, all *chronicle.Chronicle, k *settings.Settings, process string) error {
	if err := j.IDs.share(ctx, all); err != nil {
		return err
	}
	w := &journalWriter{
		log: j.log, settings: k, all: all, bell: make(chan struct{}, 1),
		books: []func(context.Context) error{j.Requests.write, j.Calls.write, j.webhooks.write},
	}
	j.Requests.To, j.Calls.To, j.webhooks.To, j.process = w, w, w, process
	j.settings = k
	j.work.Run(func() { w.run(j.work.Ctx) })
	return nil
}

// wake says that there is something to write. It costs calls of destinations a few
// nanoseconds.
func (w *journalWriter) wake() {
	if w.awake.Load() || w.awake.Swap(true) {
		return
	}
	select {
	case w.bell <- struct{}{}:
	default: // rung already
	}
}

// run writes until ctx ends; while nothing comes it does nothing.
func (w *journalWriter) run(ctx context.Context) {
	pause := writeEvery
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.bell:
		}
		for {
			if clock.Sleep(ctx, pause) != nil {
				return
			}
			err := w.Write(ctx)
			if err == nil {
				break
			}
			if pause == writeEvery && ctx.Err() == nil {
				w.log.Warn("journals cannot be written yet", "error", err)
			}
			pause = min(2*pause, writeRest)
		}
		pause = writeEvery
	}
}

// Write brings all journals up to now. Whoever adds an entry from here on rings
// again.
func (w *journalWriter) Write(ctx context.Context) error {
	if w.awake.Swap(false) {
		select {
		case <-w.bell: // rung for what is written now
		default:
		}
	}
	var failures []error
	for _, write := range w.books {
		failures = append(failures, write(ctx))
	}
	err := errors.Join(failures...)
	if err != nil {
		w.wake()
	}
	return err
}

// gather writes what this process has, and lets the others write what they have:
// what has ended before this call stands in the journals then. A process that does
// not answer is not waited for long.
func (w *journalWriter) gather(ctx context.Context) error {
	if err := w.Write(ctx); err != nil {
		return store.Explained(err)
	}
	alone, err := w.all.Alone(ctx)
	if err != nil || alone {
		return store.Explained(err)
	}
	return w.settings.Set(ctx, Setting, func(state []byte) ([]byte, error) { return state, nil })
}

// close writes the rest: also those entries that the end of the work has made.
func (w *journalWriter) close() {
	ctx, cancel := context.WithTimeout(context.Background(), lastWrite)
	defer cancel()
	if err := w.Write(ctx); err != nil {
		w.log.Warn("the last entries of the journals are lost", "error", err)
	}
}
