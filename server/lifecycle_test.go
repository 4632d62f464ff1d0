package server

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/store"
)

// listener is what webhooks call.
type listener struct {
	*httptest.Server
	mu    sync.Mutex
	codes []int    // of the answers to come; 200 when there is none
	later []string // their Retry-After
	heard []heard
	first func() // called before the next answer
}

type heard struct {
	path, signature, contentType, body string
	code                               int
	at                                 time.Time // on the service's clock
}

// listen starts a listener over https that the service trusts.
func (w *world) listen() *listener {
	w.t.Helper()
	l := &listener{}
	l.Server = httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.first != nil {
			l.first()
			l.first = nil
		}
		code := http.StatusOK
		if len(l.codes) > 0 {
			code, l.codes = l.codes[0], l.codes[1:]
		}
		l.heard = append(l.heard, heard{
			r.URL.RequestURI(), r.Header.Get("X-Signature"), r.Header.Get("Content-Type"), string(body), code, w.s.Clock().Now(),
		})
		if len(l.later) > 0 {
			rw.Header().Set("Retry-After", l.later[0])
			l.later = l.later[1:]
		}
		rw.WriteHeader(code)
	}))
	w.t.Cleanup(l.Close)
	w.control("POST", "/trust", pemOf(l.Server)).want(200)
	return l
}

// answers sets the statuses of the answers to come.
func (l *listener) answers(codes ...int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.codes = codes
}

// take gives what was heard since the last time.
func (l *listener) take() []heard {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.heard
	l.heard = nil
	return list
}

// events are the events that were heard, with the status of completed ones.
func (l *listener) events() (events []string) {
	for _, h := range l.take() {
		var body struct{ Event, Status string }
		_ = json.Unmarshal([]byte(h.body), &body)
		events = append(events, strings.TrimSpace(strings.TrimPrefix(body.Event, "sync.")+" "+body.Status))
	}
	return events
}

// hook makes a webhook that calls the listener.
func (w *world) hook(l *listener, events ...string) (id int64, secret string) {
	w.t.Helper()
	body := map[string]any{"name": "Hook", "endpoint": l.URL + "/hook/unguessable-segment?key=unguessable-key"}
	if len(events) > 0 {
		body["events"] = events
	}
	a := w.do("POST", "/webhooks", w.key, body).want(201)
	return a.id("data.id"), a.at("data.secret").(string)
}

// frozen is a world whose clock is stopped.
func frozen(t testing.TB, change ...func(*Config)) *world {
	w := newWorld(t, change...)
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	return w
}

// overheard is a world whose clock is stopped, with a listener and a sync.
func overheard(t testing.TB, change ...func(*Config)) (w *world, l *listener, id int64) {
	w = frozen(t, change...)
	return w, w.listen(), w.newSync()
}

// standsAt stops the clock at a moment.
func (w *world) standsAt(moment string) {
	w.t.Helper()
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	w.control("POST", "/clock", fmt.Sprintf(`{"set":%q}`, moment)).want(200)
}

func (w *world) settle() { w.t.Helper(); require.NoError(w.t, w.s.clock.Settle(w.t.Context())) }

func (w *world) advance(d time.Duration) []string {
	w.t.Helper()
	report := must(w.s.clock.Advance(w.t.Context(), d))(w.t)
	return report.Ran
}

func (w *world) change(change func(*store.Tx) error) {
	w.t.Helper()
	require.NoError(w.t, w.s.store.Update(w.t.Context(), change))
}

