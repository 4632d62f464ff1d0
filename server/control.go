package server

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	pages "github.com/destkit/destkit/server/internal/console"
	"github.com/destkit/destkit/server/internal/control"
	"github.com/destkit/destkit/server/internal/runs"
)

// routeControl puts the control API and the console onto the mux.
func (s *Server) routeControl(mux *http.ServeMux) {
	s.door = control.NewAPI(control.APIParts{
		Log: s.log, Lock: s.lock, Token: s.config.ControlToken,
		Held: slices.Concat(
			s.controls.OrganizationRoutes(),
			s.controls.People(), s.declared.Routes(), s.journal.Routes(), s.faults.Routes(),
			s.lifecycle.Routes(), s.controls.Data(), s.inspect.Routes(),
			[]call.ControlRoute{
				call.Route("GET", "/seed", "what is here as a seed, without secrets", s.seeds.Export),
			},
			s.trust.Routes(),
		),
		Free: slices.Concat(
			[]call.ControlRoute{
				call.Route("POST", "/seed", "body: a seed as YAML; makes all of it or nothing", s.seeds.Post),
			},
			s.timing.Routes(), s.snapshots.Routes(),
		),
		Metrics: s.metrics.Handler(), Profile: s.config.Profile,
	})
	s.door.Route(mux)
	// The pages for browsers are made from the replies of the control API and of the
	// API's operations, by calls within the process.
	inside := &insider{performer: s.performer, lock: s.lock, serve: s.serve}
	s.console = pages.New(pages.Service{
		Control: console.Caller{Handler: s.door.Handler()}, Token: s.config.ControlToken, Log: s.log,
		Perform: inside.perform, Send: inside.send,
		// It changes with all that pages show.
		Stamp: func() string {
			return fmt.Sprint(s.store.Generation(), s.journal.Stamp(), s.faults.Stamp(), s.clock.State(), s.lock.Number())
		},
		NextStart: func(config *api.SyncConfig) time.Time { return runs.NextRun(config, s.clock.Now()) },
		SecretEnv: "DESTKIT_WORKSPACE_API_KEY", Operations: s.operations(),
	})
	mux.Handle(console.Path, s.console)
	mux.Handle(console.Path+"/", s.console)
}
