// Package states owns the states of syncs that live in their source: where one is, under
// which name, and how it is dropped. What the service itself keeps is in the ledger.
package states

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/destkit/destkit/server/internal/background"
	"github.com/destkit/destkit/server/internal/call"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// Parts are what states need of the service.
type Parts struct {
	Shared  *call.Shared
	Log     *slog.Logger
	Work    *background.Work
	Sources *sources.Sources
	Random  io.Reader // names the service
}

// States finds and drops them.
type States struct {
	shared  *call.Shared
	log     *slog.Logger
	work    *background.Work
	sources *sources.Sources
	random  io.Reader
}

// New assembles them.
func New(p Parts) *States {
	return &States{shared: p.Shared, log: p.Log, work: p.Work, sources: p.Sources, random: p.Random}
}

// installationSetting holds a name of this service: several may keep states in
// one warehouse, and all number their syncs from 1.
const installationSetting = "installation"

// Installation gives the name, and makes it when it is first asked for; a dry run
// makes none.
func (k *States) Installation(ctx context.Context) (name string, err error) {
	if IsDry(ctx) {
		err = k.shared.Store.View(ctx, func(tx *store.Tx) error {
			name, err = tx.Setting(installationSetting)
			return err
		})
		return name, err
	}
	err = k.shared.Store.Update(ctx, func(tx *store.Tx) error {
		if name, err = tx.Setting(installationSetting); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		var id [6]byte
		if _, err := io.ReadFull(k.random, id[:]); err != nil {
			return fmt.Errorf("name the service: %w", err)
		}
		name = hex.EncodeToString(id[:])
		return tx.SetSetting(installationSetting, name)
	})
	return name, err
}

// In is where the state of a sync lives: nil is the ledger of the service.
func (k *States) In(ctx context.Context, a sources.Access, from source.Source, syncID int64) (executor.Warehouse, error) {
	if !a.KeepsState() {
		return nil, nil
	}
	name, err := k.Installation(ctx)
	if IsDry(ctx) && errors.Is(err, store.ErrNotFound) {
		name, err = "none", nil // no sync has a state yet, so there is none by this name either
	}
	if err != nil {
		return nil, err
	}
	state, ok := source.StateIn(from, fmt.Sprintf("%s_%d", name, syncID))
	if !ok {
		return nil, fmt.Errorf("keep the state of sync %d in its source: %w", syncID, source.ErrReadOnly)
	}
	return state, nil
}

// Access is what it takes to drop the state of a sync; the zero value where
// the service keeps it.
func (k *States) Access(tx *store.Tx, y *store.Sync) (sources.Access, error) {
	src, err := tx.Source(y.WorkspaceID, y.SourceID)
	if err != nil || !source.KeepsState(src.Type, src.Engine) {
		return sources.Access{}, err
	}
	return k.sources.Access(tx, src)
}

// Drop removes the state of a deleted sync from its warehouse, beside the
// caller: a warehouse that does not answer must not keep a sync alive.
func (k *States) Drop(a sources.Access, syncID int64) {
	if !a.KeepsState() {
		return
	}
	k.work.Later(fmt.Sprintf("drop the state of sync %d", syncID), func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, sources.Timeout)
		defer cancel()
		if err := k.tryDrop(ctx, a, syncID); err != nil {
			k.log.Warn("the state of a deleted sync stays in its warehouse", "sync", syncID, "error", a.Clean(err.Error()))
		}
	})
}

func (k *States) tryDrop(ctx context.Context, a sources.Access, syncID int64) error {
	name, err := k.Installation(ctx)
	if err != nil {
		return err
	}
	from, err := a.Open(ctx)
	if err != nil {
		return err
	}
	defer from.Close()
	state, ok := source.StateIn(from, fmt.Sprintf("%s_%d", name, syncID))
	if !ok {
		return nil
	}
	return state.Drop(ctx)
}