// syncByID finds a sync of any workspace.
func syncByID(tx *store.Tx, id int64) (*store.Sync, error) {
	list, err := tx.EverySync(id-1, 1)
	if err == nil && (len(list) == 0 || list[0].ID != id) {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// begin queues a run and starts it.
func (w *world) begin(syncID int64, changes ...func(*api.SyncRun)) (*store.Sync, *store.SyncRun) {
	w.t.Helper()
	var y *store.Sync
	var run *store.SyncRun
	w.change(func(tx *store.Tx) (err error) {
		if y, err = syncByID(tx, syncID); err != nil {
			return err
		}
		run = &store.SyncRun{WorkspaceID: y.WorkspaceID, SyncID: y.ID, Run: api.SyncRun{
			Status: api.RunQueued, ScheduledExecutionTime: api.At(tx.Now()),
			TriggerReason: &api.TriggerReason{UITag: "Manual", UIDetail: "Manually triggered"},
		}}
		for _, change := range changes {
			change(&run.Run)
		}
		return store.SyncRuns.Create(tx, run)
	})
	w.s.lifecycle.Queued(w.t.Context(), run)
	run.Run.Status = api.RunWorking
	w.change(func(tx *store.Tx) error { return store.SyncRuns.Save(tx, run) })
	w.s.lifecycle.Started(w.t.Context(), y, run)
	return y, run
}

// end ends a run: a failure is its error message, "" is none.
func (w *world) end(y *store.Sync, run *store.SyncRun, failure string, changes ...func(*api.SyncRun)) {
	w.t.Helper()
	w.change(func(tx *store.Tx) (err error) {
		if run, err = tx.SyncRun(run.WorkspaceID, run.ID); err != nil {
			return err
		}
		r := &run.Run
		r.Status, r.CompletedAt = api.RunCompleted, api.At(tx.Now())
		if failure != "" {
			r.Status, r.ErrorCode, r.ErrorMessage = api.RunFailed, api.Ptr("TEST"), &failure
		}
		for _, change := range changes {
			change(r)
		}
		return store.SyncRuns.Save(tx, run)
	})
	w.s.lifecycle.Ended(w.t.Context(), y, run)
	w.settle()
}

// run is a whole run.
func (w *world) run(syncID int64, failure string, changes ...func(*api.SyncRun)) *store.SyncRun {
	w.t.Helper()
	y, run := w.begin(syncID, changes...)
	w.end(y, run, failure, changes...)
	return run
}

func counts(processed, failed, invalid int64) func(*api.SyncRun) {
	return func(r *api.SyncRun) {
		source := processed + invalid
		r.SourceRecordCount, r.SourceRecordUpdates, r.SourceRecordDeletes = &source, &processed, api.Ptr(int64(0))
		r.RecordsProcessed, r.RecordsFailed, r.RecordsInvalid = &processed, &failed, &invalid
		r.RecordsUpdated = api.Ptr(processed - failed)
	}
}

// TestLifecycleOfRuns: the events of a run in their order, signed, exactly as
// published.
func TestLifecycleOfRuns(t *testing.T) {
	proves(t, "F-6-03", "F-6-04")
	w, l, id := overheard(t)
	_, secret := w.hook(l)
	_, run := w.begin(id)
	w.settle()
	for i, h := range l.take() {
		event := []string{"sync.triggered", "sync.started"}[i]
		require.Equal(t, fmt.Sprintf(`{"workspace_id":1,"sync_id":%d,"sync_run_id":%d,"event":"%s"}`, id, run.ID, event), h.body)
		require.Equal(t, "/hook/unguessable-segment?key=unguessable-key", h.path)
		require.Equal(t, "application/json", h.contentType)
		require.Equal(t, lifecycle.Signature(secret, h.body), h.signature)
	}
	w.run(id, "")
	require.Equal(t, []string{"triggered", "started", "completed ok", "success"}, l.events())
	w.run(id, "the source is gone")
	require.Equal(t, []string{"triggered", "started", "completed emergency", "failed", "alert.raised"}, l.events())
	w.run(id, "again")
	require.Equal(t, []string{"triggered", "started", "completed emergency", "failed"}, l.events())
	w.run(id, "")
	require.Equal(t, []string{"triggered", "started", "completed ok", "success", "alert.resolved"}, l.events())
}

// TestSignature is a value that was worked out with another tool.
func TestSignature(t *testing.T) {
	require.Equal(t, "97yD9DBThCSxMpjmqm+xQ+9NWaFJRhdZl0edvC0aPNg=", lifecycle.Signature("key", "The quick brown fox jumps over the lazy dog"))
}

// TestSkippedAndResumedRuns: a run that was not triggered is not reported, and
// one that goes on after a restart is reported once.
func TestSkippedAndResumedRuns(t *testing.T) {
	w, l, id := overheard(t)
	w.hook(l)
	w.s.lifecycle.Queued(t.Context(), &store.SyncRun{WorkspaceID: 1, SyncID: id, Run: api.SyncRun{Status: api.RunSkipped}})
	y, run := w.begin(id)
	w.advance(time.Hour)
	w.s.lifecycle.Started(t.Context(), y, run)
	w.end(y, run, "")
	w.s.lifecycle.Ended(t.Context(), y, run)
	w.settle()
	require.Equal(t, []string{"triggered", "started", "completed ok", "success"}, l.events())
	require.Equal(t, time.Hour, w.s.Clock().Now().Sub(w.keptRun(run.ID).StartedAt).Round(time.Second))
}

// TestEndThatWasNotTold: the process ended between the end of a run and its
// notice; the next one sends it, and an alert with it, once.
func TestEndThatWasNotTold(t *testing.T) {
	w, l, id := overheard(t)
	w.hook(l)
	_, run := w.begin(id)
	_, working := w.begin(id)
	w.change(func(tx *store.Tx) error {
		kept := must(tx.SyncRun(1, run.ID))(t)
		kept.Run.Status, kept.Run.CompletedAt, kept.Run.ErrorMessage = api.RunFailed, api.At(tx.Now()), api.Ptr("broken")
		return store.SyncRuns.Save(tx, kept)
	})
	w.settle()
	l.take()
	for range 2 {
		w.s.lifecycle.Resume(t.Context())
		w.settle()
	}
	require.Equal(t, []string{"completed emergency", "failed", "alert.raised"}, l.events())
	require.True(t, w.keptRun(working.ID).ToldAt.IsZero())
}

// TestChosenEvents: a webhook gets only its chosen events, and only of its workspace.
func TestChosenEvents(t *testing.T) {
	w := frozen(t)
	l, other := w.listen(), w.listen()
	id := w.newSync()
	w.hook(l, "sync.failed", "sync.success")
	stranger := w.control("POST", "/organizations", nil).want(201).at("workspace_api_key").(string)
	w.do("POST", "/webhooks", stranger, map[string]any{"name": "Hook", "endpoint": other.URL}).want(201)
	w.run(id, "")
	w.run(id, "broken")
	require.Equal(t, []string{"success", "failed"}, l.events())
	require.Empty(t, other.events())
}

// pemOf is the certificate of a server.
func pemOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}
