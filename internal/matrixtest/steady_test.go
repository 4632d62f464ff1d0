package matrixtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSteadily: what was wanted is judged once, anything else once more, and not
// for ever.
func TestSteadily(t *testing.T) {
	defer again.Store(0)
	judged := 0
	after := func(n int) func() bool {
		judged = 0
		return func() bool { judged++; return judged > n }
	}
	is := func(verdict bool) bool { return verdict }
	require.True(t, Steadily(t, after(0), is))
	require.Equal(t, 1, judged)
	for range mostAgain {
		require.True(t, Steadily(t, after(1), is))
		require.Equal(t, 2, judged)
	}
	require.False(t, Steadily(t, after(1), is), "no busy machine disturbs as often as that")
	require.Equal(t, 1, judged)
	again.Store(0)
	require.False(t, Steadily(t, after(2), is), "a wrong verdict is wrong both times")
	require.Equal(t, 2, judged)
}
