package journal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBudget: a burst is written, and what comes without end is not.
func TestBudget(t *testing.T) {
	begin := time.Unix(0, 0)
	p := &budget{}
	entries, size := p.refill(begin, 7, 1<<20)
	require.Equal(t, MostEntries, entries)
	require.Equal(t, 1<<20, size)
	p.spend(MostEntries, 2<<20)
	entries, size = p.refill(begin.Add(time.Second), 7, 1<<20)
	require.Equal(t, 7, entries)
	require.Zero(t, size, "still in debt")
	entries, size = p.refill(begin.Add(time.Hour), 7, 1<<20)
	require.Equal(t, MostEntries, entries)
	require.Equal(t, 1<<20, size)
}
