package xk6

import (
	"context"
	"strconv"
	"time"

	"go.k6.io/k6/lib"
	"go.k6.io/k6/metrics"

	"github.com/destkit/destkit/loadgen"
)

// destinationMetrics are what thresholds and outputs of k6 know of batches. All
// have the tags object, operation and, where there was a reply, status (of HTTP).
type destinationMetrics struct {
	batches      *metrics.Metric // sent, and answered or failed
	failed       *metrics.Metric // share of batches that were not acknowledged whole
	records      *metrics.Metric // sent
	acknowledged *metrics.Metric // with one result with success
	errors       *metrics.Metric // by the tag kind, as destkit load counts them
	duration     *metrics.Metric // of a batch, in milliseconds
}

func registerMetrics(registry *metrics.Registry) (*destinationMetrics, error) {
	m := &destinationMetrics{}
	for _, want := range []struct {
		at    **metrics.Metric
		name  string
		typ   metrics.MetricType
		holds metrics.ValueType
	}{
		{&m.batches, "destkit_batches", metrics.Counter, metrics.Default},
		{&m.failed, "destkit_batch_failed", metrics.Rate, metrics.Default},
		{&m.records, "destkit_records", metrics.Counter, metrics.Default},
		{&m.acknowledged, "destkit_records_acknowledged", metrics.Counter, metrics.Default},
		{&m.errors, "destkit_errors", metrics.Counter, metrics.Default},
		{&m.duration, "destkit_batch_duration", metrics.Trend, metrics.Time},
	} {
		var err error
		if *want.at, err = registry.NewMetric(want.name, want.typ, want.holds); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// push hands the figures of one batch to k6. k6 itself counts sent and received
// bytes: the connections are made by its dialer.
func (m *destinationMetrics) push(ctx context.Context, state *lib.State, sent *loadgen.Sent) {
	now := time.Now()
	current := state.Tags.GetCurrentValues()
	tags := current.Tags.With("object", sent.Object).With("operation", sent.Operation)
	if sent.Status != 0 {
		tags = tags.With("status", strconv.Itoa(sent.Status))
	}
	samples := make([]metrics.Sample, 0, 6+len(sent.Errors))
	add := func(metric *metrics.Metric, tags *metrics.TagSet, value float64) {
		samples = append(samples, metrics.Sample{
			TimeSeries: metrics.TimeSeries{Metric: metric, Tags: tags}, Time: now, Metadata: current.Metadata, Value: value,
		})
	}
	add(m.batches, tags, 1)
	add(m.failed, tags, metrics.B(!sent.Good()))
	add(m.records, tags, float64(sent.Records))
	add(m.acknowledged, tags, float64(sent.Acknowledged))
	if !sent.Untimed {
		add(m.duration, tags, metrics.D(sent.Took))
	}
	for _, e := range sent.Errors {
		add(m.errors, tags.With("kind", e.Kind), float64(e.Count))
	}
	if len(sent.Errors) == 0 {
		// A threshold on errors needs the metric also where there are none.
		add(m.errors, tags, 0)
	}
	metrics.PushIfNotDone(ctx, state.Samples, metrics.Samples(samples))
}
