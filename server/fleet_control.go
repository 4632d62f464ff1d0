package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
)

// fleetRoutes show who works together.
func (s *Server) fleetRoutes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("GET", "/processes", "lists the processes that share the store: id, role, version, address, started, seen, alive, leader", s.controlProcesses),
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

// controlProcesses lists this process alone where the store is not shared.
func (s *Server) controlProcesses(c *call.Control) (any, error) {
	list := []processShown{}
	if s.fleet == nil {
		now := api.Time{Time: time.Now().UTC()}
		list = append(list, processShown{
			s.config.Process, s.config.Role, s.config.Version, s.config.Advertise, api.Time{Time: s.began}, now, true, true, true,
		})
		return map[string]any{"processes": list}, nil
	}
	all, err := s.fleet.leases.Processes(c.R.Context())
	if err != nil {
		return nil, err
	}
	held, err := s.fleet.leases.Held(c.R.Context(), leaderLease)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		list = append(list, processShown{
			p.ID, p.Role, p.Version, p.Address, api.Time{Time: p.Started.UTC()}, api.Time{Time: p.Seen.UTC()},
			p.Alive, held[leaderLease] == p.ID, p.ID == s.fleet.id,
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
	takeoverDesc = prometheus.NewDesc("destkit_process_takeovers_total", "Runs that nobody worked on and that this process, as the leader, let go on.", nil, nil)
	handedDesc   = prometheus.NewDesc("destkit_process_runs_handed_back_total", "Runs that this process has handed back unfinished.", nil, nil)
)

// processMetrics are those of this process; none where the store is not shared.
type processMetrics struct{ s *Server }

// Describe implements prometheus.Collector.
func (c *processMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{processDesc, leaderDesc, aloneDesc, workingDesc, workersDesc, lostDesc, takeoverDesc, handedDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *processMetrics) Collect(ch chan<- prometheus.Metric) {
	f := c.s.fleet
	if f == nil {
		return
	}
	gauge := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	leads := int64(0)
	if c.s.leads() {
		leads = 1
	}
	gauge(processDesc, 1, f.id, c.s.config.Role, c.s.config.Version)
	gauge(leaderDesc, leads)
	gauge(aloneDesc, f.company.Load()+1)
	gauge(workingDesc, c.s.engine.Load())
	gauge(workersDesc, int64(c.s.config.Workers))
	for d, n := range map[*prometheus.Desc]int64{lostDesc: f.lost.Load(), takeoverDesc: f.takeovers.Load(), handedDesc: f.handed.Load()} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
}
