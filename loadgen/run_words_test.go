package loadgen

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/loadgen/internal/pace"
)

// TestWhyARateWasNotReached: the target is only blamed for requests that it did not take.
func TestWhyARateWasNotReached(t *testing.T) {
	for name, c := range map[string]struct {
		m       measure
		reached float64
		limited bool
		want    string
	}{
		"reached":           {measure{requests: 1000}, 100, false, ""},
		"late replies":      {measure{requests: 1000}, 95, true, "all were sent, and 50 were answered after the end or never"},
		"the connections":   {measure{requests: 500, queued: 400}, 50, false, "all 8 connections were busy: the target is slower, or more --connections are needed"},
		"the generator":     {measure{requests: 500, late: 100, unsent: 500}, 50, true, "the generator did not send more"},
		"a busy machine":    {measure{requests: 500}, 50, true, "the target did not take more"},
		"whatever it is":    {measure{requests: 500, unsent: 500}, 50, false, "the target did not take more"},
		"too few to say so": {measure{requests: 5}, 1, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.m.stopped, c.m.reason = int64(10*time.Second), stopTime
			s := &session{result: &Result{RequestsPerSecond: c.reached, Seconds: 10, Generator: Generator{Limited: c.limited}}, e: &engine{}}
			s.comment(&c.m, phase{open: true, duration: 10 * time.Second, connections: 8, stages: []Stage{{Duration: 10 * time.Second, From: 100, To: 100}}})
			if c.want == "" {
				require.Empty(t, s.result.Notes)
				return
			}
			require.Len(t, s.result.Notes, 1)
			require.Contains(t, s.result.Notes[0], "of 100 requests/s; "+c.want)
		})
	}
}

func TestMeanRate(t *testing.T) {
	stages := []Stage{{time.Second, 10, 10}, {2 * time.Second, 10, 30}, {time.Second, 30, 30}}
	require.InDelta(t, 20, meanRate(stages, Burst{}, 4*time.Second), 1e-9)
	require.InDelta(t, 25, meanRate(stages, Burst{}, 8*time.Second), 1e-9)
	require.InDelta(t, 10, meanRate(stages, Burst{}, time.Second), 1e-9)

	ph := phase{open: true, stages: constant(100)}
	changes := []pace.Change{{At: int64(time.Second), Rate: 10}, {At: int64(3 * time.Second), Rate: 30}}
	require.InDelta(t, (100+2*10+30)/4.0, changedRate(ph, changes, 4*time.Second), 1e-6)
}
