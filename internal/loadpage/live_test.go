package loadpage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/loadgen"
)

// TestLiveCharts draws what there is, and says what there is not.
func TestLive(t *testing.T) {
	load := loadgen.LoadInfo{Mode: "open", Rate: 100, BatchSize: 10, Stages: []loadgen.Stage{{Duration: time.Second, From: 100, To: 100}}}
	require.Empty(t, Live(load, nil))
	points := []loadgen.Point{{At: 1, InFlight: 2}, {At: 2, RequestsPerSecond: 90, RecordsPerSecond: 900, Asked: 100, InFlight: 1}}
	charts := Live(load, points)
	require.Len(t, charts, 4)
	require.Empty(t, charts[1].SVG)
	require.Contains(t, charts[1].Why, "None so far")
	require.Empty(t, charts[2].SVG)
	points = append(points, loadgen.Point{At: 3, RequestsPerSecond: 90, RecordsPerSecond: 900, Asked: 100, Errors: 4, P50: 1, P90: 2, P95: 3, P99: 4, Max: 5, ServiceP50: 1, ServiceP99: 3})
	for _, c := range Live(load, points) {
		require.Contains(t, string(c.SVG), `<svg class="small"`, c.Title)
		require.NotContains(t, string(c.SVG), "style=", c.Title)
		require.NotContains(t, string(c.SVG), `class="hit"`, c.Title)
		require.NotEmpty(t, c.Legend, c.Title)
	}
	// Older points were left out: the axis begins where the rest does.
	late := still(timesOver(nil, "", curve{x: []float64{500, 501}, y: []float64{1, 2}}))
	from, _, _ := late.extent()
	require.EqualValues(t, 500, from)
}
