package loadgen

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhyARateWasNotReached: the target is only blamed for what it did not take.
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
