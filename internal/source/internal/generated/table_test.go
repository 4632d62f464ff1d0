package generated

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestSchedulesEnd: a schedule without an end has one.
func TestSchedulesEnd(t *testing.T) {
	h := Changes{every: time.Second, inserts: maxChanges, updates: maxChanges, deletes: maxChanges}.after(maxRows, time.Now())
	require.EqualValues(t, maxSteps, h.steps)
	require.EqualValues(t, maxRows, h.total)
}

// TestNextByDigits: counting by digits is sorting the texts.
func TestNextByDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 3000).Draw(t, "limit")
		var want, got []string
		for n := range limit {
			want = append(want, fmt.Sprint(n+1))
		}
		slices.Sort(want)
		n := int64(0)
		for range limit {
			n = nextByDigits(n, limit)
			got = append(got, fmt.Sprint(n))
		}
		require.Equal(t, want, got)
	})
}
