package journal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestRing: within its bounds the ring keeps the newest entries.
func TestRing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		most, room := rapid.IntRange(1, 6).Draw(rt, "most"), rapid.IntRange(10, 40).Draw(rt, "room")
		r := newRing(most, room, func(s *string) int { return len(*s) })
		var model []string
		first, last := int64(1), int64(0)
		for range rapid.IntRange(0, 40).Draw(rt, "steps") {
			if rapid.IntRange(0, 9).Draw(rt, "step") == 0 {
				r.clear()
				model, first = nil, last+1
				continue
			}
			entry := strings.Repeat("x", rapid.IntRange(0, 15).Draw(rt, "size"))
			r.add(entry, func(_ *string, number int64) { last++; require.Equal(rt, last, number) })
			model = append(model, entry)
			size := 0
			for _, kept := range model {
				size += len(kept)
			}
			for len(model) > most || size > room && len(model) > 1 {
				size -= len(model[0])
				model, first = model[1:], first+1
			}
		}
		after := rapid.Int64Range(0, last+2).Draw(rt, "after")
		limit := rapid.IntRange(1, 8).Draw(rt, "limit")
		list, next, all, dropped := r.page(after, limit, func(*string) bool { return true })
		want := append([]string{}, model[min(len(model), int(max(0, after+1-first))):]...)
		if len(want) > limit {
			require.Equal(rt, max(first, after+1)+int64(limit)-1, next)
		} else {
			require.Zero(rt, next)
		}
		require.Equal(rt, want[:min(len(want), limit)], list)
		require.EqualValues(rt, len(model), all-dropped)
	})
}
