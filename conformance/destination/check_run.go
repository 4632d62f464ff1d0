package destination

import (
	"context"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
)

// certificateChecks judge whether the line can be trusted at all.
var certificateChecks = []string{"TLS-002", "TLS-003", "TLS-004", "TLS-005"}

// needs are the checks that c builds on. Over a line that does not verify
// nothing but the TLS checks runs: no token and no record goes to a stranger.
func (s *session) needs(c *conformance.Check) []string {
	if s.Untrusted && !strings.HasPrefix(c.ID, "TLS-") {
		return append(slices.Clone(c.Needs), certificateChecks...)
	}
	return c.Needs
}

// newActor is the scenario of a check as the engine runs it.
func (s *session) newActor(ctx context.Context, found *engine.Findings) (actor any, end func() error) {
	s.JudgesAlone.Store(found.Confirming())
	sc := s.ScenarioOf(ctx, found)
	return sc, sc.End
}
