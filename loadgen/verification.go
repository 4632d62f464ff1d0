package loadgen

import (
	"fmt"
	"slices"

	"github.com/destkit/destkit/internal/quantity"
)

// Verification is what was read back. Its findings are among the errors of the result.
type Verification struct {
	// Keys were written by the run; Share of them, 0 to 1, was chosen. Chosen counts
	// those of them that were acknowledged.
	Keys   int64   `json:"keys"`
	Share  float64 `json:"share"`
	Chosen int64   `json:"chosen"`
	// Verified keys were read back and compared; the rest is Unverified, with reasons.
	Verified   int64        `json:"verified"`
	Unverified []Unverified `json:"unverified"`
	// What was wrong, in keys.
	Lost      int64 `json:"lost"`
	Wrong     int64 `json:"wrong"`
	Doubled   int64 `json:"doubled"`
	Undeleted int64 `json:"undeleted"`
	// Seconds that it took, after the load.
	Seconds float64 `json:"seconds"`
}

// Unverified says why so many of the chosen keys could not be verified.
type Unverified struct {
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// Findings counts what was wrong.
func (v *Verification) Findings() int64 { return v.Lost + v.Wrong + v.Doubled + v.Undeleted }

// Text is the verification in one line.
func (v *Verification) Text() string {
	return fmt.Sprintf("%s of %s that were chosen (%.3g %% of %s): %s lost, %s wrong, %s doubled, %s not deleted",
		quantity.Grouped(v.Verified), quantity.Counted(v.Chosen, "acknowledged key"), 100*v.Share, quantity.Grouped(v.Keys), quantity.Grouped(v.Lost), quantity.Grouped(v.Wrong), quantity.Grouped(v.Doubled), quantity.Grouped(v.Undeleted))
}

// add joins the verification of another generator.
func (v *Verification) add(o *Verification) {
	if keys := v.Keys + o.Keys; keys > 0 {
		v.Share = (v.Share*float64(v.Keys) + o.Share*float64(o.Keys)) / float64(keys)
	}
	v.Keys, v.Chosen, v.Verified, v.Seconds = v.Keys+o.Keys, v.Chosen+o.Chosen, v.Verified+o.Verified, max(v.Seconds, o.Seconds)
	v.Lost, v.Wrong, v.Doubled, v.Undeleted = v.Lost+o.Lost, v.Wrong+o.Wrong, v.Doubled+o.Doubled, v.Undeleted+o.Undeleted
	for _, u := range o.Unverified {
		at := slices.IndexFunc(v.Unverified, func(have Unverified) bool { return have.Reason == u.Reason })
		if at < 0 {
			v.Unverified = append(v.Unverified, u)
		} else {
			v.Unverified[at].Count += u.Count
		}
	}
}

// Missed counts the chosen keys that could not be verified.
func (v *Verification) Missed() (n int64) {
	for _, u := range v.Unverified {
		n += u.Count
	}
	return n
}

// verification is what was read back, or nothing.
func (r *Result) verification() Verification {
	if r.Verification == nil {
		return Verification{}
	}
	return *r.Verification
}
