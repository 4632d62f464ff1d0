package loadpage

import (
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/histogram"
	"github.com/destkit/destkit/loadgen"
)

// loaded is the result of a closed loop of a second, of one request every 10 ms, each
// with ten records of which nine were acknowledged, that took so many milliseconds.
func loaded(t *testing.T, milliseconds ...int64) *loadgen.Result {
	t.Helper()
	n := int64(len(milliseconds))
	r := &loadgen.Result{
		SchemaVersion: 1, Started: time.Unix(1_800_000_000, 0).UTC(), Seconds: 1, Ended: "duration",
		Load:     loadgen.LoadInfo{Mode: "closed", BatchSize: 10, Run: "r"},
		Requests: n, Records: 10 * n, Acknowledged: 9 * n, RequestsPerSecond: float64(n), RecordsPerSecond: float64(10 * n),
		Errors: n, ErrorsByKind: map[string]int64{"record_refused": n},
		ErrorMessages: []loadgen.ErrorMessage{{Kind: "record_refused", Message: "full", Count: n}},
	}
	const width = 100 * time.Millisecond
	h := histogram.New()
	buckets := map[time.Duration]*hdrhistogram.Histogram{}
	for i, ms := range milliseconds {
		took := time.Duration(ms) * time.Millisecond
		end := time.Duration(i)*10*time.Millisecond + took
		if buckets[end/width] == nil {
			buckets[end/width] = histogram.New()
		}
		histogram.Record(h, int64(took))
		histogram.Record(buckets[end/width], int64(took))
	}
	times := func(h *hdrhistogram.Histogram) loadgen.Times {
		if h.TotalCount() == 0 {
			return loadgen.Times{}
		}
		at := func(q float64) float64 { return histogram.Milliseconds(h.ValueAtQuantile(q)) }
		return loadgen.Times{
			Min: histogram.Milliseconds(h.Min()), Mean: h.Mean() / 1e6, P50: at(50), P75: at(75), P90: at(90), P95: at(95),
			P99: at(99), P999: at(99.9), P9999: at(99.99), Max: histogram.Milliseconds(h.Max()),
		}
	}
	for i := range time.Second / width {
		p := loadgen.Point{At: (time.Duration(i+1) * width).Seconds()}
		if b := buckets[time.Duration(i)]; b != nil {
			of := times(b)
			p.RequestsPerSecond, p.RecordsPerSecond = 10*float64(b.TotalCount()), 100*float64(b.TotalCount())
			p.P50, p.P90, p.P95, p.P99, p.Max, p.ServiceP50, p.ServiceP99 = of.P50, of.P90, of.P95, of.P99, of.Max, of.P50, of.P99
		}
		r.Series = append(r.Series, p)
	}
	r.Latency, r.ServiceTime = times(h), times(h)
	text, err := histogram.Encode(h)
	require.NoError(t, err)
	r.Histograms = loadgen.Histograms{Latency: text, ServiceTime: text}
	return r
}
