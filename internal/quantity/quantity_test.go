package quantity

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantitiesAreWrittenForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", 1234567: "1,234,567", -12: "-12"} {
		require.Equal(t, want, Grouped(n))
	}
	require.Equal(t, "1.5s", Roughly(1520*time.Millisecond))
	require.Equal(t, "12ms", Roughly(12340*time.Microsecond))
}

func TestCount(t *testing.T) {
	for _, test := range []struct {
		n    int64
		noun string
		want string
	}{
		{0, "answer", "0 answers"},
		{1, "answer", "1 answer"},
		{2, "answer", "2 answers"},
		{-1, "day", "-1 days"},
		{1, "batch", "1 batch"},
		{2, "batch", "2 batches"},
		{2, "address", "2 addresses"},
		{2, "index", "2 indexes"},
		{2, "key", "2 keys"},
		{1, "copy", "1 copy"},
		{2, "copy", "2 copies"},
		{2, "connection test", "2 connection tests"},
		{math.MinInt64, "byte", "-9223372036854775808 bytes"},
	} {
		require.Equal(t, test.want, Count(test.n, test.noun))
	}
	require.Equal(t, "18446744073709551615 bytes", Count(uint64(math.MaxUint64), "byte"))
	require.Equal(t, "was", Verb(1, "was", "were"))
	require.Equal(t, "were", Verb(0, "was", "were"))
}
