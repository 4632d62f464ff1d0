package server

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
)

// sayings keeps what many goroutines log, for reading at any time.
type sayings struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *sayings) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(line)
}

// String is all that was said so far.
func (s *sayings) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// logOfFailure is a log of warnings that is shown where the test fails: an answer such as
// 503 says nothing of its cause.
func logOfFailure(t testing.TB) *slog.Logger {
	var text sayings
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the service's log:\n%s", text.String())
		}
	})
	return slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
