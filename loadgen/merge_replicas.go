package loadgen

import (
	"slices"

	"github.com/destkit/destkit/internal/histogram"
	"github.com/destkit/destkit/loadgen/internal/failure"
)

// joinReplicas puts the figures of each process together, by its address. Two
// processes behind one address are told apart by their order.
func (r *Result) joinReplicas(results []*Result) error {
	r.Replicas, r.Target.Replicas = nil, nil
	if !slices.ContainsFunc(results, func(o *Result) bool { return len(o.Replicas) > 0 }) {
		return nil
	}
	for i, o := range results {
		if err := r.joinProcesses(o.processes()); err != nil {
			return failure.Usagef("result %d: %v", i+1, err)
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
		at := slices.IndexFunc(r.Replicas, func(have ReplicaFigures) bool { return have.Address == f.Address })
		for at >= 0 && taken[at] {
			next := slices.IndexFunc(r.Replicas[at+1:], func(have ReplicaFigures) bool { return have.Address == f.Address })
			if next < 0 {
				at = -1
			} else {
				at += next + 1
			}
		}
		if at < 0 {
			r.Replicas = append(r.Replicas, f)
			taken[len(r.Replicas)-1] = true
			continue
		}
		taken[at] = true
		have := &r.Replicas[at]
		have.Connections += f.Connections
		have.Requests += f.Requests
		have.RequestsPerSecond += f.RequestsPerSecond
		have.Records += f.Records
		have.Acknowledged += f.Acknowledged
		have.FailedRequests += f.FailedRequests
		var err error
		if have.Histogram, have.Latency, err = joinTimes(have.Histogram, have.Latency, f.Histogram, f.Latency); err != nil {
			return err
		}
	}
	return nil
}

// joinTimes joins two histograms with the percentiles that they have. Without one of
// them (results of an earlier version) the worse figures count for both.
func joinTimes(a string, timesA Times, b string, timesB Times) (string, Times, error) {
	if a == "" || b == "" {
		return "", worseOf(timesA, timesB), nil
	}
	var histograms [2]*histogram.Histogram
	for i, text := range []string{a, b} {
		h, err := histogram.Decode(text)
		if err != nil {
			return "", Times{}, err
		}
		histograms[i] = h
	}
	histograms[0].Merge(histograms[1])
	text, err := histogram.Encode(histograms[0])
	return text, times(histograms[0]), err
}

// worseOf is the longer of every time.
func worseOf(a, b Times) Times {
	return Times{
		Min: max(a.Min, b.Min), Mean: max(a.Mean, b.Mean), P50: max(a.P50, b.P50), P75: max(a.P75, b.P75), P90: max(a.P90, b.P90),
		P95: max(a.P95, b.P95), P99: max(a.P99, b.P99), P999: max(a.P999, b.P999), P9999: max(a.P9999, b.P9999), Max: max(a.Max, b.Max),
	}
}
