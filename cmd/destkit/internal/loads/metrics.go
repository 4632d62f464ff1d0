package loads

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/loadgen"
)

// loadMeter shows the figures of a running load to Prometheus; nil: not asked for.
type loadMeter struct {
	mu     sync.Mutex
	latest loadgen.Moment
	end    context.CancelFunc
	done   chan struct{}
}

var (
	loadRequestsDesc = prometheus.NewDesc("destkit_load_requests_total", "Requests that have ended, in this phase.", []string{"phase"}, nil)
	loadRecordsDesc  = prometheus.NewDesc("destkit_load_records_total", "Records that were sent, in this phase.", []string{"phase"}, nil)
	loadErrorsDesc   = prometheus.NewDesc("destkit_load_errors_total", "Failed requests and records that were not acknowledged, in this phase.", []string{"phase"}, nil)
	loadRateDesc     = prometheus.NewDesc("destkit_load_requests_per_second", "Requests per second of the last interval.", []string{"phase"}, nil)
	loadSpeedDesc    = prometheus.NewDesc("destkit_load_records_per_second", "Records per second of the last interval.", []string{"phase"}, nil)
	loadAskedDesc    = prometheus.NewDesc("destkit_load_asked_requests_per_second", "Requests per second that were asked for; 0 in a closed loop.", []string{"phase"}, nil)
	loadFlightDesc   = prometheus.NewDesc("destkit_load_in_flight", "Requests under way.", []string{"phase"}, nil)
	loadLatencyDesc  = prometheus.NewDesc("destkit_load_latency_seconds", "Latency from the intended time in the last interval.", []string{"phase", "quantile"}, nil)
	loadServiceDesc  = prometheus.NewDesc("destkit_load_service_time_seconds", "Time from the send in the last interval.", []string{"phase", "quantile"}, nil)
)

// ServeMetrics opens the port of --prometheus.
func ServeMetrics(ctx context.Context, addr string, screen io.Writer) (*loadMeter, error) {
	if addr == "" {
		return nil, nil
	}
	m := &loadMeter{}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	profiles := command.ForThisMachine(http.HandlerFunc(command.ServeProfiles))
	mux.Handle("GET /debug/pprof", profiles)
	mux.Handle("GET /debug/pprof/", profiles)
	port := &command.Port{Addr: addr, Flag: "--prometheus", Handler: mux}
	ln, url, err := port.Open()
	if err != nil {
		return nil, err
	}
	ctx, m.end = context.WithCancel(context.WithoutCancel(ctx))
	m.done = make(chan struct{})
	go func() {
		defer close(m.done)
		_ = port.Serve(ctx, ln) // its end is no news: the load goes on
	}()
	foreign.Printf(screen, "metrics at %s/metrics and profiles at %s/debug/pprof/\n", url, url)
	return m, nil
}

func (m *loadMeter) Take(moment loadgen.Moment) {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.latest = moment
	m.mu.Unlock()
}

// Stop closes the port.
func (m *loadMeter) Stop() {
	if m == nil {
		return
	}
	m.end()
	<-m.done
}

// Describe implements prometheus.Collector.
func (m *loadMeter) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		loadRequestsDesc, loadRecordsDesc, loadErrorsDesc, loadRateDesc, loadSpeedDesc, loadAskedDesc, loadFlightDesc, loadLatencyDesc, loadServiceDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *loadMeter) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	now := m.latest
	m.mu.Unlock()
	if now.Phase == "" {
		return
	}
	put := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, append([]string{now.Phase}, labels...)...)
	}
	p := now.Latest
	put(loadRequestsDesc, prometheus.CounterValue, float64(now.Requests))
	put(loadRecordsDesc, prometheus.CounterValue, float64(now.Records))
	put(loadErrorsDesc, prometheus.CounterValue, float64(now.Errors))
	put(loadRateDesc, prometheus.GaugeValue, p.RequestsPerSecond)
	put(loadSpeedDesc, prometheus.GaugeValue, p.RecordsPerSecond)
	put(loadAskedDesc, prometheus.GaugeValue, now.Asked)
	put(loadFlightDesc, prometheus.GaugeValue, float64(now.InFlight))
	for _, q := range []struct {
		label string
		ms    float64
	}{{"0.5", p.P50}, {"0.95", p.P95}, {"0.99", p.P99}, {"1", p.Max}} {
		put(loadLatencyDesc, prometheus.GaugeValue, q.ms/1000, q.label)
	}
	put(loadServiceDesc, prometheus.GaugeValue, p.ServiceP50/1000, "0.5")
	put(loadServiceDesc, prometheus.GaugeValue, p.ServiceP99/1000, "0.99")
}
