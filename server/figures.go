package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/destkit/destkit/server/internal/store"
)

// figures are the numbers of one service for Prometheus, in a registry of its
// own. Labels are operations, statuses, methods, outcomes and names of tables:
// never anything that a client chose.
type figures struct {
	registry *prometheus.Registry
	scrape   http.Handler
	guard    func(http.Handler) http.Handler

	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	calls    *prometheus.CounterVec
	faults   *prometheus.CounterVec
}

// newFigures registers everything in a registry of its own: a program may hold
// several services.
func newFigures(s *Server) *figures {
	f := &figures{
		registry: prometheus.NewRegistry(),
		guard:    s.guard,
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
	// Errors of one collector must not hide the figures of the others.
	f.registry.MustRegister(f.requests, f.duration, f.calls, f.faults, &storeFigures{s}, &fileFigures{s}, &fleetFigures{s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f.scrape = promhttp.HandlerFor(f.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	return f
}

// handler serves /metrics, to whom the control API is open.
func (f *figures) handler() http.Handler { return f.guard(f.scrape) }

// request counts a call of the API; a path without an operation is "none", since
// clients write anything into paths.
func (f *figures) request(operation string, code int, took time.Duration) {
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

// Both are called from the places that know; figures ask nobody.
func (f *figures) call(method, outcome string) { f.calls.WithLabelValues(method, outcome).Inc() }
func (f *figures) fault(kind string)           { f.faults.WithLabelValues(kind).Inc() }

var (
	rowsDesc = prometheus.NewDesc("destkit_stored_rows", "Rows of the store by kind.", []string{"kind"}, nil)
	runsDesc = prometheus.NewDesc("destkit_sync_runs", "Sync runs that are stored, by status.", []string{"status"}, nil)
	sizeDesc = prometheus.NewDesc("destkit_store_bytes", "Size of the store.", nil, nil)
	poolDesc = prometheus.NewDesc("destkit_store_connections", "Connections of this process to a shared store that are lent to runs, leases and limits, by state: used, idle, and the most there may be.", []string{"state"}, nil)
)

// storeFigures counts what is stored when somebody asks.
type storeFigures struct{ s *Server }

// Describe implements prometheus.Collector.
func (c *storeFigures) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{rowsDesc, runsDesc, sizeDesc, poolDesc} {
		ch <- d
	}
}

// scrapeTime bounds the counting; a scrape that is late shows the rest.
const scrapeTime = 5 * time.Second

// Collect implements prometheus.Collector.
func (c *storeFigures) Collect(ch chan<- prometheus.Metric) {
	c.connections(ch) // also while the store does not answer
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	var counts store.Counts
	err := c.s.store.View(ctx, func(tx *store.Tx) (err error) {
		counts, err = tx.Counts()
		return err
	})
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

// connections shows how near this process is to waiting for the database; nothing
// where the store is not shared.
func (c *storeFigures) connections(ch chan<- prometheus.Metric) {
	pool := c.s.store.Pool()
	if pool == nil {
		return
	}
	stat := pool.Stat()
	for state, n := range map[string]int32{"used": stat.AcquiredConns(), "idle": stat.IdleConns(), "max": stat.MaxConns()} {
		ch <- prometheus.MustNewConstMetric(poolDesc, prometheus.GaugeValue, float64(n), state)
	}
}
