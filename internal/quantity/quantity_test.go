package quantity

import (
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
