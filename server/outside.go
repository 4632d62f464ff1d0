package server

import (
	"errors"

	"github.com/destkit/destkit/server/internal/cluster"
	"github.com/destkit/destkit/server/internal/planning"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/store"
)

// syncEnds ends what is done for syncs.
type syncEnds struct{ s *Server }

// Halt ends what a sync does, and drops its ledger.
func (k syncEnds) Halt(id int64) error {
	s := k.s
	s.schedule.Drop(id)
	s.retries.Drop(id)
	s.engine.Halt(id)
	if s.member.Shares() {
		return s.member.Evict(s.background.Ctx, id)
	}
	return s.ledger.Sync(id).Forget()
}

// Forget drops what a deleted sync leaves behind.
func (k syncEnds) Forget(id int64) error {
	s, halted := k.s, k.Halt(id)
	err := s.store.Update(s.background.Ctx, func(tx *store.Tx) error {
		return errors.Join(planning.Forget(tx, id), tx.DeleteSetting(runs.RetrySetting(id)),
			cluster.Tell(tx, cluster.TopicSync, id))
	})
	if errors.Is(err, store.ErrNotFound) {
		err = nil // it never ran
	}
	return errors.Join(err, halted)
}
