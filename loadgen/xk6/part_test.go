package xk6

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/loadgen"
)

// keyed makes the options of one instance of a script.
func keyed(t *testing.T, m *Module, segment string, given map[string]any) loadgen.Options {
	t.Helper()
	given["object"], given["write"] = "order", true
	c, err := newConfig("https://h/", given)
	require.NoError(t, err)
	s, err := m.share(c, given)
	require.NoError(t, err)
	o, err := s.forPart(segment)
	require.NoError(t, err)
	return o
}

// thirds are the segments of three instances.
var thirds = []string{"0:1/3", "1/3:2/3", "2/3:1"}

func TestInstancesDivideTheKeys(t *testing.T) {
	for name, given := range map[string]map[string]any{
		"one run":   {"run": "night"},
		"own runs":  {},
		"key range": {"keyRange": []any{int64(1000), int64(1010)}, "run": "night"},
	} {
		runs := map[string]bool{}
		last := int64(-1)
		for _, segment := range thirds {
			o := keyed(t, New(), segment, given)
			require.False(t, runs[o.RunID], "%s: the run %s of two instances", name, o.RunID)
			runs[o.RunID] = true
			require.Greater(t, o.KeyFrom, last, name)
			require.GreaterOrEqual(t, o.KeyTo, o.KeyFrom, name)
			last = o.KeyTo
		}
		if name == "key range" {
			require.EqualValues(t, 1010, last, "the whole range is used")
		}
	}
}

// A process with several destinations, such as one for each VU, divides its keys
// once more.
func TestDestinationsOfAProcessDivideTheKeys(t *testing.T) {
	m := New()
	runs, froms := map[string]bool{}, map[int64]bool{}
	for i := range 300 {
		o := keyed(t, m, "1/3:2/3", map[string]any{"run": "night", "seed": int64(i + 1)})
		require.False(t, runs[o.RunID] || froms[o.KeyFrom], "%s %d", o.RunID, o.KeyFrom)
		runs[o.RunID], froms[o.KeyFrom] = true, true
		require.GreaterOrEqual(t, o.KeyFrom, int64(2_333_000_000_000))
		require.Less(t, o.KeyTo, int64(2_666_000_000_000))
	}
}

func TestMaxRecordsAreDivided(t *testing.T) {
	sum := int64(0)
	for _, segment := range thirds {
		sum += keyed(t, New(), segment, map[string]any{"maxRecords": int64(100)}).MaxRecords
	}
	require.EqualValues(t, 100, sum)
}

func TestSegmentsThatLeaveNothing(t *testing.T) {
	for _, c := range []struct {
		segment string
		given   map[string]any
		want    string
	}{
		{"0:1/2000", nil, "smaller than a thousandth"},
		{"1/2:1/3", nil, "is not FROM:TO"},
		{"half", nil, "is not FROM:TO"},
		{"0:1/3", map[string]any{"keyRange": []any{int64(10), int64(11)}}, "keyRange: 10 to 11 are too few"},
		{"0:1/3", map[string]any{"maxRecords": int64(2)}, "maxRecords leaves nothing"},
	} {
		given := map[string]any{"object": "order", "write": true}
		for name, value := range c.given {
			given[name] = value
		}
		config, err := newConfig("https://h/", given)
		require.NoError(t, err)
		s, err := New().share(config, given)
		require.NoError(t, err)
		_, err = s.forPart(c.segment)
		require.ErrorContains(t, err, c.want)
	}
}
