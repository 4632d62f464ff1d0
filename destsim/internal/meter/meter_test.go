package meter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantiles(t *testing.T) {
	one := method{sums: sums{statuses: map[int]int64{}}}
	for ms := range 1000 {
		one.calls++
		one.observe(time.Duration(ms+1) * time.Millisecond)
	}
	for q, want := range map[float64]float64{.5: 500, .9: 900, .99: 990, .999: 999, 1: 1000} {
		got := float64(one.quantile(q)) / float64(time.Millisecond)
		require.GreaterOrEqual(t, got, want)
		require.LessOrEqual(t, got, want*1.0625)
	}
	require.Zero(t, (&sums{}).quantile(.5))
	// Buckets neither overlap nor leave a hole.
	for _, d := range []time.Duration{0, 1, 15, 16, 17, 31, 32, 1000, 12345678, time.Hour, 1 << 61} {
		bucket := fineBucket(d)
		require.GreaterOrEqual(t, bucketEnd(bucket), d)
		require.Equal(t, bucket, fineBucket(bucketEnd(bucket)))
		require.Equal(t, bucket+1, fineBucket(bucketEnd(bucket)+1))
	}
}
