package destination

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/hook"
)

// fragile is an endpoint whose process ends when it reads a certain text. A new
// one listens at the same port after a while, or never.
type fragile struct {
	http.Handler
	deadly string
	kills  func(body string) bool // in its place, unless it is nil
	back   time.Duration          // 0: never

	mu      sync.Mutex
	address string
	server  *http.Server
	deaths  int
	closed  bool
}

func newFragile(t *testing.T, h http.Handler, deadly string, back time.Duration) *fragile {
	t.Helper()
	f := &fragile{Handler: h, deadly: deadly, back: back}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.address = l.Addr().String()
	f.serve(l)
	t.Cleanup(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.closed = true
		_ = f.server.Close()
	})
	return f
}

func (f *fragile) serve(l net.Listener) {
	f.server = &http.Server{Handler: f}
	go func(s *http.Server) { _ = s.Serve(l) }(f.server)
}

func (f *fragile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if f.kills == nil && !strings.Contains(string(body), f.deadly) || f.kills != nil && !f.kills(string(body)) {
		f.Handler.ServeHTTP(w, r)
		return
	}
	f.die()
	panic(http.ErrAbortHandler)
}

// die closes the listener and every connection before this call is answered.
func (f *fragile) die() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deaths++
	_ = f.server.Close()
	if f.back > 0 {
		time.AfterFunc(f.back, f.rise)
	}
}

func (f *fragile) rise() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	if l, err := net.Listen("tcp", f.address); err == nil {
		f.serve(l)
	}
}

// brokenIn are the checks that do not hold.
func brokenIn(r *conformance.Report) []string {
	var out []string
	for _, c := range r.Checks {
		if slices.Contains([]conformance.Status{conformance.Fail, conformance.Flaky, conformance.Warn}, c.Status) {
			out = append(out, c.ID)
		}
	}
	return out
}

// TestAnOutageIsOneFinding: an endpoint that a value brings down has one defect. It
// is known by the call that it followed, and every other rule is judged or stays
// undecided.
func TestAnOutageIsOneFinding(t *testing.T) {
	if testing.Short() {
		t.Skip("full runs")
	}
	for name, serial := range map[string]bool{"one check at a time": true, "checks in parallel": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRefuser(func(attempt) string { return "" })
			// Only one row of DAT-011 holds this text.
			f := newFragile(t, e, "MiXed CaSe", 300*time.Millisecond)
			r, err := Run(context.Background(), Target{URL: "http://" + f.address + "/", Token: scriptToken}, conformance.Options{
				Write: true, Objects: []string{"contact"}, MaxRecords: 20_000, Seed: 7, RunID: scriptRun, Serial: serial,
				ReadbackFunc: e.readback, ReturnWait: 5 * time.Second,
			})
			require.NoError(t, err)
			require.Positive(t, f.deaths)
			require.Equal(t, []string{"ERR-006"}, brokenIn(r), foundBy(r))
			got := resultOf(t, r, "ERR-006")
			require.Equal(t, conformance.Fail, got.Status)
			require.Contains(t, got.Findings[0].Actual, "stopped accepting connections after sync_batch of DAT-011; it was back after ")
			undecided := resultOf(t, r, "DAT-011")
			require.Equal(t, conformance.Inconclusive, undecided.Status)
			require.Contains(t, undecided.Reason, "stopped accepting connections in the middle of it (ERR-006)")
			require.Equal(t, conformance.Pass, resultOf(t, r, "DAT-001").Status, "the rest is judged as ever")
			require.Equal(t, conformance.Pass, resultOf(t, r, "DAT-015").Status)
			require.Equal(t, 1, r.ExitStatus)
		})
	}
}

