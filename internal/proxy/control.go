package proxy

import (
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/reach"
)

// Control shows what a recorder keeps, over HTTP:
//
//	GET /exchanges          the latest exchanges, the oldest first; ?after=N those behind number N
//	GET /exchanges          with Accept: text/event-stream: those that are kept, then each new one
//	GET /report             the report on the endpoint so far
//	GET /caller-report      that on the caller
//	GET /healthz            {"status":"ok"}
//
// Without a token it answers callers on loopback alone, under a name of loopback, and
// no page of another origin.
type Control struct {
	Recorder *Recorder
	Counts   func() Counts
	Token    string
	// Done ends streams; nil: only their readers do.
	Done <-chan struct{}
}

// exchangesAnswer is what GET /exchanges answers.
type exchangesAnswer struct {
	Counts Counts `json:"counts"`
	// Dropped exchanges were kept once, and made room for later ones.
	Dropped   int64  `json:"dropped"`
	Exchanges []Kept `json:"exchanges"`
}

func (c *Control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if why := c.refused(r); why != "" {
		if c.Token != "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		c.fail(w, http.StatusForbidden, why)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		c.fail(w, http.StatusMethodNotAllowed, "only GET is answered here")
		return
	}
	switch r.URL.Path {
	case "/healthz":
		c.json(w, map[string]string{"status": "ok"})
	case "/report":
		c.json(w, c.Recorder.Report())
	case "/caller-report":
		report := c.Recorder.CallerReport()
		if report == nil {
			c.fail(w, http.StatusNotFound, "the caller is not judged")
			return
		}
		c.json(w, report)
	case "/exchanges":
		after := 0
		text := cmp.Or(r.URL.Query().Get("after"), r.Header.Get("Last-Event-ID"))
		if text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				c.fail(w, http.StatusBadRequest, fmt.Sprintf("after=%.40q is no number of an exchange", text))
				return
			}
			after = n
		}
		if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			c.stream(w, r, after)
			return
		}
		kept := c.Recorder.Recent(after)
		dropped, _ := c.Recorder.Dropped()
		c.json(w, exchangesAnswer{c.Counts(), dropped, kept})
	default:
		c.fail(w, http.StatusNotFound, "there are /exchanges, /report, /caller-report and /healthz")
	}
}

// refused returns why a caller gets no answer, "" when it does.
func (c *Control) refused(r *http.Request) string {
	if reach.OwnOrigin(r) {
		return reach.ErrOutbound.Error()
	}
	if c.Token == "" {
		if err := reach.AdmitLoopback(r); err != nil {
			return err.Error() + "; --control-token-env opens it to others"
		}
		return ""
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || subtle.ConstantTimeCompare([]byte(given), []byte(c.Token)) != 1 {
		return "the control token is missing or wrong: send Authorization: Bearer TOKEN"
	}
	return ""
}

func (c *Control) fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}

func (c *Control) json(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// heartbeat is how often a stream without events shows that it lives.
const heartbeat = 15 * time.Second

// stream sends each exchange as an event whose id is its number.
func (c *Control) stream(w http.ResponseWriter, r *http.Request, after int) {
	kept, events, stop := c.Recorder.Follow(after)
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	send := func(k Kept) bool {
		data, err := json.Marshal(k)
		if err != nil {
			return false
		}
		_, err = fmt.Fprintf(w, "id: %d\nevent: exchange\ndata: %s\n\n", k.Line.Number, data)
		return err == nil
	}
	for _, k := range kept {
		if !send(k) {
			return
		}
	}
	if out.Flush() != nil {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case k := <-events:
			if !send(k) {
				return
			}
		case <-beat.C:
			if _, err := fmt.Fprint(w, ": still here\n\n"); err != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-c.Done:
			return
		}
		if out.Flush() != nil {
			return
		}
	}
}
