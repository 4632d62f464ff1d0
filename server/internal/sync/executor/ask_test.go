package executor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/sync/destination"
)

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
