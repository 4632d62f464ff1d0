package destsim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Delay is a distribution of durations, all in milliseconds.
type Delay struct {
	// Distribution is fixed (MS), uniform (MinMS to MaxMS), normal (MeanMS,
	// StddevMS), exponential (MeanMS) or pareto (ScaleMS, the smallest value,
	// and Shape, the smaller the heavier the tail). "" is fixed.
	Distribution string  `json:"distribution,omitempty"`
	MS           float64 `json:"ms,omitempty"`
	MinMS        float64 `json:"min_ms,omitempty"`
	MaxMS        float64 `json:"max_ms,omitempty"`
	MeanMS       float64 `json:"mean_ms,omitempty"`
	StddevMS     float64 `json:"stddev_ms,omitempty"`
	ScaleMS      float64 `json:"scale_ms,omitempty"`
	Shape        float64 `json:"shape,omitempty"`
	CapMS        float64 `json:"cap_ms,omitempty"` // the longest, 60000 when 0
}

// distributions lists the parameters that each distribution takes.
var distributions = map[string][]string{
	"fixed": {"ms"}, "uniform": {"min_ms", "max_ms"}, "normal": {"mean_ms", "stddev_ms"},
	"exponential": {"mean_ms"}, "pareto": {"scale_ms", "shape"},
}

func (d *Delay) check() error {
	name := cmp.Or(d.Distribution, "fixed")
	takes, known := distributions[name]
	if !known {
		return fmt.Errorf("delay.distribution: unknown distribution %q%s", clip(name),
			didYouMean(name, []string{"fixed", "uniform", "normal", "exponential", "pareto"}))
	}
	if err := onlyMembers(d, "delay."+name, append(takes, "distribution", "cap_ms")); err != nil {
		return err
	}
	for _, v := range []float64{d.MS, d.MinMS, d.MaxMS, d.MeanMS, d.StddevMS, d.ScaleMS, d.Shape, d.CapMS} {
		if !(v >= 0 && v <= 3600000) {
			return errors.New("delay: every number must be between 0 and 3600000")
		}
	}
	switch {
	case name == "uniform" && d.MaxMS < d.MinMS:
		return errors.New("delay.max_ms: is less than min_ms")
	case name == "pareto" && (d.ScaleMS == 0 || d.Shape == 0):
		return errors.New("delay.scale_ms and delay.shape: must be more than 0")
	}
	return nil
}

// draw gives one value in milliseconds, from 0 to the cap.
func (d *Delay) draw(chance *rand.Rand) float64 {
	var ms float64
	switch d.Distribution {
	case "", "fixed":
		ms = d.MS
	case "uniform":
		ms = d.MinMS + chance.Float64()*(d.MaxMS-d.MinMS)
	case "normal":
		ms = d.MeanMS + chance.NormFloat64()*d.StddevMS
	case "exponential":
		ms = chance.ExpFloat64() * d.MeanMS
	case "pareto":
		ms = d.ScaleMS / math.Pow(1-chance.Float64(), 1/d.Shape)
	}
	longest := d.CapMS
	if longest == 0 {
		longest = 60000
	}
	return min(max(ms, 0), longest)
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
