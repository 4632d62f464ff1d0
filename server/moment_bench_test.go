package server

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// heldTimes collects how long moments have held changes up, from the log.
type heldTimes struct {
	mu      sync.Mutex
	longest float64
}

// BenchmarkSnapshotUnderLoad tells how long a snapshot takes while runs and calls go on,
// and how long it keeps changes waiting at the most.
func BenchmarkSnapshotUnderLoad(b *testing.B) {
	for _, where := range []string{"memory", "directory"} {
		b.Run(where, func(b *testing.B) {
			held := &heldTimes{}
			w := newSyncWorld(b, func(c *Config) {
				if where == "directory" {
					c.Dir, c.MasterKey = b.TempDir(), make([]byte, masterKeySize)
				}
				c.Log = slog.New(slog.NewTextHandler(held, &slog.HandlerOptions{Level: slog.LevelDebug}))
			})
			for range 10 {
				w.emulated("google_sheets")
			}
			id := w.kept(nil).id("data.id")
			stop, over := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(over)
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, nil)
				}
			}()
			for b.Loop() {
				if err := w.s.Snapshot(b.Context(), io.Discard); err != nil {
					b.Fatal(err)
				}
			}
			close(stop)
			<-over
			if err := w.s.Settle(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(held.longest, "longest-held-ms")
		})
	}
}

// Write implements io.Writer.
func (h *heldTimes) Write(line []byte) (int, error) {
	if _, at, ok := strings.Cut(string(line), "held_ms="); ok {
		var ms float64
		if _, err := fmt.Sscan(at, &ms); err == nil {
			h.mu.Lock()
			h.longest = max(h.longest, ms)
			h.mu.Unlock()
		}
	}
	return len(line), nil
}
