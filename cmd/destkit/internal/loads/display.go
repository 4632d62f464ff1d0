package loads

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen"
)

// Display shows a load while it runs: a block that is drawn over on a terminal,
// a line now and then elsewhere.
type Display struct {
	screen io.Writer
	quiet  bool
	redraw bool
	drawn  int // lines on the screen
	said   time.Duration
	phase  string
}

// NewDisplay shows a load on screen; quiet shows nothing.
func NewDisplay(screen io.Writer, quiet bool) *Display {
	return &Display{screen: screen, quiet: quiet, redraw: command.Is(screen)}
}

// lineEvery is how often a line is written where none can be taken back: ten
// times in a short run, and every ten seconds in a long one.
func lineEvery(of time.Duration) time.Duration {
	return min(max(of/10, time.Second), command.Every)
}

// Moment shows how far the load is.
func (v *Display) Moment(m loadgen.Moment) {
	if v.quiet {
		return
	}
	if v.redraw {
		v.wipe()
		text := block(m, max(command.Columns(v.screen), 40))
		v.drawn = strings.Count(text, "\n")
		foreign.Print(v.screen, text)
		return
	}
	// Each try of a search begins at nothing again.
	if m.Phase == v.phase && m.Elapsed >= v.said && m.Elapsed-v.said < lineEvery(m.Of) {
		return
	}
	v.phase, v.said = m.Phase, m.Elapsed
	foreign.Println(v.screen, line(m))
}

// Note writes a line that stays.
func (v *Display) Note(text string) {
	v.wipe()
	if !v.quiet {
		foreign.Printf(v.screen, "note: %s\n", text)
	}
}

// Done ends the display.
func (v *Display) Done() { v.wipe() }

// wipe takes the block away: up, and clear to the end of the screen.
func (v *Display) wipe() {
	if v.drawn > 0 {
		foreign.Printf(foreign.Raw(v.screen), "\x1b[%dA\x1b[J", v.drawn)
		v.drawn = 0
	}
}

// line is a moment in one line.
func line(m loadgen.Moment) string {
	p := m.Latest
	if m.Phase == "verify" {
		return fmt.Sprintf("%s %s: %s read back, %s", m.Phase, elapsed(m), quantity.Counted(m.Records, "record"), quantity.Counted(m.Errors, "error"))
	}
	if m.Service {
		return fmt.Sprintf("%s %s: %s requests/s, latency p50 %s p99 %s max %s ms, %s, %d in flight",
			m.Phase, elapsed(m), quantity.Rate(p.RequestsPerSecond), quantity.Milliseconds(p.P50), quantity.Milliseconds(p.P99), quantity.Milliseconds(p.Max), quantity.Counted(m.Errors, "error"), m.InFlight)
	}
	return fmt.Sprintf("%s %s: %s requests/s, %s records/s acknowledged, latency p50 %s p99 %s max %s ms, %s, %d in flight",
		m.Phase, elapsed(m), quantity.Rate(p.RequestsPerSecond), quantity.Rate(p.AcknowledgedPerSecond), quantity.Milliseconds(p.P50), quantity.Milliseconds(p.P99), quantity.Milliseconds(p.Max), quantity.Counted(m.Errors, "error"), m.InFlight)
}

// block is a moment in a few lines no wider than columns.
func block(m loadgen.Moment, columns int) string {
	p := m.Latest
	head := fmt.Sprintf("%s %s", m.Phase, elapsed(m))
	if m.Of > 0 {
		wide := min(30, columns-len(head)-4)
		if full := int(float64(wide) * min(1, m.Elapsed.Seconds()/m.Of.Seconds())); wide > 5 {
			head += " [" + strings.Repeat("#", full) + strings.Repeat(".", wide-full) + "]"
		}
	}
	rate := fmt.Sprintf("  rate      %s requests/s, %s records/s acknowledged", quantity.Rate(p.RequestsPerSecond), quantity.Rate(p.AcknowledgedPerSecond))
	sent := quantity.Counted(m.Records, "record") + " so far"
	if m.Service {
		rate, sent = fmt.Sprintf("  rate      %s requests/s", quantity.Rate(p.RequestsPerSecond)), quantity.Counted(m.Requests, "request")+" so far"
	}
	if m.Asked > 0 {
		rate += fmt.Sprintf("; asked for %s", quantity.Rate(m.Asked))
	}
	lines := []string{
		head, rate,
		fmt.Sprintf("  latency   p50 %s  p95 %s  p99 %s  max %s ms", quantity.Milliseconds(p.P50), quantity.Milliseconds(p.P95), quantity.Milliseconds(p.P99), quantity.Milliseconds(p.Max)),
		fmt.Sprintf("  errors    %s; %d in flight; %s", quantity.Grouped(m.Errors), m.InFlight, sent),
	}
	if m.Phase == "verify" {
		lines = []string{head, fmt.Sprintf("  read back %s; %s", quantity.Counted(m.Records, "record"), quantity.Counted(m.Errors, "error"))}
	}
	for i, line := range lines {
		lines[i] = foreign.Clip(line, columns-2)
	}
	return strings.Join(lines, "\n") + "\n"
}

// elapsed is how far a phase is.
func elapsed(m loadgen.Moment) string {
	if m.Of <= 0 {
		return m.Elapsed.Round(time.Second / 10).String()
	}
	return fmt.Sprintf("%s of %s", m.Elapsed.Round(time.Second/10), m.Of)
}

// loadMeter shows the figures of a running load to Prometheus; nil: not requested.
type loadMeter struct {
	mu     sync.Mutex
	latest loadgen.Moment
	port   *command.Background
}

var (
	loadRequestsDesc = prometheus.NewDesc("destkit_load_requests_total", "Requests that have ended, in this phase.", []string{"phase"}, nil)
	loadRecordsDesc  = prometheus.NewDesc("destkit_load_records_total", "Records that were sent, in this phase.", []string{"phase"}, nil)
	loadErrorsDesc   = prometheus.NewDesc("destkit_load_errors_total", "Failed requests and records that were not acknowledged, in this phase.", []string{"phase"}, nil)
	loadRateDesc     = prometheus.NewDesc("destkit_load_requests_per_second", "Requests per second of the last interval.", []string{"phase"}, nil)
	loadSpeedDesc    = prometheus.NewDesc("destkit_load_records_per_second", "Records per second of the last interval, also refused ones.", []string{"phase"}, nil)
	loadTakenDesc    = prometheus.NewDesc("destkit_load_acknowledged_records_per_second", "Acknowledged records per second of the last interval.", []string{"phase"}, nil)
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
	var err error
	if m.port, err = command.StartPort(context.WithoutCancel(ctx), port, nil); err != nil {
		return nil, err
	}
	foreign.Printf(screen, "metrics at %[1]s/metrics and profiles at %[1]s/debug/pprof/\n", m.port.URL)
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
	if m != nil {
		_ = m.port.Stop() // its end is no news: the load goes on
	}
}

// Describe implements prometheus.Collector.
func (m *loadMeter) Describe(chan<- *prometheus.Desc) {} // Collect may give nothing

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
	put(loadTakenDesc, prometheus.GaugeValue, p.AcknowledgedPerSecond)
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
