package server

import (
	"context"
	"fmt"

	"github.com/destkit/destkit/server/internal/store"
)

// What a destination offers is cached in the store, where every process reads it.
// What a process keeps open for one (idle connections, the records of an emulated
// one) is its own, and the others are told when it holds no longer.

// changedElsewhere and goneElsewhere are the notices of topicObjects.
const (
	changedElsewhere = "changed"
	goneElsewhere    = "gone"
)

// noticeObjects is the text of a notice; the process that has sent it knows already.
func (s *Server) noticeObjects(id int64, what string) string {
	return fmt.Sprintf("%d %s %s", id, what, s.config.Process)
}

// tellDestination tells the other processes, when the change is committed.
func (s *Server) tellDestination(tx *store.Tx, id int64, what string) error {
	return tx.Notify(topicObjects, s.noticeObjects(id, what))
}

// hearObjects lets go of what another process has changed.
func (s *Server) hearObjects(text string) {
	var id int64
	var what, process string
	if _, err := fmt.Sscan(text, &id, &what, &process); err != nil || process == s.config.Process {
		return
	}
	if what != goneElsewhere {
		s.gate.Idle(id)
		return
	}
	// Beside the bus: its records may be in a database that does not answer.
	s.background.Later(fmt.Sprintf("close destination %d", id), func(context.Context) {
		if err := s.gate.Forget(id); err != nil {
			s.log.Warn("a destination that is gone cannot be closed", "destination", id, "error", err)
		}
	})
}
