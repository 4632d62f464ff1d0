// Package histogram keeps times in histograms of one range and precision, and writes
// them as text that other programs read. It leaves the meaning of a time, and which
// are counted, to the caller.
package histogram

import (
	"encoding/base64"
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the longest time that histograms hold; longer ones count as this.
const longest = int64(time.Hour)

// Histogram is one of them.
type Histogram = hdrhistogram.Histogram

// New makes an empty one.
func New() *Histogram { return hdrhistogram.New(1, longest, 3) }

// Record counts a time in nanoseconds.
func Record(h *Histogram, ns int64) {
	_ = h.RecordValue(min(max(ns, 0), longest)) // always within its range
}

// Milliseconds with three digits after the point.
func Milliseconds(ns int64) float64 { return math.Round(float64(ns)/1e3) / 1e3 }

// At is the time, in nanoseconds, that the given percentage of all times do not exceed: the
// upper one where the rank falls between two.
func At(h *Histogram, percent float64) int64 {
	n := float64(h.TotalCount())
	if n == 0 {
		return 0
	}
	rank := math.Ceil(percent/100*n - 1e-9)
	return h.ValueAtQuantile(100 * rank / n)
}

// Encode writes a histogram as text.
func Encode(h *Histogram) (string, error) {
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encode histogram: %w", err)
	}
	return string(text), nil
}

// Decode reads one again.
func Decode(text string) (*Histogram, error) {
	if _, err := base64.StdEncoding.DecodeString(text); err != nil || text == "" {
		return nil, fmt.Errorf("decode histogram: it is not base64")
	}
	h, err := hdrhistogram.Decode([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("decode histogram: %w", err)
	}
	return h, nil
}
