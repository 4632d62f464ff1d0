package testkit

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Service plays back what a service answers, call by call.
type Service struct {
	t       *testing.T
	mu      sync.Mutex
	calls   []string
	Answers map[string][]string // by "METHOD /path": "STATUS BODY"; the last one stays
	Each    func(call string)   // before the answer; nil: nothing
	Key     string              // "" is that of the test
}

func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	call := r.Method + " " + r.URL.Path
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, strings.TrimSpace(call+" "+string(body)))
	if s.Each != nil {
		s.Each(call)
	}
	if r.Header.Get("Authorization") != "Bearer "+cmp.Or(s.Key, "the-key-of-the-test") {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"status":401}`)
		return
	}
	list := s.Answers[call]
	if len(list) == 0 {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"status":404}`)
		return
	}
	if len(list) > 1 {
		s.Answers[call] = list[1:]
	}
	var code int
	_, err := fmt.Sscanf(list[0], "%d", &code)
	require.NoError(s.t, err)
	if code == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(code)
	_, _ = io.WriteString(w, strings.TrimSpace(list[0][3:]))
}

// Said are the calls so far.
func (s *Service) Said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Answering starts a fake service with one sync.
func Answering(t *testing.T, answers map[string][]string) (*Service, string) {
	t.Setenv("DESTKIT_WORKSPACE_API_KEY", "the-key-of-the-test")
	s := &Service{t: t, Answers: map[string][]string{
		"GET /api/v1/syncs/1":             {`200 {"status":"success","data":{"id":1,"label":"Contacts","status":"Up to Date"}}`},
		"GET /api/v1/syncs/1/sync_runs":   {`200 {"status":"success","data":[]}`},
		"POST /api/v1/syncs/1/trigger":    {`200 {"status":"success","data":{"sync_run_id":4}}`},
		"POST /api/v1/sync_runs/4/cancel": {`200 {"status":"cancelled","data":{}}`},
	}}
	maps.Copy(s.Answers, answers)
	served := httptest.NewServer(s)
	t.Cleanup(served.Close)
	return s, served.URL
}

// OneRun is the answer that shows run 4 of sync 1.
func OneRun(status, step string, rows, updates, processed, failed int64, more string) string {
	return fmt.Sprintf(`200 {"status":"success","data":%s}`, RunText(status, step, rows, updates, processed, failed, more))
}

// RunText is run 4 of sync 1 as JSON.
func RunText(status, step string, rows, updates, processed, failed int64, more string) string {
	return fmt.Sprintf(`{"id":4,"sync_id":1,"created_at":"2026-12-01T08:00:00.000Z","updated_at":"2026-12-01T08:00:00.000Z",`+
		`"status":%q,"current_step":%q,"source_record_count":%d,"source_record_updates":%d,"source_record_deletes":0,`+
		`"records_processed":%d,"records_updated":%d,"records_failed":%d,"records_invalid":0%s}`,
		status, step, rows, updates, processed, processed-failed, failed, more)
}

// RecordWay is the way of a record as the control API reports it.
const RecordWay = `{"sync_id": 1, "sync_run_id": 2, "identifier": "ada@example.com",
 "source_row": {"email": "ada@example.com", "id": 9007199254740993}, "record": {"email": "ada@example.com"}, "invalid": null,
 "fingerprints": {"before": "0c3d", "after": null, "now": "91be"}, "decision": "sent", "reason": "the record has changed",
 "attempts": [
  {"number": 1, "operation": "upsert", "started_at": "2026-12-01T08:00:00.000Z", "completed_at": "2026-12-01T08:00:00.120Z",
   "verdict": "failed", "message": "", "record": {"email": "ada@example.com"}, "call": "4f",
   "exchange": {"id": "call_000000000012", "request": {"method": "sync_batch"}, "response": null, "response_bytes": 20000, "status": 503, "error": "busy\nnow", "outcome": "failed"}},
  {"number": 2, "operation": "upsert", "started_at": "2026-12-01T08:00:04.000Z", "completed_at": null,
   "verdict": "rejected", "message": "no \u001b[2J such country", "record": null, "exchange": null}],
 "verdict": "rejected", "message": "no such country", "next_retry": {"when": "next run", "at": "2026-12-02T08:00:00.000Z"}}`
