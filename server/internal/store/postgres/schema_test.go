package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Clocks differ, and how much is told when it matters.
func TestSkewedClocks(t *testing.T) {
	var told []time.Duration
	p := &Schema{skewed: func(ahead time.Duration) { told = append(told, ahead) }}
	at := func(ahead, took time.Duration) { p.compare(time.Now().Add(ahead-took/2).UnixMicro(), took) }
	at(time.Second, 3*time.Second)
	require.Empty(t, told, "not known that well")
	at(-time.Hour, 0)
	at(-time.Hour, time.Minute)
	require.Len(t, told, 1)
	require.InDelta(t, -time.Hour, told[0], float64(time.Second))
	at(0, 0)
	require.Len(t, told, 2)
	require.InDelta(t, 0, told[1], float64(time.Second))
}
