package service

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/service/internal/endpoint"
)

// TestGivenUp: a verdict is never between two moments that are close together. The
// whole suite is judged with deadlines that agree (serveImpatient).
func TestGivenUp(t *testing.T) {
	const known, held = 3 * time.Second, 6 * time.Second
	require.Equal(t, held, known+2*room(known))
	for name, c := range map[string]struct {
		known     time.Duration
		took      time.Duration
		aborted   bool
		broken    bool
		undecided string
	}{
		"before":                 {known: known, took: time.Second, aborted: true},
		"at the same moment":     {known: known, took: known, aborted: true},
		"a moment after":         {known: known, took: known + 900*time.Millisecond, aborted: true},
		"late":                   {known: known, took: known + 2*time.Second, aborted: true, undecided: "gave the request up after 5s, which is later than 3s and not by much"},
		"as the judge answers":   {known: known, took: held, aborted: true, undecided: "after 6s, which is later than 3s"},
		"never":                  {known: known, took: held, broken: true},
		"nobody knows":           {took: time.Minute, aborted: true},
		"nobody knows, answered": {took: shortHold, undecided: "the service waits for longer than 6s: say with --request-timeout how long it may"},
	} {
		call := &endpoint.Call{Came: time.Now(), Aborted: c.aborted, Done: true}
		call.Ended = call.Came.Add(c.took)
		broken, err := waitedOn(call, c.known, held)
		require.Equal(t, c.broken, broken, name)
		if c.undecided == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.undecided, name)
		}
	}
}
