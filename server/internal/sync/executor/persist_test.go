package executor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/pace"
)

// persisting is a run that can make calls and nothing else, on a stopped
// clock.
func persisting(t testing.TB, b Backoff) *caller {
	c := clock.New(nil)
	t.Cleanup(c.Close)
	c.Freeze(true)
	e := New(Options{Clock: c, Backoff: b, Random: func() float64 { return 0 }})
	return &caller{e: e, backoff: e.options.Backoff, gate: &gate{clock: c, limiter: pace.NewLimiter()}}
}

// attempts makes one call whose attempts fail with these errors in turn, and then
// succeed. It moves the clock as far as the attempts want, and returns when each
// was made.
func attempts(t *testing.T, r *caller, attempts int, failures ...error) (at []time.Duration, err error) {
	t.Helper()
	began := r.e.options.Clock.Now()
	ended := make(chan error, 1)
	ctx, done := r.e.options.Clock.Work(t.Context(), "call")
	go func() {
		defer done()
		ended <- r.persist(ctx, attempts, 1, time.Minute, func(context.Context) (int64, error) {
			at = append(at, r.e.options.Clock.Now().Sub(began))
			if len(at) > len(failures) {
				return 0, nil
			}
			return 0, failures[len(at)-1]
		})
	}()
	_, moved := r.e.options.Clock.Advance(t.Context(), 3*time.Hour)
	require.NoError(t, moved)
	return at, <-ended
}

func failures(n int, err destination.CallError) (list []error) {
	for range n {
		list = append(list, &err)
	}
	return list
}

// TestAttemptsOfOneCall: how often, how long after one another, and what the call
// has come to in the end (spec 7.2.5).
func TestAttemptsOfOneCall(t *testing.T) {
	s := time.Second
	broken := destination.CallError{Outcome: destination.OutcomeRPCError}
	status := destination.CallError{Outcome: destination.OutcomeStatus, Status: 503, RetryAfter: "20"}
	network := destination.CallError{Outcome: destination.OutcomeNetwork}
	nobody := destination.CallError{Outcome: destination.OutcomeDNS}
	throttled := destination.CallError{Outcome: destination.OutcomeStatus, Status: 429, RetryAfter: "1000000000"}
	silent := destination.CallError{Outcome: destination.OutcomeStatus, Status: 429}
	for name, tc := range map[string]struct {
		attempts int
		failures []error
		at       []time.Duration
		whole    bool
		code     string
	}{
		"at once":                              {3, nil, []time.Duration{0}, false, ""},
		"the second time":                      {3, failures(1, broken), []time.Duration{0, s}, false, ""},
		"as often as it may":                   {3, failures(3, broken), []time.Duration{0, s, 3 * s}, true, ""},
		"once only":                            {1, failures(1, broken), []time.Duration{0}, true, ""},
		"Retry-After of another status":        {3, failures(2, status), []time.Duration{0, 20 * s, 40 * s}, false, ""},
		"a connection that breaks gets longer": {3, failures(6, network), []time.Duration{0, s, 3 * s, 7 * s, 15 * s, 31 * s}, true, ""},
		"nobody is there":                      {3, failures(6, nobody), []time.Duration{0, s, 3 * s, 7 * s, 15 * s, 31 * s}, false, CodeUnreachable},
		"a URL that may not be called":         {3, failures(1, destination.CallError{Outcome: destination.OutcomeURL}), []time.Duration{0}, false, CodeUnreachable},
		"a secret that is refused":             {3, failures(1, destination.CallError{Outcome: destination.OutcomeSecret}), []time.Duration{0}, false, CodeUnauthorized},
		"429s cost no attempt, with a cap":     {1, failures(3, throttled), []time.Duration{0, 60 * s, 120 * s, 180 * s}, false, ""},
		"429s that do not say":                 {1, failures(4, silent), []time.Duration{0, s, 3 * s, 7 * s, 15 * s}, false, ""},
		"429s between other failures": {
			2, []error{&broken, &throttled, &throttled}, []time.Duration{0, s, 61 * s, 121 * s}, false, "",
		},
		"cancelled": {3, failures(1, destination.CallError{Outcome: destination.OutcomeCanceled}), []time.Duration{0}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := attempts(t, persisting(t, Backoff{}), tc.attempts, tc.failures...)
			require.Equal(t, tc.at, at)
			var whole *wholeError
			var failure *Failure
			switch {
			case tc.code != "":
				require.ErrorAs(t, err, &failure)
				require.Equal(t, tc.code, failure.Code)
			case tc.whole:
				require.ErrorAs(t, err, &whole)
			default:
				require.NoError(t, err)
			}
		})
	}
}

