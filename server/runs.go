package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/destkit/destkit/server/internal/binding"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// openLedger opens the ledger, in a folder of the data directory.
func (s *Server) openLedger() (err error) {
	if s.ledger, err = ledger.Open(ledger.Options{Dir: s.config.below(binding.Folder)}); err != nil {
		return fmt.Errorf("open ledger: %w", err)
	}
	return nil
}

// run lets syncs run: first those that were interrupted, then what falls due.
func (s *Server) run(ctx context.Context) error {
	options := executor.Options{
		Clock: s.clock, Ledger: s.ledger, Limiter: s.gate.Limiter, BatchTimeout: s.config.BatchTimeout, PlanTimeout: s.config.CallTimeout, Grace: s.config.grace,
		Payloads: true, Log: s.log, Deviations: s.seams.Deviations,
	}
	s.executor = executor.New(options)
	if err := errors.Join(s.engine.Resume(ctx), s.schedule.All(ctx), s.retention.Look(ctx)); err != nil {
		return err
	}
	s.lifecycle.Resume(ctx)
	s.mail.Resume(ctx)
	return nil
}

// syncEnds ends what is done for syncs.
type syncEnds struct{ s *Server }

// Halt ends what a sync does, and drops its ledger.
func (k syncEnds) Halt(id int64) error {
	s := k.s
	s.schedule.Drop(id)
	s.retries.Drop(id)
	s.engine.Halt(id)
	return s.ledger.Sync(id).Forget()
}

// Forget drops what a deleted sync leaves behind.
func (k syncEnds) Forget(id int64) error {
	s, halted := k.s, k.Halt(id)
	err := s.store.Update(s.background.Ctx, func(tx *store.Tx) error {
		return errors.Join(runs.ForgetEndpoint(tx, id), tx.DeleteSetting(runs.RetrySetting(id)))
	})
	if errors.Is(err, store.ErrNotFound) {
		err = nil // it never ran
	}
	return errors.Join(err, halted)
}
