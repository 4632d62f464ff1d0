package loadgen

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/destkit/destkit/internal/histogram"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// Merge puts results of several generators together that loaded one target at
// the same time: counts and rates are added, histograms joined. The error
// names those that do not fit.
func Merge(results []*Result) (*Result, error) {
	if len(results) < 2 {
		return nil, wire.Usagef("there must be two results or more to merge")
	}
	first := results[0]
	m := *first
	m.file = ""
	m.Notes = append([]string(nil), first.Notes...)
	m.ErrorsByKind, m.ErrorMessages, m.Keys = map[string]int64{}, nil, nil
	m.Search, m.Cleanup, m.Thresholds, m.WarmUp, m.Declared = nil, nil, nil, nil, first.Declared
	m.Verification, m.CleanCommand, m.ByHand = nil, "", nil
	m.absorb(first)
	from, to := first.Started, first.Started.Add(seconds64(first.Seconds))
	for i, r := range results {
		if len(r.ByHand) > 0 {
			m.Notes = append(m.Notes, named(results, i)+" was paused, or its rate changed, by hand")
		}
	}
	for i, r := range results[1:] {
		if r.Target.Address != first.Target.Address || r.Load.Mode != first.Load.Mode || r.Load.Scenario != first.Load.Scenario || r.Load.BatchSize != first.Load.BatchSize {
			return nil, wire.Usagef("%s is of another target, another mode or another batch size than %s", named(results, i+1), named(results, 0))
		}
		same := slices.IndexFunc(results[:i+1], func(o *Result) bool { return o.Load.Run == r.Load.Run && o.Started.Equal(r.Started) })
		if same >= 0 {
			return nil, wire.Usagef("%s is the same run as %s", named(results, i+1), named(results, same))
		}
		var errL, errS error
		m.Histograms.Latency, m.Latency, errL = joinTimes(m.Histograms.Latency, r.Histograms.Latency)
		m.Histograms.ServiceTime, m.ServiceTime, errS = joinTimes(m.Histograms.ServiceTime, r.Histograms.ServiceTime)
		if errL != nil || errS != nil {
			return nil, wire.Usagef("%s, or %s: its histograms cannot be read", named(results, 0), named(results, i+1))
		}
		end := r.Started.Add(seconds64(r.Seconds))
		if r.Started.After(to) || end.Before(from) {
			return nil, wire.Usagef("%s began at %s and overlaps no other: use --start-at", named(results, i+1), r.Started.Format(time.RFC3339))
		}
		if gap := r.Started.Sub(first.Started).Abs(); gap > time.Second {
			m.Notes = append(m.Notes, fmt.Sprintf("%s began %s apart from %s: the rates add up only where they overlap", named(results, i+1), gap.Round(time.Millisecond), named(results, 0)))
		}
		m.add(r)
		m.absorb(r)
		if r.Started.Before(from) {
			from = r.Started
		}
		if end.After(to) {
			to = end
		}
	}
	m.Started, m.Seconds = from, to.Sub(from).Seconds()
	if err := m.joinReplicas(results); err != nil {
		return nil, err
	}
	if err := m.joinService(results); err != nil {
		return nil, err
	}
	m.Series = mergeSeries(results, from)
	return &m, nil
}

// named is how messages call one of the results: by its file, or by its place from 1.
func named(results []*Result, i int) string {
	if results[i].file != "" {
		return results[i].file
	}
	return fmt.Sprintf("result %d", i+1)
}