// TestThrottledForTooLong: 429s may go on for Backoff.Throttle and no longer,
// however short the waits between them are.
func TestThrottledForTooLong(t *testing.T) {
	at, err := attempts(t, persisting(t, Backoff{Throttle: 10 * time.Minute}), 3,
		failures(1000, destination.CallError{Outcome: destination.OutcomeStatus, Status: 429, RetryAfter: "5"})...)
	var failure *Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, CodeThrottled, failure.Code)
	require.Equal(t, 10*time.Minute, at[len(at)-1])
	require.Len(t, at, 121)
}

// TestAnErrorThatIsNoCallEndsTheAttempts: a fault of this program is not repeated.
func TestAnErrorThatIsNoCallEndsTheAttempts(t *testing.T) {
	at, err := attempts(t, persisting(t, Backoff{}), 3, errors.New("no records"))
	require.Len(t, at, 1)
	var failure *Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, CodeInternal, failure.Code)
}

// TestWaitingAttemptsEndWithTheRun: neither a wait nor the loop outlives its
// context, and the cause is handed on.
func TestWaitingAttemptsEndWithTheRun(t *testing.T) {
	r := persisting(t, Backoff{})
	ctx, cancel := context.WithCancelCause(t.Context())
	calls := 0
	err := r.persist(ctx, 3, 1, time.Minute, func(context.Context) (int64, error) {
		calls++
		cancel(ErrStop)
		return 0, &destination.CallError{Outcome: destination.OutcomeNetwork}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, context.Cause(ctx), ErrStop)
	require.Equal(t, 1, calls)
}

func TestABatchThatIsRefusedAsAWholeIsSplit(t *testing.T) {
	for _, bad := range [][]int{{1}, {64}, {33, 34}, {1, 2, 3, 4, 5}} {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			w := newWorld(t, setup{sim: destsim.Config{Speed: rpc.Speed{MaximumBatchSize: 64, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 1_000_000}}})
			w.fill(1, 64)
			for _, id := range bad {
				w.arm(destsim.Fault{Kind: "rpc_error", Message: "cannot take this", When: destsim.Trigger{Method: syncBatch, Identifier: api.Raw(id)}})
			}
			o := w.sync()
			require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
			require.Equal(t, int64(len(bad)), o.Failed, "only the bad ones fail")
			require.Equal(t, int64(64-len(bad)), o.Updated)
		})
	}
}

func TestAnEndpointThatRefusesEverythingIsNotAskedForEver(t *testing.T) {
	w := newWorld(t, setup{sim: destsim.Config{Speed: rpc.Speed{MaximumBatchSize: 1000, MaximumParallelBatches: 4, MaximumRecordsPerSecond: 1_000_000}}})
	w.fill(1, 100_000)
	w.arm(destsim.Fault{Kind: "rpc_error", Message: "closed today", Code: -32001, When: destsim.Trigger{Method: syncBatch}})
	o := w.sync()
	require.Equal(t, CodeRPC, o.Code)
	require.Contains(t, o.Message, "-32001")
	require.Contains(t, o.Message, "closed today")
	require.Less(t, o.Calls, int64(400))
	require.True(t, o.Transient)
}

// TestPlanningIsTriedAgain: with the waits of every other call, and the error of
// the last try in the end (spec 4.2, rule 4).
func TestPlanningIsTriedAgain(t *testing.T) {
	s := time.Second
	malformed := &destination.CallError{Outcome: destination.OutcomeMalformed, Message: "no objects"}
	limit := &destination.CallError{Outcome: destination.OutcomeLimit}
	for name, tc := range map[string]struct {
		failures []error
		at       []time.Duration
		want     error
	}{
		"at once":              {nil, []time.Duration{0}, nil},
		"the third time":       {[]error{malformed, malformed}, []time.Duration{0, s, 3 * s}, nil},
		"never":                {[]error{malformed, malformed, malformed}, []time.Duration{0, s, 3 * s}, malformed},
		"no room in the limit": {[]error{limit, limit, limit, limit}, []time.Duration{0, s, 3 * s, 7 * s, 15 * s}, nil},
		"a fault of ours":      {[]error{context.DeadlineExceeded}, []time.Duration{0}, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			e := persisting(t, Backoff{}).e
			began := e.options.Clock.Now()
			var at []time.Duration
			ended := make(chan error, 1)
			ctx, done := e.options.Clock.Work(t.Context(), "planning")
			go func() {
				defer done()
				ended <- e.Ask(ctx, 7, func(context.Context) error {
					at = append(at, e.options.Clock.Now().Sub(began))
					if len(at) > len(tc.failures) {
						return nil
					}
					return tc.failures[len(at)-1]
				})
			}()
			_, err := e.options.Clock.Advance(t.Context(), time.Hour)
			require.NoError(t, err)
			require.Equal(t, tc.want, <-ended)
			require.Equal(t, tc.at, at)
		})
	}
}
