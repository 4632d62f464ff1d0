package server

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// installationSetting holds a name of this service: several may keep states in
// one warehouse, and all number their syncs from 1.
const installationSetting = "installation"

// installation gives the name, and makes it when it is first asked for; a dry run
// makes none.
func (s *Server) installation(ctx context.Context) (name string, err error) {
	if isDry(ctx) {
		err = s.store.View(ctx, func(tx *store.Tx) error {
			name, err = tx.Setting(installationSetting)
			return err
		})
		return name, err
	}
	err = s.store.Update(ctx, func(tx *store.Tx) error {
		if name, err = tx.Setting(installationSetting); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		var id [6]byte
		if _, err := io.ReadFull(s.config.Random, id[:]); err != nil {
			return fmt.Errorf("name the service: %w", err)
		}
		name = hex.EncodeToString(id[:])
		return tx.SetSetting(installationSetting, name)
	})
	return name, err
}

// stateIn is where the state of a sync lives: nil is the ledger of the service.
func (s *Server) stateIn(ctx context.Context, a sources.Access, from source.Source, syncID int64) (executor.Warehouse, error) {
	if !a.KeepsState() {
		return nil, nil
	}
	name, err := s.installation(ctx)
	if isDry(ctx) && errors.Is(err, store.ErrNotFound) {
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

// stateAccess is what it takes to drop the state of a sync; the zero value where
// the service keeps it.
func (s *Server) stateAccess(tx *store.Tx, y *store.Sync) (sources.Access, error) {
	src, err := tx.Source(y.WorkspaceID, y.SourceID)
	if err != nil || !source.KeepsState(src.Type, src.Engine) {
		return sources.Access{}, err
	}
	return s.sources.Access(tx, src)
}

// dropState removes the state of a deleted sync from its warehouse, beside the
// caller: a warehouse that does not answer must not keep a sync alive.
func (s *Server) dropState(a sources.Access, syncID int64) {
	if !a.KeepsState() {
		return
	}
	s.background.Later(fmt.Sprintf("drop the state of sync %d", syncID), func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, sources.Timeout)
		defer cancel()
		if err := s.tryDropState(ctx, a, syncID); err != nil {
			s.log.Warn("the state of a deleted sync stays in its warehouse", "sync", syncID, "error", a.Clean(err.Error()))
		}
	})
}

func (s *Server) tryDropState(ctx context.Context, a sources.Access, syncID int64) error {
	name, err := s.installation(ctx)
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
