package server

import (
	"context"
	"time"

	"github.com/destkit/destkit/server/internal/cluster/chronicle"
	"github.com/destkit/destkit/server/internal/connectors"
	"github.com/destkit/destkit/server/internal/destinations"
	"github.com/destkit/destkit/server/internal/faults"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/settings"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/trust"
)

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

// leaveControl writes what is left when the work of the process has ended.
func (s *Server) leaveControl() {
	if s.settings == nil {
		return
	}
	s.journal.Close()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	s.settings.Leave(ctx)
}
