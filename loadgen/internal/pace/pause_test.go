package pace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAPauseIsNotMadeUpFor: what was due while the load stood still is left out.
func TestAPauseIsNotMadeUpFor(t *testing.T) {
	c := NewClock()
	p := New(c, NewSchedule(constant(1000), Burst{}), 4, 0)
	p.turn.Lock()
	p.paused = int64(time.Second)
	p.at, p.shift = int64(time.Second), 0
	p.resume(int64(5 * time.Second))
	require.EqualValues(t, 5*time.Second, p.at)
	require.EqualValues(t, 4*time.Second, p.shift)
	p.turn.Unlock()
	require.EqualValues(t, 1000, p.AskedAt(NewSchedule(constant(1000), Burst{}), 1))
	p.changes = []Change{{int64(time.Second), 10}, {int64(3 * time.Second), 30}}
	require.EqualValues(t, 10, p.AskedAt(p.plan, int64(2*time.Second)))
	require.EqualValues(t, 30, p.AskedAt(p.plan, int64(9*time.Second)))
}
