package member

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
)

// Routes show who works together.
func (m *Member) Routes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("GET", "/processes", "lists the processes that share the store: id, role, version, address, started, seen, alive, leader", m.list),
	}
}

// processShown is a process as the control API shows it.
type processShown struct {
	ID      string   `json:"id"`
	Role    string   `json:"role"`
	Version string   `json:"version"`
	Address string   `json:"address"`
	Started api.Time `json:"started"`
	Seen    api.Time `json:"seen"`
	Alive   bool     `json:"alive"`  // seen within the last seconds
	Leader  bool     `json:"leader"` // it does what falls due
	Self    bool     `json:"self"`   // it has answered this call
}

// list gives this process alone where the store is not shared.
func (m *Member) list(c *call.Control) (any, error) {
	list := []processShown{}
	if !m.Shares() {
		now := api.Time{Time: time.Now().UTC()}
		list = append(list, processShown{
			m.About.ID, m.About.Role, m.About.Version, m.About.Address, api.Time{Time: m.About.Began}, now, true, true, true,
		})
		return map[string]any{"processes": list}, nil
	}
	all, err := m.leases.Processes(c.R.Context())
	if err != nil {
		return nil, err
	}
	held, err := m.leases.Held(c.R.Context(), leaderLease)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		list = append(list, processShown{
			p.ID, p.Role, p.Version, p.Address, api.Time{Time: p.Started.UTC()}, api.Time{Time: p.Seen.UTC()},
			p.Alive, held[leaderLease] == p.ID, p.ID == m.About.ID,
		})
	}
	return map[string]any{"processes": list}, nil
}

var (
	processDesc  = prometheus.NewDesc("destkit_process_info", "This process, as GET /_control/processes lists it; always 1.", []string{"process", "role", "version"}, nil)
	leaderDesc   = prometheus.NewDesc("destkit_process_leader", "1 while this process does what falls due.", nil, nil)
	aloneDesc    = prometheus.NewDesc("destkit_processes_alive", "Processes on the store, as this one last saw them.", nil, nil)
	workingDesc  = prometheus.NewDesc("destkit_process_runs_working", "Sync runs that this process works on.", nil, nil)
	workersDesc  = prometheus.NewDesc("destkit_process_workers", "Sync runs that this process works on at most.", nil, nil)
	lostDesc     = prometheus.NewDesc("destkit_process_leases_lost_total", "Runs of this process that another one has taken over.", nil, nil)
	takeoverDesc = prometheus.NewDesc("destkit_process_takeovers_total", "Runs that no process worked on and that this process, as the leader, let go on.", nil, nil)
	handedDesc   = prometheus.NewDesc("destkit_process_runs_handed_back_total", "Runs that this process has handed back unfinished.", nil, nil)
)

// Describe implements prometheus.Collector.
func (m *Member) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{processDesc, leaderDesc, aloneDesc, workingDesc, workersDesc, lostDesc, takeoverDesc, handedDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. Where the store is not shared there is nothing.
func (m *Member) Collect(ch chan<- prometheus.Metric) {
	if !m.Shares() {
		return
	}
	gauge := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	leads := int64(0)
	if m.Leads() {
		leads = 1
	}
	gauge(processDesc, 1, m.About.ID, m.About.Role, m.About.Version)
	gauge(leaderDesc, leads)
	gauge(aloneDesc, m.company.Load()+1)
	gauge(workingDesc, m.Engine.Load())
	gauge(workersDesc, int64(m.About.Workers))
	for d, n := range map[*prometheus.Desc]int64{lostDesc: m.lost.Load(), takeoverDesc: m.takeovers.Load(), handedDesc: m.handed.Load()} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
}
