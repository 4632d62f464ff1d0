package executor

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/sync/destination"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestRetryAfterIsCapped(t *testing.T) {
	b := Backoff{}.withDefaults()
	for _, c := range []struct {
		text string
		want time.Duration
		ok   bool
	}{
		{"", 0, false}, {"soon", 0, false}, {"-5", 0, false}, {"1.5", 0, false},
		{"0", 0, true}, {"7", 7 * time.Second, true}, {" 7 ", 7 * time.Second, true},
		{"1000000000", time.Minute, true}, {"18446744073709551615", time.Minute, true}, {"99999999999999999999999", 0, false},
		{epoch.Add(9 * time.Second).Format("Mon, 02 Jan 2006 15:04:05 GMT"), 9 * time.Second, true},
		{epoch.Add(-time.Hour).Format("Mon, 02 Jan 2006 15:04:05 GMT"), 0, true},
		{epoch.Add(100 * time.Hour).Format("Mon, 02 Jan 2006 15:04:05 GMT"), time.Minute, true},
	} {
		got, ok := b.retryAfter(&destination.CallError{RetryAfter: c.text}, epoch)
		require.Equal(t, c.ok, ok, c.text)
		require.Equal(t, c.want, got, c.text)
	}
	_, ok := b.retryAfter(errors.New("other"), epoch)
	require.False(t, ok)
}

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
