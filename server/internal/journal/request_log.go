package journal

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/internal/call"
)

// LoggedRequest follows one request to the line that the log gets of it. The
// masks of the journal apply to the line.
type LoggedRequest struct {
	http.ResponseWriter
	log   *slog.Logger
	r     *http.Request
	began time.Time
	code  int
	who   call.Principal
	masks *Masks // of the call of the API; nil: what the request itself holds
}

// LogRequest begins to follow a request, whose answer goes through what it gives.
func LogRequest(w http.ResponseWriter, r *http.Request, log *slog.Logger) *LoggedRequest {
	return &LoggedRequest{ResponseWriter: w, log: log, r: r, began: time.Now()}
}

// WriteHeader notes the status.
func (l *LoggedRequest) WriteHeader(code int) {
	if l.code == 0 {
		l.code = code
	}
	l.ResponseWriter.WriteHeader(code)
}

// Write notes the status that it implies.
func (l *LoggedRequest) Write(text []byte) (int, error) {
	if l.code == 0 {
		l.code = http.StatusOK
	}
	return l.ResponseWriter.Write(text)
}

// Unwrap lets http.ResponseController reach the connection.
func (l *LoggedRequest) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// Flush implements http.Flusher.
func (l *LoggedRequest) Flush() { _ = http.NewResponseController(l.ResponseWriter).Flush() }

// Called records who made a call of the API, and its secrets.
func Called(w http.ResponseWriter, c *call.Call) {
	if l, ok := w.(*LoggedRequest); ok {
		l.who, l.masks = c.Who, SecretsOf(c)
	}
}

// End writes the line, also when the connection was dropped: the status is 0 then.
func (l *LoggedRequest) End() {
	level := slog.LevelInfo
	if !strings.HasPrefix(l.r.URL.Path, "/api/") {
		level = slog.LevelDebug
	}
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	if l.masks == nil {
		l.masks = &Masks{}
		for _, value := range l.r.Header.Values("Authorization") {
			if _, token, found := strings.Cut(strings.TrimSpace(value), " "); found {
				l.masks.Know(strings.TrimSpace(token))
			}
		}
	}
	path := l.masks.Path(l.r.URL)
	if query := l.masks.Query(l.r.URL); query != "" {
		path += "?" + query
	}
	l.log.Log(context.Background(), level, "request", "method", foreign.Clip(l.r.Method, 20), "path", path, "status", l.code,
		"ms", float64(time.Since(l.began).Microseconds())/1000, "by", l.who.Kind())
}
