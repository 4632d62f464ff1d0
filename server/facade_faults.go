package server

import (
	"context"

	"github.com/destkit/destkit/server/internal/faults"
)

// Fault is one thing that goes wrong on purpose in front of the API, Trigger says which
// calls it strikes, and ArmedFault is one in force with what has become of it.
type (
	Fault      = faults.Fault
	Trigger    = faults.Trigger
	ArmedFault = faults.ArmedFault
)

// UnfiredFaults lists the faults that never struck and still stand: a test that
// relies on one of them has tested nothing. Where other processes of the
// installation are alive there is nothing to tell yet, and the list is empty.
func (s *Server) UnfiredFaults() []ArmedFault {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.background.Ctx), leaveTimeout)
	defer cancel()
	return s.faults.UnfiredNow(ctx)
}
