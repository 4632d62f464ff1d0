package endpoint

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at are calls that come so many milliseconds after one another's start, and last so long; the
// answers that name a limit carry it.
func at(lasting int, limits map[int]string, moments ...int) []*Call {
	began := time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC)
	var out []*Call
	for i, ms := range moments {
		c := &Call{Number: i + 1, Came: began.Add(time.Duration(ms) * time.Millisecond), Done: true, header: http.Header{}}
		c.Ended = c.Came.Add(time.Duration(lasting) * time.Millisecond)
		if limit, ok := limits[i]; ok {
			c.header[RateLimitHeader] = []string{limit}
		}
		out = append(out, c)
	}
	return out
}

func TestDensest(t *testing.T) {
	for name, c := range map[string]struct {
		moments []int
		weight  int
		want    int
	}{
		"evenly":               {[]int{0, 200, 400, 600, 800, 1000}, 1, 4},
		"the end is outside":   {[]int{0, 800}, 1, 1},
		"just inside":          {[]int{0, 799}, 1, 2},
		"a burst in the midst": {[]int{0, 900, 901, 902, 903, 2000}, 1, 4},
		"in any order":         {[]int{900, 0, 902, 901}, 1, 3},
		"by records":           {[]int{0, 100, 900}, 5, 10},
		"one call":             {[]int{0}, 7, 7},
	} {
		most, within := Densest(at(1, nil, c.moments...), func(*Call) int { return c.weight }, 800*time.Millisecond)
		require.Equal(t, c.want, most, name)
		require.Len(t, within, c.want/c.weight, name)
	}
}

func TestCrowd(t *testing.T) {
	for name, c := range map[string]struct {
		moments []int
		want    int
	}{
		"one after the other":   {[]int{0, 10, 20}, 1},
		"two at a time":         {[]int{0, 5, 10, 15}, 2},
		"all":                   {[]int{0, 1, 2, 3}, 4},
		"the end meets a start": {[]int{0, 0, 10, 10}, 2},
	} {
		most, which := MostAtOnce(at(10, nil, c.moments...))
		require.Equal(t, c.want, most, name)
		require.Len(t, which, c.want, name)
	}
	open := at(10, nil, 0, 50)
	open[0].Done = false
	most, _ := MostAtOnce(open)
	require.Equal(t, 2, most, "a call that has not ended is under way")
}

func TestSince(t *testing.T) {
	calls := at(10, map[int]string{1: "5", 2: "7"}, 0, 20, 25, 30, 31, 40)
	require.Len(t, Since(calls, "5"), 2, "what came before the answer was there does not count")
	require.Len(t, Since(calls, "7"), 1)
	require.Empty(t, Since(calls, "9"))
}
