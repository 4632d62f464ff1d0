package server

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDrivenFromGo: a test in Go needs no request to the control API, and sees there what
// it has done.
func TestDrivenFromGo(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	{ // faults
		armed, err := w.s.Faults().Arm(ctx, Fault{Kind: "rate_limited", RetryAfter: RetryIn(7), Trigger: Trigger{Operation: "listUsers", FirstN: 1}})
		require.NoError(t, err)
		require.Equal(t, "fault_1", armed.ID)
		_, err = w.s.Faults().Arm(ctx, Fault{Kind: "status", Trigger: Trigger{Operation: "listSources"}})
		require.NoError(t, err)
		_, err = w.s.Faults().Arm(ctx, Fault{Kind: "thunder"})
		require.ErrorContains(t, err, "kind")
		for _, seconds := range []int64{-1, math.MaxInt64} {
			_, err = w.s.Faults().Arm(ctx, Fault{Kind: "rate_limited", RetryAfter: RetryIn(seconds)})
			require.ErrorContains(t, err, "retry_after")
		}

		refused := w.do("GET", "/users", w.pat, nil).want(429)
		require.Equal(t, "7", refused.header.Get("Retry-After"))
		w.do("GET", "/users", w.pat, nil).want(200)
		require.Len(t, w.control("GET", "/faults", nil).want(200).at("faults"), 2)
		list, err := w.s.Faults().List(ctx)
		require.NoError(t, err)
		require.Equal(t, []int64{1, 0}, []int64{list[0].Fired, list[1].Fired})
		unfired := w.s.Faults().Unfired()
		require.Len(t, unfired, 1)
		gone, err := w.s.Faults().Disarm(ctx, unfired[0].ID)
		require.NoError(t, err)
		require.False(t, gone.Armed)
		_, err = w.s.Faults().Disarm(ctx, unfired[0].ID)
		require.ErrorContains(t, err, "there is no fault")
		all, err := w.s.Faults().Clear(ctx)
		require.NoError(t, err)
		require.Len(t, all, 1)
	}
	{ // journal
		refused, err := w.s.Journal().Requests(ctx, JournalFilter{Operation: "listUsers", Status: "4xx"})
		require.NoError(t, err)
		require.Len(t, refused, 1)
		require.Equal(t, []string{"fault_1"}, refused[0].Faults)
		later, err := w.s.Journal().Requests(ctx, JournalFilter{After: refused[0].Number, Limit: 1})
		require.NoError(t, err)
		require.Len(t, later, 1)
		_, err = w.s.Journal().Requests(ctx, JournalFilter{Status: "many"})
		require.ErrorContains(t, err, "status")

		w.do("POST", "/destinations", w.key, customDestination(w.destination())).want(201)
		calls, err := w.s.Journal().Calls(ctx, JournalFilter{DestinationID: 1})
		require.NoError(t, err)
		require.NotEmpty(t, calls)
		none, err := w.s.Journal().Calls(ctx, JournalFilter{DestinationID: 99})
		require.NoError(t, err)
		require.Empty(t, none)
		require.NoError(t, w.s.Journal().Clear(ctx))
		left, err := w.s.Journal().Requests(ctx, JournalFilter{})
		require.NoError(t, err)
		require.Empty(t, left)
	}
	{ // clock
		clock := w.s.Clock()
		require.NoError(t, clock.Freeze(ctx))
		before := clock.Now()
		require.NoError(t, clock.Advance(ctx, 36*time.Hour))
		require.Equal(t, 36*time.Hour, clock.Now().Sub(before))
		require.ErrorContains(t, clock.Advance(ctx, -time.Hour), "advance")
		to := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
		require.NoError(t, clock.Set(ctx, to))
		require.Equal(t, to, clock.Now())
		require.ErrorContains(t, clock.Set(ctx, time.Time{}), "1970")
		require.NoError(t, clock.Resume(ctx))
		require.False(t, w.s.clock.State().Frozen)
		changes := w.control("GET", "/clock/journal", nil).want(200).at("changes").([]any)
		var names []any
		for _, change := range changes {
			names = append(names, change.(map[string]any)["change"])
		}
		require.Equal(t, []any{"run", "set", "advance", "freeze"}, names)
	}
	{ // reset
		_, err := w.s.Faults().Arm(ctx, Fault{Kind: "status"})
		require.NoError(t, err)
		require.NoError(t, w.s.Reset(ctx))
		w.do("GET", "/destinations", w.key, nil).want(200)
		require.Empty(t, w.do("GET", "/destinations", w.key, nil).want(200).at("data"))
		list, err := w.s.Faults().List(ctx)
		require.NoError(t, err)
		require.Empty(t, list)
	}
}
