package loadgen

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/loadgen/internal/wire"
)

// Threshold is a limit that a result must not break: Metric, Op, Value.
type Threshold struct {
	// Text is as it was given, such as p99>500ms.
	Text   string  `json:"text"`
	Metric string  `json:"metric"`
	Op     string  `json:"op"`    // of a failure: > >= < <=
	Value  float64 `json:"value"` // milliseconds, a number, or a share from 0 to 1
	Share  bool    `json:"share"` // Value is a share
	// Got is the value of the result, and Failed whether it broke the limit.
	Got    float64 `json:"got"`
	Failed bool    `json:"failed"`
	// Unmeasured says that no request was answered with results, so that there is
	// no time to compare, or that no key was read back; that is a failure, too.
	Unmeasured bool `json:"unmeasured,omitempty"`
}

// latencies by the name of their metric.
var latencies = map[string]func(Times) float64{
	"min": func(t Times) float64 { return t.Min }, "mean": func(t Times) float64 { return t.Mean },
	"p50": func(t Times) float64 { return t.P50 }, "p75": func(t Times) float64 { return t.P75 },
	"p90": func(t Times) float64 { return t.P90 }, "p95": func(t Times) float64 { return t.P95 },
	"p99": func(t Times) float64 { return t.P99 }, "p99.9": func(t Times) float64 { return t.P999 },
	"p99.99": func(t Times) float64 { return t.P9999 }, "max": func(t Times) float64 { return t.Max },
}

// counts are the metrics that are numbers; of those in shares of a share is the
// whole.
var counts = map[string]func(*Result) float64{
	"errors":          func(r *Result) float64 { return float64(r.Errors) },
	"rate":            func(r *Result) float64 { return r.RequestsPerSecond },
	"records-rate":    func(r *Result) float64 { return r.AcknowledgedPerSecond },
	"sent-rate":       func(r *Result) float64 { return r.RecordsPerSecond },
	"requests":        func(r *Result) float64 { return float64(r.Requests) },
	"records":         func(r *Result) float64 { return float64(r.Records) },
	"unsent":          func(r *Result) float64 { return float64(r.Generator.Unsent) },
	"lost":            func(r *Result) float64 { return float64(r.verification().Lost) },
	"wrong":           func(r *Result) float64 { return float64(r.verification().Wrong) },
	"doubled":         func(r *Result) float64 { return float64(r.verification().Doubled) },
	"undeleted":       func(r *Result) float64 { return float64(r.verification().Undeleted) },
	"runs-failed":     func(r *Result) float64 { return float64(r.startedRuns().Failed) },
	"runs-unfinished": func(r *Result) float64 { return float64(r.startedRuns().Unfinished) },
	"unverified":      func(r *Result) float64 { v := r.verification(); return float64(v.Chosen - v.Verified) },
}

// othersWords are how other tools name the metrics.
var othersWords = map[string]string{
	"avg": "mean", "average": "mean", "med": "p50", "median": "p50", "p(50)": "p50", "p(90)": "p90", "p(95)": "p95", "p(99)": "p99", "p(99.9)": "p99.9",
}

// startedRuns are what a load on a service has started, or nothing.
func (r *Result) startedRuns() RunFigures {
	if r.Service == nil || r.Service.Runs == nil {
		return RunFigures{}
	}
	return *r.Service.Runs
}

// NeedsRuns reports whether the limit is about runs that a load on a service starts.
func (t *Threshold) NeedsRuns() bool {
	return t.Metric == "runs-failed" || t.Metric == "runs-unfinished"
}

// verifying are the metrics that need a verification.
var verifying = []string{"lost", "wrong", "doubled", "undeleted", "unverified"}

// NeedsVerification reports whether the limit is about the read-back after a load.
func (t *Threshold) NeedsVerification() bool { return slices.Contains(verifying, t.Metric) }

// shares are the metrics that can be given in percent.
var shares = map[string]func(*Result) float64{
	"errors": (*Result).LostShare,
	// of the keys that were read back
	"lost": verifiedShare("lost"), "wrong": verifiedShare("wrong"), "doubled": verifiedShare("doubled"), "undeleted": verifiedShare("undeleted"),
	"unverified": func(r *Result) float64 { v := r.verification(); return shareOf(v.Chosen-v.Verified, v.Chosen) },
	// of the rate that was asked for
	"rate": func(r *Result) float64 {
		if r.Load.Rate == 0 {
			return 1
		}
		return r.RequestsPerSecond / r.Load.Rate
	},
	"unsent": func(r *Result) float64 { return shareOf(r.Generator.Unsent, r.Requests+r.Generator.Unsent) },
}

// verifiedShare is a count of a verification as a share of the verified keys.
func verifiedShare(metric string) func(*Result) float64 {
	return func(r *Result) float64 {
		v := r.verification()
		return shareOf(map[string]int64{"lost": v.Lost, "wrong": v.Wrong, "doubled": v.Doubled, "undeleted": v.Undeleted}[metric], v.Verified)
	}
}

