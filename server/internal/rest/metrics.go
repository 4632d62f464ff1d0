package rest

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/descriptors"
	"github.com/destkit/destkit/server/internal/store"
)

// Metrics are the numbers of one service. Labels are operations, statuses, methods,
// outcomes and names of tables: never anything that a client chose.
type Metrics struct {
	registry *prometheus.Registry

	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	calls    *prometheus.CounterVec
	faults   *prometheus.CounterVec
}

// MetricsParts are what metrics need of the service.
type MetricsParts struct {
	Shared *call.Shared // its store may be opened later
	Files  *descriptors.Shares
}

// NewMetrics registers everything in a registry for this service: a program may hold several.
func NewMetrics(p MetricsParts) *Metrics {
	f := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "destkit_requests_total",
			Help: "Requests of the API by operation and HTTP status; status none: the connection was dropped by a fault.",
		}, []string{"operation", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "destkit_request_duration_seconds",
			Help: "Time from the head of a request to its answer.",
			// From a read that the memory answers to a call that waits for a
			// destination.
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"operation"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "destkit_destination_calls_total",
			Help: "Calls of destinations by method and outcome.",
		}, []string{"method", "outcome"}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "destkit_faults_fired_total",
			Help: "Faults that struck a request, by kind.",
		}, []string{"kind"}),
	}
	f.registry.MustRegister(f.requests, f.duration, f.calls, f.faults, &stored{p.Shared}, &process{p.Shared, p.Files},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return f
}

// Handler answers a scrape. Errors of one collector do not hide what the others have.
func (f *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(f.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// Request counts a call of the API; a path without an operation is "none", since
// clients write anything into paths.
func (f *Metrics) Request(operation string, code int, took time.Duration) {
	if operation == "" {
		operation = "none"
	}
	status := "none"
	if code != 0 {
		status = strconv.Itoa(code)
	}
	f.requests.WithLabelValues(operation, status).Inc()
	f.duration.WithLabelValues(operation).Observe(took.Seconds())
}

// Call counts a call of a destination.
func (f *Metrics) Call(method, outcome string) { f.calls.WithLabelValues(method, outcome).Inc() }

// Fault counts a fault that struck a request.
func (f *Metrics) Fault(kind string) { f.faults.WithLabelValues(kind).Inc() }

var (
	rowsDesc = prometheus.NewDesc("destkit_stored_rows", "Rows of the store by kind.", []string{"kind"}, nil)
	runsDesc = prometheus.NewDesc("destkit_sync_runs", "Sync runs that are stored, by status.", []string{"status"}, nil)
	sizeDesc = prometheus.NewDesc("destkit_store_bytes", "Size of the store.", nil, nil)
)

// stored counts the rows of the store at each scrape.
type stored struct{ shared *call.Shared }

// Describe implements prometheus.Collector.
func (c *stored) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{rowsDesc, runsDesc, sizeDesc} {
		ch <- d
	}
}

// scrapeTime bounds the counting; a scrape that is late shows the rest.
const scrapeTime = 5 * time.Second

// Collect implements prometheus.Collector.
func (c *stored) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	counts, err := store.Read(ctx, c.shared.Store, (*store.Tx).Counts)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(rowsDesc, err)
		return
	}
	for kind, n := range counts.Rows {
		ch <- prometheus.MustNewConstMetric(rowsDesc, prometheus.GaugeValue, float64(n), kind)
	}
	for status, n := range counts.Runs {
		ch <- prometheus.MustNewConstMetric(runsDesc, prometheus.GaugeValue, float64(n), status)
	}
	ch <- prometheus.MustNewConstMetric(sizeDesc, prometheus.GaugeValue, float64(counts.Bytes))
}

var (
	filesUsedDesc    = prometheus.NewDesc("destkit_descriptors_used", "File descriptors that are set aside, by what has them.", []string{"by"}, nil)
	filesBudgetDesc  = prometheus.NewDesc("destkit_descriptors_budget", "File descriptors that there are at most, by what has them; process: the limit of open files, of which a quarter is kept for the store and for callers.", []string{"by"}, nil)
	filesWaitingDesc = prometheus.NewDesc("destkit_descriptors_waiting", "Runs, and calls of destinations, that wait for a file descriptor.", []string{"by"}, nil)
	lineDesc         = prometheus.NewDesc("destkit_store_changes_waiting", "Changes that wait for their turn to write to the store.", nil, nil)
	statementsDesc   = prometheus.NewDesc("destkit_store_statements_total", "Statements that the store has run.", nil, nil)
	readDesc         = prometheus.NewDesc("destkit_store_rows_read_total", "Rows that the store has read.", nil, nil)
)

// process shows how near the process is to waiting for files, and what the store does. It
// queries no database.
type process struct {
	shared *call.Shared
	files  *descriptors.Shares
}

// Describe implements prometheus.Collector.
func (c *process) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{filesUsedDesc, filesBudgetDesc, filesWaitingDesc, lineDesc, statementsDesc, readDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *process) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, n, labels...)
	}
	files := c.files
	send(filesBudgetDesc, prometheus.GaugeValue, float64(files.Limit), "process")
	for by, b := range map[string]*descriptors.Budget{"runs": files.Runs, "connections": files.Connections} {
		now := b.Figures()
		send(filesUsedDesc, prometheus.GaugeValue, float64(now.Used), by)
		send(filesBudgetDesc, prometheus.GaugeValue, float64(now.Most), by)
		send(filesWaitingDesc, prometheus.GaugeValue, float64(now.Waiting), by)
	}
	if c.shared.Store == nil {
		return
	}
	work := c.shared.Store.Work()
	send(lineDesc, prometheus.GaugeValue, float64(c.shared.Store.Waiting()))
	send(statementsDesc, prometheus.CounterValue, float64(work.Statements))
	send(readDesc, prometheus.CounterValue, float64(work.Rows))
}
