package loadgen

import (
	"math"
	"math/rand/v2"
)

// spread is by how much a figure of two equal loads may differ by chance, as a share: three
// standard errors of the difference, by a bootstrap over blocks of the series. A block keeps
// what belongs together, such as a stall over several intervals.
func spread(before, after *Result, figure func(Point) float64) float64 {
	a, b := standardError(before.Series, figure), standardError(after.Series, figure)
	return 3 * math.Sqrt(a*a+b*b)
}

// resamples of a series; the error of the error is a twentieth.
const resamples = 200

// standardError of the mean of a figure over a series, as a share of the mean; 0 where
// fewer than four intervals have one.
func standardError(series []Point, figure func(Point) float64) float64 {
	var all []float64
	for _, p := range series {
		if v := figure(p); v > 0 {
			all = append(all, v)
		}
	}
	n := len(all)
	if n < 4 {
		return 0
	}
	block := int(math.Sqrt(float64(n)))
	random := rand.New(rand.NewPCG(1, uint64(n)))
	sum, squares := 0.0, 0.0
	for range resamples {
		mean := 0.0
		for taken := 0; taken < n; {
			from := random.IntN(n - block + 1)
			for i := from; i < from+block && taken < n; i++ {
				mean += all[i] / float64(n)
				taken++
			}
		}
		sum += mean
		squares += mean * mean
	}
	mean := sum / resamples
	return math.Sqrt(max(squares/resamples-mean*mean, 0)) / mean
}