// metrics lists what thresholds can be about.
func metrics() []string {
	var list []string
	for name := range latencies {
		list = append(list, name, "service-"+name)
	}
	list = slices.AppendSeq(list, maps.Keys(counts))
	slices.Sort(list)
	return list
}

// ParseThreshold reads a limit whose breach is a failure: p99>500ms, errors>0,
// errors>1%, rate<1000, rate<99%, service-p95>=20ms.
func ParseThreshold(text string) (Threshold, error) {
	t := Threshold{Text: text}
	at := strings.IndexAny(text, "<>")
	if at < 1 {
		return t, wire.Usagef("%q is not METRIC>VALUE or METRIC<VALUE, such as 'p99>500ms'", text)
	}
	t.Metric, t.Op = strings.ToLower(strings.TrimSpace(text[:at])), text[at:at+1]
	rest := text[at+1:]
	if strings.HasPrefix(rest, "=") {
		t.Op, rest = t.Op+"=", rest[1:]
	}
	return t, t.parse(strings.TrimSpace(rest))
}

// ParseGoals reads goals that must hold, separated by commas: p99=200ms,errors=0.1%.
// They come back as the failures that they exclude.
func ParseGoals(text string) ([]Threshold, error) {
	var all []Threshold
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, wire.Usagef("the goal %q is not METRIC=VALUE, such as p99=200ms", part)
		}
		t := Threshold{Text: strings.TrimSpace(part), Metric: strings.ToLower(strings.TrimSpace(name)), Op: ">"}
		if strings.HasSuffix(t.Metric, "rate") {
			return nil, wire.Usagef("the goal %q: the rate is what is looked for", part)
		}
		if err := t.parse(strings.TrimSpace(value)); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func (t *Threshold) parse(value string) error {
	_, isTime := latencies[strings.TrimPrefix(t.Metric, "service-")]
	_, isCount := counts[t.Metric]
	switch {
	case isTime:
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return wire.Usagef("%q: %s is a time, such as 200ms", t.Text, t.Metric)
		}
		t.Value = float64(d) / 1e6
		return nil
	case !isCount && othersWords[t.Metric] != "":
		return wire.Usagef("%q: write %s for %s", t.Text, othersWords[t.Metric], t.Metric)
	case !isCount:
		return wire.Usagef("%q: there is no metric %q; there are %s", t.Text, t.Metric, strings.Join(metrics(), ", "))
	}
	number, percent := strings.CutSuffix(value, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(v >= 0) || v > 1e15 {
		return wire.Usagef("%q: %q is no number", t.Text, value)
	}
	t.Value = v
	if percent {
		if _, ok := shares[t.Metric]; !ok {
			return wire.Usagef("%q: %s cannot be given in percent", t.Text, t.Metric)
		}
		t.Value, t.Share = v/100, true
	}
	return nil
}

// Check fills Got and Failed.
func (t *Threshold) Check(r *Result) {
	// Unverified keys must not pass for verified ones.
	if t.NeedsVerification() && t.Metric != "unverified" && r.verification().Verified == 0 {
		t.Failed, t.Unmeasured = true, true
		return
	}
	switch {
	case t.Share:
		t.Got = shares[t.Metric](r)
	case counts[t.Metric] != nil:
		t.Got = counts[t.Metric](r)
	default:
		times, name := r.Latency, t.Metric
		if plain, ok := strings.CutPrefix(name, "service-"); ok {
			times, name = r.ServiceTime, plain
		}
		t.Got = latencies[name](times)
		// A target that answers nothing must not pass for a fast one.
		if !r.timed() {
			t.Failed, t.Unmeasured = true, true
			return
		}
	}
	switch t.Op {
	case ">":
		t.Failed = t.Got > t.Value
	case ">=":
		t.Failed = t.Got >= t.Value
	case "<":
		t.Failed = t.Got < t.Value
	case "<=":
		t.Failed = t.Got <= t.Value
	}
}

// Reading is the checked figure, for display next to the limit.
func (t Threshold) Reading() string {
	unit := ""
	got := t.Got
	if t.Share {
		unit, got = "%", got*100
	} else if counts[t.Metric] == nil {
		unit = " ms"
	}
	return fmt.Sprintf("%s %.6g%s (limit: %s)", t.Metric, got, unit, t.Text)
}

// String describes the outcome.
func (t Threshold) String() string {
	word := "ok"
	if t.Failed {
		word = "FAILED"
	}
	if t.Unmeasured && t.NeedsVerification() {
		return fmt.Sprintf("%s: %s cannot be told, no acknowledged key was read back", word, t.Text)
	}
	if t.Unmeasured {
		return fmt.Sprintf("%s: %s cannot be told, no request was answered with results", word, t.Text)
	}
	return word + ": " + t.Reading()
}
