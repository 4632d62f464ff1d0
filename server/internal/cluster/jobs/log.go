package jobs

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// quiet lets River's warnings and errors through, the same one once a minute: while
// the database is gone each of its loops tells so every few seconds.
type quiet struct {
	slog.Handler
	said *said
}

// said remembers when which message was logged last; River's messages are few, and
// without operands.
type said struct {
	sync.Mutex
	last   map[string]time.Time
	passed map[string]int // since then
}

const quietTime = time.Minute

func newQuiet(h slog.Handler) quiet {
	return quiet{h, &said{last: map[string]time.Time{}, passed: map[string]int{}}}
}

func (h quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h quiet) Handle(ctx context.Context, r slog.Record) error {
	h.said.Lock()
	last, again := h.said.last[r.Message]
	if again && r.Time.Sub(last) < quietTime {
		h.said.passed[r.Message]++
		h.said.Unlock()
		return nil
	}
	h.said.last[r.Message] = r.Time
	if n := h.said.passed[r.Message]; n > 0 {
		r.AddAttrs(slog.Int("times_before", n))
		delete(h.said.passed, r.Message)
	}
	h.said.Unlock()
	return h.Handler.Handle(ctx, r)
}

func (h quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{h.Handler.WithAttrs(attrs), h.said}
}

func (h quiet) WithGroup(name string) slog.Handler { return quiet{h.Handler.WithGroup(name), h.said} }