// TestAnEndpointThatStaysAwayIsOneFinding: nothing is judged against a port where
// there is no endpoint any more.
func TestAnEndpointThatStaysAwayIsOneFinding(t *testing.T) {
	if testing.Short() {
		t.Skip("full runs")
	}
	e := newRefuser(func(attempt) string { return "" })
	f := newFragile(t, e, "MiXed CaSe", 0)
	r, err := Run(context.Background(), Target{URL: "http://" + f.address + "/", Token: scriptToken}, conformance.Options{
		Write: true, Objects: []string{"contact"}, MaxRecords: 20_000, Seed: 7, RunID: scriptRun, Serial: true,
		ReadbackFunc: e.readback, ReturnWait: 300 * time.Millisecond,
	})
	require.NoError(t, err)
	require.Equal(t, 1, f.deaths)
	require.Equal(t, []string{"ERR-006"}, brokenIn(r), foundBy(r))
	actual := resultOf(t, r, "ERR-006").Findings[0].Actual
	require.Contains(t, actual, "stopped accepting connections after sync_batch of DAT-011; it was not back after ")
	require.Len(t, resultOf(t, r, "ERR-006").Findings, 1)
	passed := 0
	for _, c := range r.Checks {
		require.Contains(t, []conformance.Status{conformance.Pass, conformance.Inconclusive, conformance.NotRun, conformance.NotApplicable, conformance.Fail}, c.Status, c.ID)
		if c.Status == conformance.Pass {
			passed++
		}
	}
	require.Positive(t, passed, "what was judged before it stays judged")
	require.Equal(t, 1, r.ExitStatus)
	require.NotEmpty(t, e.keys("contact"))
	require.NotZero(t, len(r.Residue.Refused)+len(r.Residue.Unknown)+r.Residue.Unverified, "what nothing could delete is told")
}

// TestAReadbackOfTheSameProcessGoesAwayWithIt: a hook that the process serves too gets
// no answer while that is away, which is no fault of the hook.
func TestAReadbackOfTheSameProcessGoesAwayWithIt(t *testing.T) {
	if testing.Short() {
		t.Skip("a full run")
	}
	e := newRefuser(func(attempt) string { return "" })
	f := newFragile(t, e, "no request holds this", 200*time.Millisecond)
	reads, killed := 0, sync.Once{}
	var mu sync.Mutex
	readback := func(ctx context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
		mu.Lock()
		reads++
		last := reads == 60
		mu.Unlock()
		if last {
			killed.Do(f.die)
		}
		conn, err := net.Dial("tcp", f.address)
		if err != nil {
			return conformance.ReadbackReply{}, &hook.Error{Kind: hook.KindUnreachable, Hook: "readback", Message: "did not answer", Err: err}
		}
		_ = conn.Close()
		return e.readback(ctx, q)
	}
	r, err := Run(context.Background(), Target{URL: "http://" + f.address + "/", Token: scriptToken}, conformance.Options{
		Write: true, Objects: []string{"contact"}, MaxRecords: 20_000, Seed: 7, RunID: scriptRun,
		ReadbackFunc: readback, ReturnWait: 5 * time.Second,
	})
	require.NoError(t, err)
	require.Equal(t, 1, f.deaths)
	require.Equal(t, []string{"ERR-006"}, brokenIn(r), foundBy(r))
	require.Zero(t, r.Counts[conformance.HarnessError])
	require.Equal(t, 1, r.ExitStatus)
}

// TestAReadbackThatIsBrokenOffIsAskedAgain: a process that restarts between two calls leaves one
// broken connection of the hook; one that breaks off each time is a fault of the hook.
func TestAReadbackThatIsBrokenOffIsAskedAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("a full run")
	}
	for name, c := range map[string]struct {
		broken func(read int) bool
		faulty bool
	}{
		"once":   {func(read int) bool { return read == 60 }, false},
		"always": {func(read int) bool { return read >= 60 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newRefuser(func(attempt) string { return "" })
			var reads atomic.Int64
			readback := func(ctx context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
				if c.broken(int(reads.Add(1))) {
					return conformance.ReadbackReply{}, &hook.Error{Kind: hook.KindUnreachable, Hook: "readback", Message: "did not answer", Err: io.EOF}
				}
				return e.readback(ctx, q)
			}
			server := httptest.NewServer(e)
			defer server.Close()
			r, err := Run(context.Background(), Target{URL: server.URL, Token: scriptToken}, conformance.Options{
				Write: true, Objects: []string{"contact"}, MaxRecords: 20_000, Seed: 7, RunID: scriptRun,
				ReadbackFunc: readback, ReturnWait: 5 * time.Second,
			})
			require.NoError(t, err)
			require.Greater(t, reads.Load(), int64(60))
			require.Empty(t, brokenIn(r), foundBy(r))
			require.Equal(t, c.faulty, r.Counts[conformance.HarnessError] > 0, foundBy(r))
		})
	}
}

// stuck is an endpoint whose only worker does not come back from a certain text, or not
// for a while.
type stuck struct {
	http.Handler
	deadly string
	stays  time.Duration // 0: for ever

	batches bool // other calls need no worker

	worker sync.Mutex
	hangs  atomic.Int64
	over   chan struct{}
}

