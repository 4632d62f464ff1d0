package server

import (
	"context"
	"sync"
	"time"

	"github.com/destkit/destkit/server/internal/cluster/chronicle"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// settings are what the control API has set for all processes of an installation.
// Each keeps them in memory, reads one again when it is told of a change, and says
// that it has; who changes one waits for that. nil: this process is alone.
type settings struct {
	s      *Server
	all    *chronicle.Chronicle
	follow map[string]*setting

	mu   sync.Mutex
	due  map[string]bool
	bell chan struct{}
}

// setting is one of them; turn is held while it is read and followed, so that an
// older version never comes after a newer one.
type setting struct {
	turn  sync.Mutex
	fails bool // to be read, as run knows
	apply func(ctx context.Context, state []byte) error
}

// The settings, which are topics of the bus, too.
const (
	settingFaults  = "faults"
	settingJournal = "journal"
	settingTrust   = "trust"
)

// topicObjects tells that a destination was changed or deleted.
const topicObjects = "objects"

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
	s.settings = &settings{s: s, all: all, due: map[string]bool{}, bell: make(chan struct{}, 1), follow: map[string]*setting{
		settingFaults:  {apply: s.faults.follow},
		settingJournal: {apply: s.journal.follow},
		settingTrust:   {apply: s.followTrust},

		settingConnectors: {apply: s.followConnectors},
	}}
	if err := s.journal.share(ctx, all); err != nil {
		return err
	}
	for name := range s.settings.follow {
		if err := s.settings.look(ctx, name); err != nil {
			return err
		}
	}
	if n := s.faults.armed.Load(); n > 0 {
		s.log.Warn("faults are in force", "faults", n)
	}
	s.background.work.Go(func() { s.settings.run(s.background.ctx) })
	for name := range s.settings.follow {
		s.onNotice(name, func(string) { s.settings.hear(name) })
	}
	s.onNotice(topicObjects, s.hearObjects)
	// What was changed since it was read above is read again when that begins.
	s.fleet.work.Go(s.fleet.listen)
	return nil
}

// leaveControl writes what is left when the work of the process has ended.
func (s *Server) leaveControl() {
	if s.settings == nil {
		return
	}
	if w := s.journal.calls.to; w != nil { // nil: the start has failed
		w.close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWrite)
	defer cancel()
	_ = s.settings.all.Leave(ctx) // others look at who is alive
}

// hear notes that a setting has to be read again. It does not wait.
func (k *settings) hear(name string) {
	k.mu.Lock()
	k.due[name] = true
	k.mu.Unlock()
	select {
	case k.bell <- struct{}{}:
	default:
	}
}

// run reads what has changed, beside the bus: others wait for other notices.
func (k *settings) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.bell:
		}
		k.mu.Lock()
		due := k.due
		k.due = map[string]bool{}
		k.mu.Unlock()
		for name := range due {
			err := k.look(ctx, name)
			if ctx.Err() != nil {
				return
			}
			k.s.fleet.warn(&k.follow[name].fails, "the setting "+name+" of the control API cannot be read", err)
			if err != nil && clock.Sleep(ctx, time.Second) == nil {
				k.hear(name)
			}
		}
	}
}

// look follows a setting as it is now, and says so.
func (k *settings) look(ctx context.Context, name string) error {
	one := k.follow[name]
	one.turn.Lock()
	defer one.turn.Unlock()
	state, version, err := k.all.Setting(ctx, name)
	if err != nil {
		return store.Explained(err)
	}
	if err := one.apply(ctx, state); err != nil {
		return err
	}
	return store.Explained(k.all.Heard(ctx, name, version))
}

// set changes a setting and waits until all processes follow it.
func (k *settings) set(ctx context.Context, name string, change func(state []byte) ([]byte, error)) error {
	version, err := k.all.Set(ctx, name, change)
	if err != nil {
		return store.Explained(err)
	}
	// What has changed is told also when the caller has gone.
	ctx = context.WithoutCancel(ctx)
	if err := k.s.store.Tell(ctx, name, ""); err != nil {
		return err
	}
	if err := k.look(ctx, name); err != nil {
		return err
	}
	late, err := k.all.Await(ctx, name, version)
	if late {
		k.s.log.Warn("another process has not answered, and follows a setting later", "setting", name)
	}
	return store.Explained(err)
}
