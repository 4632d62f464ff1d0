package meter

import (
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The metrics of a simulator, collected from its meter on request.
var (
	callsDesc     = prometheus.NewDesc("destsim_calls_total", "Calls of the endpoint by method and HTTP status; none: the connection ended without an answer.", []string{"method", "status"}, nil)
	errorsDesc    = prometheus.NewDesc("destsim_call_errors_total", "Calls without a result.", []string{"method"}, nil)
	recordsDesc   = prometheus.NewDesc("destsim_records_total", "Records of batches by the result that was answered; none: the batch was not answered record by record.", []string{"result"}, nil)
	bytesDesc     = prometheus.NewDesc("destsim_body_bytes_total", "Bytes of bodies by direction.", []string{"direction"}, nil)
	durationDesc  = prometheus.NewDesc("destsim_call_duration_seconds", "Time from the head of the request to the end of the answer.", []string{"method"}, nil)
	inFlightDesc  = prometheus.NewDesc("destsim_calls_in_flight", "Calls under way.", nil, nil)
	batchesDesc   = prometheus.NewDesc("destsim_batches_in_flight", "Batches under way.", nil, nil)
	faultsDesc    = prometheus.NewDesc("destsim_faults_fired_total", "Fired faults by kind.", []string{"kind"}, nil)
	storedDesc    = prometheus.NewDesc("destsim_stored_records", "Records that are stored, by object.", []string{"object"}, nil)
	durationBound = [...]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
)

// collector shows the meter of one simulator to its own registry.
type collector struct {
	meter  *Meter
	stored iter.Seq2[string, int]
}

// Handler answers a scrape of Prometheus. stored gives each object with the number
// of its records.
func (m *Meter) Handler(stored iter.Seq2[string, int]) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{m, stored})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		callsDesc, errorsDesc, recordsDesc, bytesDesc, durationDesc, inFlightDesc, batchesDesc, faultsDesc, storedDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	m := c.meter
	var in, out, succeeded, failed, unanswered int64
	for name, s := range m.snapshot() {
		for status, n := range s.statuses {
			label := "none"
			if status != 0 {
				label = strconv.Itoa(status)
			}
			count(callsDesc, prometheus.CounterValue, float64(n), name, label)
		}
		count(errorsDesc, prometheus.CounterValue, float64(s.errors), name)
		buckets, below := map[float64]uint64{}, uint64(0)
		for i, bound := range durationBound {
			below += s.bounds[i]
			buckets[bound] = below
		}
		ch <- prometheus.MustNewConstHistogram(durationDesc, uint64(s.calls), s.seconds, buckets, name)
		in, out = in+s.bytesIn, out+s.bytesOut
		succeeded, failed = succeeded+s.succeeded, failed+s.failed
		unanswered += max(s.records-s.succeeded-s.failed, 0)
	}
	count(recordsDesc, prometheus.CounterValue, float64(succeeded), "succeeded")
	count(recordsDesc, prometheus.CounterValue, float64(failed), "failed")
	count(recordsDesc, prometheus.CounterValue, float64(unanswered), "none")
	count(bytesDesc, prometheus.CounterValue, float64(in), "in")
	count(bytesDesc, prometheus.CounterValue, float64(out), "out")
	count(inFlightDesc, prometheus.GaugeValue, float64(m.calls.now()))
	count(batchesDesc, prometheus.GaugeValue, float64(m.batches.now()))
	for kind, n := range m.firedFaults() {
		count(faultsDesc, prometheus.CounterValue, float64(n), kind)
	}
	for name, n := range c.stored {
		count(storedDesc, prometheus.GaugeValue, float64(n), name)
	}
}

// Figures are rates and latencies since Since.
type Figures struct {
	Since       time.Time `json:"since"`
	InFlight    int64     `json:"calls_in_flight"`
	PeakCalls   int64     `json:"peak_calls_in_flight"`
	Batches     int64     `json:"batches_in_flight"`
	PeakBatches int64     `json:"peak_batches_in_flight"`
	Methods     []Method  `json:"methods"` // those that were called, by name
}

// Method are the figures of one method; "other" gathers unknown ones.
type Method struct {
	Method    string `json:"method"`
	Calls     int64  `json:"calls"`
	Errors    int64  `json:"errors"` // calls without a result
	Records   int64  `json:"records"`
	Succeeded int64  `json:"succeeded"`
	Failed    int64  `json:"failed"`
	// Rates over the last ten whole seconds, and the most in one second.
	CallsPerSecond   float64 `json:"calls_per_second"`
	RecordsPerSecond float64 `json:"records_per_second"`
	PeakCalls        int64   `json:"peak_calls_in_a_second"`
	PeakRecords      int64   `json:"peak_records_in_a_second"`
	Latency          Latency `json:"latency_ms"`
}

// Latency are in milliseconds; quantiles are up to 6.25 % too high.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Figures gives rates, latencies and parallelism since the start or the last
// reset, methods in the order of their names.
func (m *Meter) Figures() Figures {
	m.mu.Lock()
	f := Figures{Since: m.since, Methods: []Method{}}
	m.mu.Unlock()
	f.InFlight, f.PeakCalls = m.calls.now(), m.calls.most.Load()
	f.Batches, f.PeakBatches = m.batches.now(), m.batches.most.Load()
	second := m.clock().Unix()
	all := m.snapshot()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f.Methods = append(f.Methods, m.methods[name].figures(name, all[name], second))
	}
	return f
}

func (one *method) figures(name string, s sums, second int64) Method {
	f := Method{Method: name, Calls: s.calls, Errors: s.errors, Records: s.records, Succeeded: s.succeeded, Failed: s.failed}
	// The second that is under way would make every rate too low.
	one.mu.Lock()
	for _, slot := range one.slots {
		if slot.second < second && slot.second >= second-rateSpan {
			f.CallsPerSecond += float64(slot.calls) / rateSpan
			f.RecordsPerSecond += float64(slot.records) / rateSpan
		}
	}
	f.PeakCalls, f.PeakRecords = one.peak.calls, one.peak.records
	one.mu.Unlock()
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	f.Latency = Latency{
		Mean: s.seconds * 1000 / float64(s.calls), P50: ms(s.quantile(.5)), P90: ms(s.quantile(.9)),
		P99: ms(s.quantile(.99)), P999: ms(s.quantile(.999)), Max: ms(s.longest),
	}
	return f
}