func (e *stuck) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !e.batches || strings.Contains(string(body), "sync_batch") {
		e.worker.Lock()
		defer e.worker.Unlock()
	}
	if strings.Contains(string(body), e.deadly) && e.hangs.Add(1) == 1 {
		var back <-chan time.Time
		if e.stays > 0 {
			back = time.After(e.stays)
		}
		select {
		case <-back:
		case <-e.over:
		}
	}
	e.Handler.ServeHTTP(w, r)
}

// TestAnEndpointThatAnswersNothingAnyMoreIsOneFinding: it accepts connections, and the
// time limit of every later call, or batch, would be waited for.
func TestAnEndpointThatAnswersNothingAnyMoreIsOneFinding(t *testing.T) {
	if testing.Short() {
		t.Skip("full runs")
	}
	for name, serial := range map[string]bool{"one check at a time": true, "checks in parallel": false, "batches alone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRefuser(func(attempt) string { return "" })
			f := &stuck{Handler: e, deadly: "MiXed CaSe", over: make(chan struct{}), batches: name == "batches alone"}
			server := httptest.NewServer(f)
			t.Cleanup(server.Close)
			t.Cleanup(func() { close(f.over) })
			r, err := Run(context.Background(), Target{URL: server.URL + "/", Token: scriptToken}, conformance.Options{
				Write: true, Objects: []string{"contact"}, MaxRecords: 20_000, Seed: 7, RunID: scriptRun, Serial: serial,
				ReadbackFunc: e.readback, ReturnWait: time.Second, PlanningTimeout: time.Second, BatchTimeout: time.Second,
			})
			require.NoError(t, err)
			require.EqualValues(t, 1, f.hangs.Load())
			require.Equal(t, []string{"ERR-006"}, brokenIn(r), foundBy(r))
			got := resultOf(t, r, "ERR-006")
			require.Len(t, got.Findings, 1)
			require.Contains(t, got.Findings[0].Actual, "stopped responding ")
			require.Contains(t, got.Findings[0].Actual, "it was not back after ")
			require.Contains(t, got.Findings[0].Cause, "never given back")
			if serial && !f.batches {
				require.Contains(t, got.Findings[0].Actual, "stopped responding after sync_batch of DAT-011; ")
			}
			require.Contains(t, got.Findings[0].Actual, "sync_batch of DAT-011")
			require.Contains(t, resultOf(t, r, "DAT-011").Reason, "the endpoint stopped responding in the middle of it (ERR-006)")
			require.Positive(t, r.Counts[conformance.Pass], "what was judged before it stays judged")
			require.Equal(t, 1, r.ExitStatus)
		})
	}
}

// TestAnEndpointThatIsSilentForAWhileIsNotGone: one call comes too late, and the rest is
// judged as ever.
func TestAnEndpointThatIsSilentForAWhileIsNotGone(t *testing.T) {
	if testing.Short() {
		t.Skip("a full run")
	}
	e := newRefuser(func(attempt) string { return "" })
	f := &stuck{Handler: e, deadly: "MiXed CaSe", stays: 1500 * time.Millisecond, over: make(chan struct{})}
	server := httptest.NewServer(f)
	defer server.Close()
	r, err := Run(context.Background(), Target{URL: server.URL + "/", Token: scriptToken}, conformance.Options{
		Write: true, Objects: []string{"contact"}, MaxRecords: 20_000, Seed: 7, RunID: scriptRun, Serial: true,
		ReadbackFunc: e.readback, ReturnWait: 5 * time.Second, PlanningTimeout: 5 * time.Second, BatchTimeout: time.Second,
	})
	require.NoError(t, err)
	require.Positive(t, f.hangs.Load())
	require.Equal(t, conformance.Pass, resultOf(t, r, "ERR-006").Status)
	require.NotContains(t, foundBy(r), "stopped responding")
}

// TestALostCallIsNoOutage: a connection that is closed by an endpoint which goes on
// accepting others is judged by the check that it belongs to.
func TestALostCallIsNoOutage(t *testing.T) {
	e := newSmall()
	e.answer = func(method string, nth int, _ []byte) string {
		if method == "list_objects" && nth > 1 {
			panic(http.ErrAbortHandler)
		}
		return ""
	}
	check := strings.NewReplacer(`Then every result of test_connection has a boolean "success"`, "Then every reply has a result", "test_connection", "list_objects").Replace(healthCheck)
	r := judged(t, e, check, conformance.Options{ReturnWait: time.Second})
	require.Contains(t, []conformance.Status{conformance.Fail, conformance.Warn}, resultOf(t, r, "AAA-001").Status)
}
