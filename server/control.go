package server

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/cluster/chronicle"
	"github.com/destkit/destkit/server/internal/connectors"
	"github.com/destkit/destkit/server/internal/controlapi"
	"github.com/destkit/destkit/server/internal/destinations"
	"github.com/destkit/destkit/server/internal/faults"
	"github.com/destkit/destkit/server/internal/fidelity"
	"github.com/destkit/destkit/server/internal/forks"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/settings"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/trust"
)

// routeControl puts the control API, the forks and the console onto the mux.
func (s *Server) routeControl(mux *http.ServeMux) {
	s.door = controlapi.New(controlapi.Parts{
		Log: s.log, Latch: s.latch, Token: s.config.ControlToken,
		Held: slices.Concat(
			s.controls.Organizations(),
			s.controls.People(), s.declared.Routes(), s.timing.Routes(), s.member.Routes(), s.journal.Routes(), s.faults.Routes(),
			s.lifecycle.Routes(), s.controls.Data(), s.inspect.Routes(),
			[]call.ControlRoute{
				call.Route("GET", "/seed", "what is here as a seed, without secrets", s.seeds.Export),
			},
			s.trust.Routes(),
			fidelity.Routes(),
		),
		World: slices.Concat(
			[]call.ControlRoute{
				call.Route("POST", "/reset", "takes the service back to its first organization; journals, faults and mailbox are emptied, the clock runs on", s.replacement.Reset),
				call.Route("POST", "/seed", "body: a seed as YAML; makes all of it or nothing", s.seeds.Post),
			},
			s.snapshots.Routes(), s.forks.Routes(),
		),
		Metrics: s.metrics.Handler(), Profile: s.config.Profile,
	})
	s.door.Route(mux)
	s.routeConsole(mux)
	mux.Handle(forks.Path, s.forks)
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
		faults.Setting:     s.faults.Follow,
		journal.Setting:    s.journal.Follow,
		trust.Setting:      s.trust.Follow,
		connectors.Setting: s.declared.Follow,
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
