package server

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// readyPatience bounds one question for readiness: whoever asks has a deadline of
// a second or a few.
const readyPatience = 2 * time.Second

// readyz tells balancers and supervisors whether this process should get calls.
// Unlike /healthz it looks at what the process stands on: one that waits for its
// database is alive, and starting it again would not help.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyPatience)
	defer cancel()
	answer := struct {
		Status string `json:"status"`
		Reason string `json:"reason,omitempty"`
	}{Status: "ready"}
	code := http.StatusOK
	if err := s.Ready(ctx); err != nil {
		code, answer.Status, answer.Reason = http.StatusServiceUnavailable, "unready", err.Error()
		if errors.Unwrap(err) != nil { // where the database is, is nothing for everybody
			answer.Reason = failureOf(err).message
			s.log.Debug("the process is not ready", "error", err)
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	text, _ := encode(answer) // two texts can always be written
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text)
}
