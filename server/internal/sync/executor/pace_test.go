package executor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBackoffDoublesUpToItsCap(t *testing.T) {
	b := Backoff{}.withDefaults()
	most := func() float64 { return 0 }
	var waits []time.Duration
	for try := 2; try < 10; try++ {
		waits = append(waits, b.before(try, most)/time.Second)
	}
	require.Equal(t, []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}, waits)
	require.Equal(t, 750*time.Millisecond, b.before(2, func() float64 { return 1 }))
}
