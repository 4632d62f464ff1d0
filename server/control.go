package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/cluster/chronicle"
	"github.com/destkit/destkit/server/internal/connectors"
	pages "github.com/destkit/destkit/server/internal/console"
	"github.com/destkit/destkit/server/internal/control"
	"github.com/destkit/destkit/server/internal/destinations"
	"github.com/destkit/destkit/server/internal/faults"
	"github.com/destkit/destkit/server/internal/forks"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/settings"
	"github.com/destkit/destkit/server/internal/store"
)

// routeControl puts the control API, the forks and the console onto the mux.
func (s *Server) routeControl(mux *http.ServeMux) {
	s.door = control.NewAPI(control.APIParts{
		Log: s.log, Latch: s.latch, Token: s.config.ControlToken,
		Held: slices.Concat(
			s.controls.Organizations(),
			s.controls.People(), s.declared.Routes(), s.timing.Routes(), s.member.Routes(), s.journal.Routes(), s.faults.Routes(),
			s.lifecycle.Routes(), s.controls.Data(), s.inspect.Routes(),
			[]call.ControlRoute{
				call.Route("GET", "/seed", "what is here as a seed, without secrets", s.seeds.Export),
			},
			s.trust.Routes(),
		),
		World: slices.Concat(
			[]call.ControlRoute{
				call.Route("POST", "/reset", "takes the service back to its first organization; journals, faults and mailbox are emptied, the clock runs on", func(c *call.Control) (any, error) {
					return call.Done, s.replacement.Reset(c.R.Context())
				}),
				call.Route("POST", "/seed", "body: a seed as YAML; makes all of it or nothing", s.seeds.Post),
			},
			s.snapshots.Routes(), s.forks.Routes(),
		),
		Metrics: s.metrics.Handler(), Profile: s.config.Profile,
	})
	s.door.Route(mux)
	mux.Handle(forks.Path, s.forks)
	// The pages for browsers are made from the replies of the control API and of the
	// API's operations, by calls within the process.
	inside := &insider{performer: s.performer, latch: s.latch, serve: s.serve}
	s.console = pages.New(pages.Service{
		Control: console.Caller{Handler: s.door.Handler()}, Token: s.config.ControlToken, Log: s.log,
		Perform: inside.perform, Send: inside.send,
		// It changes with all that pages show. Where others share the store it says
		// nothing, and pages are made anew every time.
		Stamp: func() string {
			if s.member.Shares() {
				return ""
			}
			return fmt.Sprint(s.store.Generation(), s.journal.Stamp(), s.faults.Stamp(), s.clock.State(), s.latch.States.Load())
		},
		NextStart: func(config *api.SyncConfig) time.Time { return runs.NextRun(config, s.clock.Now()) },
		SecretEnv: "DESTKIT_WORKSPACE_API_KEY", Operations: s.operations(),
	})
	mux.Handle(console.Path, s.console)
	mux.Handle(console.Path+"/", s.console)
}

// leaveTimeout bounds what is said and asked when the process ends.
const leaveTimeout = 2 * time.Second

// shareControl makes the control API that of the installation, before anything is
// served, and begins to hear the other processes. In memory and on SQLite it does
// nothing.
func (s *Server) shareControl(ctx context.Context) error {
	if !s.store.Shared() {
		return nil
	}
	all := chronicle.New(s.store.Pool(), s.config.Process)
	if err := all.Enter(ctx); err != nil {
		return store.Explained(err)
	}
	s.settings = settings.New(s.store, s.log, all, map[string]func(context.Context, []byte) error{
		faults.Setting:       s.faults.Follow,
		journal.Setting:      s.journal.Follow,
		control.TrustSetting: s.trust.Follow,
		connectors.Setting:   s.declared.Follow,
	})
	s.faults.Share(s.settings)
	s.rest.Share(s.settings)
	s.trust.Share(s.settings)
	s.declared.Share(s.settings)
	if err := s.journal.Share(ctx, all, s.settings, s.config.Process); err != nil {
		return err
	}
	if err := s.settings.LookAll(ctx); err != nil {
		return err
	}
	if n := s.faults.Count(); n > 0 {
		s.log.Warn("faults are in force", "faults", n)
	}
	s.background.Run(func() { s.settings.Run(s.background.Ctx) })
	for _, name := range s.settings.Names() {
		s.member.OnNotice(name, func(string) { s.settings.Hear(name) })
	}
	s.member.OnNotice(destinations.Topic, s.destinations.Hear)
	// What was changed since it was read above is read again when that begins.
	s.member.Listen()
	return nil
}

// leave writes what is left when the work of the process has ended.
func (d *doors) leave() {
	if d.settings == nil {
		return
	}
	d.journal.Close()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	d.settings.Leave(ctx)
}