func seconds64(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// add sums what can be summed.
func (r *Result) add(o *Result) {
	r.RequestsPerSecond += o.RequestsPerSecond
	r.RecordsPerSecond += o.RecordsPerSecond
	r.AcknowledgedPerSecond += o.AcknowledgedPerSecond
	r.Requests += o.Requests
	r.Records += o.Records
	r.Acknowledged += o.Acknowledged
	r.FailedRequests += o.FailedRequests
	r.Errors += o.Errors
	r.Load.Rate += o.Load.Rate
	r.Load.Connections += o.Load.Connections
	g, og := &r.Generator, o.Generator
	g.Unsent, g.Late, g.Queued, g.Unanswered = g.Unsent+og.Unsent, g.Late+og.Late, g.Queued+og.Queued, g.Unanswered+og.Unanswered
	g.Connections += og.Connections
	g.CPUSeconds, g.CPUs, g.OwnCPUs, g.MachineCPUs = g.CPUSeconds+og.CPUSeconds, g.CPUs+og.CPUs, g.OwnCPUs+og.OwnCPUs, g.MachineCPUs+og.MachineCPUs
	g.Limited = g.Limited || og.Limited
	g.Reasons = append(slices.Clone(g.Reasons), og.Reasons...)
	if o.Ended != r.Ended {
		r.Notes = append(r.Notes, "not all runs ended for the same reason: "+r.Ended+", "+o.Ended)
	}
}

// absorb joins errors and keys.
func (r *Result) absorb(o *Result) {
	for kind, n := range o.ErrorsByKind {
		r.ErrorsByKind[kind] += n
	}
	for _, e := range o.ErrorMessages {
		at := slices.IndexFunc(r.ErrorMessages, func(have ErrorMessage) bool { return have.Kind == e.Kind && have.Message == e.Message })
		if at < 0 {
			r.ErrorMessages = append(r.ErrorMessages, e)
		} else {
			r.ErrorMessages[at].Count += e.Count
		}
	}
	if r.ErrorMessages == nil {
		r.ErrorMessages = []ErrorMessage{}
	}
	r.Keys = append(r.Keys, o.Keys...)
	if o.Verification != nil {
		if r.Verification == nil {
			r.Verification = &Verification{Unverified: []Unverified{}}
		}
		r.Verification.add(o.Verification)
	}
}

// mergeSeries adds the points that fall into the same second. Percentiles cannot
// be added; the worst of them is used for all.
func mergeSeries(results []*Result, from time.Time) []Point {
	width := 0.0
	for _, r := range results {
		if len(r.Series) > 0 {
			width = max(width, r.Series[0].At)
		}
	}
	points := []Point{}
	if width <= 0 {
		return points
	}
	for _, r := range results {
		shift := r.Started.Sub(from).Seconds()
		before := 0.0
		for _, p := range r.Series {
			index := max(int(math.Ceil((shift+p.At)/width-1e-6))-1, 0)
			for len(points) <= index {
				points = append(points, Point{At: float64(len(points)+1) * width})
			}
			share := (p.At - before) / width
			before = p.At
			q := &points[index]
			q.RequestsPerSecond += p.RequestsPerSecond * share
			q.RecordsPerSecond += p.RecordsPerSecond * share
			q.AcknowledgedPerSecond += p.AcknowledgedPerSecond * share
			q.Asked += p.Asked * share
			q.Errors += p.Errors
			q.InFlight += p.InFlight
			q.P50, q.P90, q.P95 = max(q.P50, p.P50), max(q.P90, p.P90), max(q.P95, p.P95)
			q.P99, q.Max = max(q.P99, p.P99), max(q.Max, p.Max)
			q.ServiceP50, q.ServiceP99 = max(q.ServiceP50, p.ServiceP50), max(q.ServiceP99, p.ServiceP99)
		}
	}
	return points
}

// joinReplicas puts the figures of each process together, by its address. Two
// processes behind one address are distinguished by their order.
func (r *Result) joinReplicas(results []*Result) error {
	r.Replicas, r.Target.Replicas = nil, nil
	if !slices.ContainsFunc(results, func(o *Result) bool { return len(o.Replicas) > 0 }) {
		return nil
	}
	for i, o := range results {
		if err := r.joinProcesses(o.processes()); err != nil {
			return wire.Usagef("%s: %v", named(results, i), err)
		}
	}
	for _, f := range r.Replicas[1:] {
		r.Target.Replicas = append(r.Target.Replicas, f.Address)
	}
	return nil
}

// processes are the figures by process, also where there was one.
func (r *Result) processes() []ReplicaFigures {
	if len(r.Replicas) > 0 {
		return r.Replicas
	}
	return []ReplicaFigures{{
		Address: r.Target.Address, Connections: r.Load.Connections, Requests: r.Requests, RequestsPerSecond: r.RequestsPerSecond, Records: r.Records,
		Acknowledged: r.Acknowledged, FailedRequests: r.FailedRequests, Latency: r.Latency, Histogram: r.Histograms.Latency,
	}}
}

func (r *Result) joinProcesses(figures []ReplicaFigures) error {
	taken := map[int]bool{}
	for _, f := range figures {
		at := 0
		for at < len(r.Replicas) && (taken[at] || r.Replicas[at].Address != f.Address) {
			at++
		}
		taken[at] = true
		if at == len(r.Replicas) {
			r.Replicas = append(r.Replicas, f)
			continue
		}
		have := &r.Replicas[at]
		have.Connections += f.Connections
		have.Requests += f.Requests
		have.RequestsPerSecond += f.RequestsPerSecond
		have.Records += f.Records
		have.Acknowledged += f.Acknowledged
		have.FailedRequests += f.FailedRequests
		var err error
		if have.Histogram, have.Latency, err = joinTimes(have.Histogram, f.Histogram); err != nil {
			return err
		}
	}
	return nil
}

// joinTimes joins two histograms, and gives the percentiles of both.
func joinTimes(a, b string) (string, Times, error) {
	joined, err := histogram.Decode(a)
	if err != nil {
		return "", Times{}, err
	}
	other, err := histogram.Decode(b)
	if err != nil {
		return "", Times{}, err
	}
	joined.Merge(other)
	text, err := histogram.Encode(joined)
	return text, times(joined), err
}
