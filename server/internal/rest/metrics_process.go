package rest

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/descriptors"
)

var (
	filesUsedDesc    = prometheus.NewDesc("destkit_descriptors_used", "File descriptors that are set aside, by what has them.", []string{"by"}, nil)
	filesBudgetDesc  = prometheus.NewDesc("destkit_descriptors_budget", "File descriptors that there are at most, by what has them; process: the limit of open files, of which a quarter is kept for the store and for callers.", []string{"by"}, nil)
	filesWaitingDesc = prometheus.NewDesc("destkit_descriptors_waiting", "Runs, and calls of destinations, that wait for a file descriptor.", []string{"by"}, nil)
	lineDesc         = prometheus.NewDesc("destkit_store_changes_waiting", "Changes that wait for their turn to write to the store.", nil, nil)
	statementsDesc   = prometheus.NewDesc("destkit_store_statements_total", "Statements that the store has run.", nil, nil)
	readDesc         = prometheus.NewDesc("destkit_store_rows_read_total", "Rows that the store has read.", nil, nil)
)

// process shows how near the process is to waiting for files, and what the store does. It
// asks no database.
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
