package wire

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhoIsAloneDoesNotWait: where one reply is read after the other, nothing gives
// memory back while the reader waits for it.
func TestWhoIsAloneDoesNotWait(t *testing.T) {
	for alone, least := range map[bool]time.Duration{true: 0, false: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			spared := 0
			b := &budget{max: 1 << 20, used: 1 << 20, alone: alone, spare: func() { spared++ }}
			began := time.Now()
			require.False(t, b.await(freeBytes+1))
			require.Positive(t, spared)
			took := time.Since(began)
			require.GreaterOrEqual(t, took, least)
			require.True(t, !alone || took < time.Second, "%s", took)
		})
	}
}
