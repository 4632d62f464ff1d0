package destination

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

// patient lets a given number of attempts fail, and records its calls.
type patient struct {
	ctx      context.Context
	retries  int
	failures []*CallError
	waited   []time.Duration
	refuse   error // of Prepare
}

var errEnough = errors.New("enough")

func (p *patient) Check(failed *CallError) (bool, error) {
	p.failures = append(p.failures, failed)
	if len(p.failures) > p.retries {
		return false, errEnough
	}
	return true, nil
}

func (p *patient) Backoff() time.Duration { return time.Duration(len(p.failures)) * time.Hour }

func (p *patient) Prepare(wait time.Duration) (context.Context, error) {
	p.waited = append(p.waited, wait)
	return p.ctx, p.refuse
}

// repeatedSender sends to an endpoint whose answers are those handlers in turn,
// the last one again and again. It gives what the journal heard and the ids and
// connections that came.
type repeatedSender struct {
	Sender
	mu       sync.Mutex
	journal  []Exchange
	ids      []string
	bodies   []string
	remotes  map[string]bool
	handlers []http.HandlerFunc
}

func newRepeatedSender(t *testing.T, options Options, handlers ...http.HandlerFunc) *repeatedSender {
	s := &repeatedSender{handlers: handlers, remotes: map[string]bool{}}
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     string          `json:"id"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.ids, s.bodies = append(s.ids, q.ID), append(s.bodies, string(q.Params))
		s.remotes[r.RemoteAddr] = true
		handler := s.handlers[min(len(s.ids), len(s.handlers))-1]
		s.mu.Unlock()
		w.Header().Set("X-Id", q.ID)
		handler(w, r)
	})
	options.Observe = func(x Exchange) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.journal = append(s.journal, x)
	}
	g := newGate(t, options)
	sender, err := g.Sender(1, api.TypeCustomAPI, customCreds(t, g, `{"webhook_url":`+quote(url)+`}`))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sender.Close()) })
	s.Sender = sender
	return s
}

func answered(result string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":"` + w.Header().Get("X-Id") + `",` + result + `}`))
	}
}

func withStatus(status int, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		then(w, r)
	}
}

func aborted(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

const speedResult = `"result":{"maximum_batch_size":1,"maximum_parallel_batches":2,"maximum_records_per_second":3}`

// TestAttemptsAreRequests: every attempt of a call is a separate request, with
// its own id and its own entry in the journal, until one is answered with 200.
func TestAttemptsAreRequests(t *testing.T) {
	busy := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("X-RateLimit-Limit", "9")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	text := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("out of order")) }
	s := newRepeatedSender(t, Options{}, busy, aborted, withStatus(503, text), withStatus(500, answered(`"error":{"code":-32000,"message":"no room"}`)), answered(speedResult))
	p := &patient{ctx: t.Context(), retries: 10}
	speed, err := s.Speed(Attempted(t.Context(), p))
	require.NoError(t, err)
	require.Equal(t, rpc.Speed{MaximumBatchSize: 1, MaximumParallelBatches: 2, MaximumRecordsPerSecond: 3}, speed.Speed)

	require.Len(t, s.ids, 5)
	require.Len(t, s.journal, 5)
	seen := map[string]bool{}
	for i, x := range s.journal {
		require.Equal(t, s.ids[i], x.RequestID)
		require.False(t, seen[x.RequestID], "an id was used twice")
		seen[x.RequestID] = true
		require.Equal(t, rpc.MethodGetSyncSpeed, x.Method)
		require.Equal(t, "{}", s.bodies[i])
	}
	require.Equal(t, []int{429, 0, 503, 500, 200}, []int{s.journal[0].Status, s.journal[1].Status, s.journal[2].Status, s.journal[3].Status, s.journal[4].Status})
	require.Equal(t, OutcomeOK, s.journal[4].Outcome)

	outcomes := []string{OutcomeStatus, OutcomeNetwork, OutcomeStatus, OutcomeRPCError}
	require.Len(t, p.failures, len(outcomes))
	for i, failed := range p.failures {
		require.Equal(t, outcomes[i], failed.Outcome, failed.Message)
		require.Equal(t, failed.Message, s.journal[i].Error)
		require.Equal(t, s.ids[i], failed.Call)
	}
	require.Equal(t, "7", p.failures[0].RetryAfter)
	require.EqualValues(t, 9, p.failures[0].RateLimit)
	require.Equal(t, "http status 503 Service Unavailable: out of order", p.failures[2].Message)
	require.Equal(t, "rpc error -32000: no room", p.failures[3].Message)
	require.Equal(t, []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour}, p.waited)
	require.Len(t, s.remotes, 2, "only the connection that broke is replaced")
}

// TestAnsweredCallsAreNotRepeatedHere: the content of a 200 is judged above.
func TestAnsweredCallsAreNotRepeatedHere(t *testing.T) {
	for name, result := range map[string]string{
		"error object": `"error":{"code":-32000,"message":"no"}`, "wrong keys": `"result":{}`, "no result": `"method":"x"`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newRepeatedSender(t, Options{}, answered(result))
			p := &patient{ctx: t.Context(), retries: 10}
			_, err := s.Speed(Attempted(t.Context(), p))
			failed := failedCall(t, err)
			require.Equal(t, 200, failed.Status)
			require.Empty(t, p.failures)
			require.Len(t, s.ids, 1)
			require.Len(t, s.journal, 1)
		})
	}
}

// TestAttemptsEnd: when there is no other attempt, or none can be prepared, the
// call has failed as its last attempt did.
func TestAttemptsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		patient  patient
		requests int
	}{
		"as often as it may":   {patient{retries: 2}, 3},
		"none can be prepared": {patient{retries: 2, refuse: errEnough}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRepeatedSender(t, Options{}, withStatus(502, func(http.ResponseWriter, *http.Request) {}))
			p := &c.patient
			p.ctx = t.Context()
			_, err := s.Speed(Attempted(t.Context(), p))
			failed := failedCall(t, err)
			require.Equal(t, 502, failed.Status)
			require.Len(t, s.ids, c.requests)
			require.Len(t, s.journal, c.requests)
			require.Len(t, s.remotes, 1, "a failure closes no connection")
		})
	}
}

// TestAttemptsHaveTheirOwnTime: one that takes too long leaves the next one its
// whole time.
func TestAttemptsHaveTheirOwnTime(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	hang := func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}
	s := newRepeatedSender(t, Options{CallTimeout: 200 * time.Millisecond}, hang, hang, answered(speedResult))
	p := &patient{ctx: t.Context(), retries: 2}
	_, err := s.Speed(Attempted(t.Context(), p))
	// A machine that is busy may let the third one run out of time as well.
	if err == nil {
		require.Len(t, p.failures, 2)
	}
	for _, failed := range p.failures {
		require.Contains(t, []string{OutcomeTimeout, OutcomeConnect}, failed.Outcome)
	}
}
