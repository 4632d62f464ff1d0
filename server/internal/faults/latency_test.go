package faults

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/call"
)

// TestLatency: it is real time, adds up, is bounded, and ends with the caller.
func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Options{})
		arm := func(latency string) {
			_, err := f.Arm(t.Context(), Fault{Kind: "latency", Latency: latency})
			require.NoError(t, err)
		}
		strike := func(ctx context.Context) (time.Duration, error) {
			c := &call.Call{Ctx: ctx, R: httptest.NewRequest("GET", "/", nil)}
			began := time.Now()
			err := f.Before(c)
			return time.Since(began), err
		}
		arm("250ms")
		arm("50ms")
		took, err := strike(t.Context())
		require.NoError(t, err)
		require.Equal(t, 300*time.Millisecond, took)
		arm("1m")
		took, err = strike(t.Context())
		require.NoError(t, err)
		require.Equal(t, maxLatency, took)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		took, err = strike(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, took)
	})
}

// TestFaultsSurviveTheirKeeping: a fault is the same when it was written and read.
func TestFaultsSurviveTheirKeeping(t *testing.T) {
	f := New(Options{Operations: func() []string { return []string{"listUsers"} }})
	for _, body := range []string{
		`{"kind":"latency","latency":"250ms","operation":"list*","every":3}`, `{"kind":"rate_limited","retry_after":"date:90"}`,
		`{"kind":"rate_limited","retry_after":"Wed, 02 Dec 2026 08:00:00 GMT"}`, `{"kind":"status","retry_after":0,"message":"\u0000 é"}`,
		`{"kind":"drop","phase":"after","probability":0.25,"seed":18446744073709551615,"organization_id":1,"workspace_id":2,"after_n":3,"first_n":4,"times":5}`,
	} {
		var fault Fault
		require.NoError(t, json.Unmarshal([]byte(body), &fault))
		_, err := f.Arm(t.Context(), fault)
		require.NoError(t, err)
	}
	b := &f.board
	for range 3 { // the draws go on from where they were
		b.list[4].due()
	}
	text, err := b.text()
	require.NoError(t, err)
	again, err := readBoard(text)
	require.NoError(t, err)
	require.Equal(t, b, again)
	_, err = readBoard([]byte("{"))
	require.Error(t, err)
}
