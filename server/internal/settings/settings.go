// Package settings owns what the control API has set for all processes of an
// installation. What a setting means is left to who follows it.
package settings

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/server/internal/cluster/chronicle"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// Settings are what the control API has set for all processes of an installation.
// Each keeps them in memory, reads one again when it is told of a change, and says
// that it has; who changes one waits for that. nil: this process is alone.
type Settings struct {
	store  *store.Store
	log    *slog.Logger
	All    *chronicle.Chronicle
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

// New follows each of the settings by its name.
func New(kept *store.Store, log *slog.Logger, all *chronicle.Chronicle, follow map[string]func(ctx context.Context, state []byte) error) *Settings {
	k := &Settings{store: kept, log: log, All: all, follow: map[string]*setting{}, due: map[string]bool{}, bell: make(chan struct{}, 1)}
	for name, apply := range follow {
		k.follow[name] = &setting{apply: apply}
	}
	return k
}

// LookAll follows all of them as they are now.
func (k *Settings) LookAll(ctx context.Context) error {
	for name := range k.follow {
		if err := k.look(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Names are the names of the settings, which are topics of the bus, too.
func (k *Settings) Names() []string { return slices.Sorted(maps.Keys(k.follow)) }

// Alone reports whether no other process of the installation is alive.
func (k *Settings) Alone(ctx context.Context) (bool, error) { return k.All.Alone(ctx) }

// Leave says that this process has ended: others look at who is alive.
func (k *Settings) Leave(ctx context.Context) { _ = k.All.Leave(ctx) }

// Read is a setting as it is kept.
func (k *Settings) Read(ctx context.Context, name string) ([]byte, error) {
	state, _, err := k.All.Setting(ctx, name)
	return state, store.Explained(err)
}

// Count changes a setting that others need not follow.
func (k *Settings) Count(ctx context.Context, name string, change func(state []byte) ([]byte, error)) error {
	return k.All.Count(ctx, name, change)
}

// warn logs a failure that lasts once, and its end.
func (k *Settings) warn(failing *bool, what string, err error) {
	switch {
	case err != nil && !*failing:
		k.log.Warn(what, "error", err)
	case err == nil && *failing:
		k.log.Info("this is over: " + what)
	}
	*failing = err != nil
}

// Hear notes that a setting has to be read again. It does not wait.
func (k *Settings) Hear(name string) {
	k.mu.Lock()
	k.due[name] = true
	k.mu.Unlock()
	select {
	case k.bell <- struct{}{}:
	default:
	}
}

// Run reads what has changed, beside the bus: others wait for other notices.
func (k *Settings) Run(ctx context.Context) {
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
			k.warn(&k.follow[name].fails, "the setting "+name+" of the control API cannot be read", err)
			if err != nil && clock.Sleep(ctx, time.Second) == nil {
				k.Hear(name)
			}
		}
	}
}

// look follows a setting as it is now, and says so.
func (k *Settings) look(ctx context.Context, name string) error {
	one := k.follow[name]
	one.turn.Lock()
	defer one.turn.Unlock()
	state, version, err := k.All.Setting(ctx, name)
	if err != nil {
		return store.Explained(err)
	}
	if err := one.apply(ctx, state); err != nil {
		return err
	}
	return store.Explained(k.All.Heard(ctx, name, version))
}

// Set changes a setting and waits until all processes follow it.
func (k *Settings) Set(ctx context.Context, name string, change func(state []byte) ([]byte, error)) error {
	version, err := k.All.Set(ctx, name, change)
	if err != nil {
		return store.Explained(err)
	}
	// What has changed is told also when the caller has gone.
	ctx = context.WithoutCancel(ctx)
	if err := k.store.Tell(ctx, name, ""); err != nil {
		return err
	}
	if err := k.look(ctx, name); err != nil {
		return err
	}
	late, err := k.All.Await(ctx, name, version)
	if late {
		k.log.Warn("another process has not answered, and follows a setting later", "setting", name)
	}
	return store.Explained(err)
}
