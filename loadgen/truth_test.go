package loadgen

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/histogram"
)

// TestRefusedRecordsAreNoThroughput: the rate of records is that of acknowledged ones, in the
// result, its series and its limits.
func TestRefusedRecordsAreNoThroughput(t *testing.T) {
	url := simulator(t, destsim.Config{})
	arm(t, url, `{"kind":"record_failure","message":"full","when":{"method":"sync_batch"},"records":4}`)
	r, err := Run(context.Background(), against(url))
	require.NoError(t, err)
	require.EqualValues(t, 20, r.Acknowledged, "one of five")
	require.InEpsilon(t, r.RecordsPerSecond/5, r.AcknowledgedPerSecond, 1e-6)
	for _, p := range r.Series {
		require.InDelta(t, p.RecordsPerSecond/5, p.AcknowledgedPerSecond, 1e-6)
	}
	for _, c := range []struct {
		metric string
		got    float64
	}{{"records-rate", r.AcknowledgedPerSecond}, {"sent-rate", r.RecordsPerSecond}} {
		limit, err := ParseThreshold(c.metric + "<1")
		require.NoError(t, err)
		limit.Check(r)
		require.InEpsilon(t, c.got, limit.Got, 1e-9, c.metric)
	}
}

// TestATryCountsWhatItCompleted: requests that are answered after a try belong to no rate, and
// a queue that grows shows before the rate is missed.
func TestATryCountsWhatItCompleted(t *testing.T) {
	const seconds = 5
	try := func(rate float64, latency func(at float64) float64) (string, bool) {
		m := newMeasure(0, seconds*time.Second)
		m.stopped, m.asked = seconds*int64(time.Second), func(int64) float64 { return rate }
		for i := range int(rate * seconds) {
			at := float64(i) / rate
			m.add(&sample{intended: int64(at * 1e9), start: int64(at * 1e9), end: int64((at + latency(at)) * 1e9), records: 1, good: 1})
		}
		m.finish(m.stopped)
		return (&prober{}).why(m, rate)
	}
	why, refused := try(1000, func(float64) float64 { return 0.02 })
	require.Empty(t, why)
	require.False(t, refused)
	why, _ = try(1000, func(float64) float64 { return 0.4 })
	require.Empty(t, why, "a long latency that stays is no missed rate")
	why, _ = try(1000, func(at float64) float64 { return 0.02 + 0.05*at })
	require.Contains(t, why, "the rate was not reached", "a target with 95 % of the rate")
	why, _ = try(1000, func(at float64) float64 { return 0.02 + 0.008*at })
	require.Contains(t, why, "the latency rose through the try")
}

// TestPercentilesTakeTheUpperRank: two slow requests of 1,500 are the last thousandth.
func TestPercentilesTakeTheUpperRank(t *testing.T) {
	h := histogram.New()
	for i := range 1500 {
		require.NoError(t, h.RecordValue(map[bool]int64{false: 1e6, true: 5e8}[i < 2]))
	}
	require.InEpsilon(t, 500, times(h).P999, 0.01)
	require.InEpsilon(t, 1, times(h).P99, 0.01)
}

// runLike is a result of a minute with so much latency, whose intervals vary by chance.
func runLike(random *rand.Rand, p50, noise float64) *Result {
	r := &Result{SchemaVersion: schemaVersion, Seconds: 60}
	r.Load.Mode = "closed"
	mean := func(of func(Point) float64) float64 {
		sum := 0.0
		for _, p := range r.Series {
			sum += of(p) / float64(len(r.Series))
		}
		return sum
	}
	near := func(v, by float64) float64 { return v * (1 + by*random.NormFloat64()) }
	for i := range 60 {
		p := Point{At: float64(i + 1), RequestsPerSecond: near(1000/p50, noise), P50: near(p50, noise), P90: near(2*p50, 2*noise), P99: near(5*p50, 5*noise), Max: 50 * p50 * random.Float64()}
		p.RecordsPerSecond, p.AcknowledgedPerSecond, p.ServiceP50, p.ServiceP99 = p.RequestsPerSecond, p.RequestsPerSecond, p.P50, p.P99
		r.Series = append(r.Series, p)
	}
	rate := mean(func(p Point) float64 { return p.RequestsPerSecond })
	r.RequestsPerSecond, r.RecordsPerSecond, r.AcknowledgedPerSecond = rate, rate, rate
	r.Latency = Times{Mean: mean(func(p Point) float64 { return p.P50 }), P50: mean(func(p Point) float64 { return p.P50 }), P90: mean(func(p Point) float64 { return p.P90 }), P99: mean(func(p Point) float64 { return p.P99 })}
	r.Latency.P999, r.Latency.Max = near(r.Latency.P99*2, 0.5), near(r.Latency.P99*10, 0.5)
	r.ServiceTime = r.Latency
	return r
}

// TestComparisonsOfEqualRuns: two runs of one build differ in at most one of fifty
// comparisons, and a regression of 20 % in all.
func TestComparisonsOfEqualRuns(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	failed := 0
	for range 200 {
		noise := 0.02 + 0.08*random.Float64()
		before := runLike(random, 10, noise)
		equal := Compare(before, runLike(random, 10, noise), 0.05)
		slower := Compare(before, runLike(random, 12, noise), 0.05)
		require.Contains(t, slower.WorseText(), "latency p50 +")
		before.Requests, before.Generator = 1000, Generator{CPUs: 2, MachineCPUs: 1.8, CPUSeconds: 1}
		all := []*Comparison{equal}
		for _, x := range [][2]float64{{12.3, 800}, {10, 1500}} { // a machine slower by a quarter, and faster by a third
			other := runLike(random, x[0], noise)
			other.Requests, other.Generator = int64(x[1]), before.Generator
			all = append(all, Compare(before, other, 0.05))
			require.True(t, all[len(all)-1].Worse || len(all[len(all)-1].NotComparable()) > 0, x)
		}
		for _, c := range all {
			if c.Worse {
				failed++
			}
		}
	}
	require.LessOrEqual(t, failed, 12, "one of fifty")
}

// TestASampleHasOtherKeys: another seed verifies other keys.
func TestASampleHasOtherKeys(t *testing.T) {
	both := 0
	first, second := newAcks(0.1, 1), newAcks(0.1, 2)
	for key := range int64(10_000) {
		if first.chosen(key, first.below.Load()) && second.chosen(key, second.below.Load()) {
			both++
		}
	}
	require.InDelta(t, 100, both, 60, "of a tenth of a tenth")
	v := &Verification{Keys: 100_000, Verified: 1035, Chosen: 1035}
	require.Contains(t, v.Text(), "0 of 1,035 lost: less than 0.29 % of all at 95 %")
	v.Lost = 1
	require.NotContains(t, v.Text(), "at 95 %")
}
