package destination

import (
	"context"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
)

// permitted says what keeps a check from being run: what the caller has not permitted
// or equipped, or a line that does not verify.
func (s *session) permitted(c *conformance.Check) error {
	switch {
	case s.untrusted && !strings.HasPrefix(c.ID, "TLS-"):
		return notRun("a certificate that verifies", "the certificate of the endpoint does not verify, so nothing is sent to it")
	case c.Write && s.unwritten != nil:
		return notRun("", "%s", s.unwritten.reason())
	case c.Write && !s.opts.Write:
		return notRun("--write", "writes records: permit it with --write --object NAME")
	case c.ReadbackRequired && s.readback == nil:
		return notRun("readback", "only a read-back can decide it: give --readback-url or --readback-command")
	case (c.ReadbackRequired || c.ReadbackDecides) && s.hookFault != nil:
		return s.hookFault
	case c.Hook != "" && !s.hook(c.Hook).Set():
		return notRun("hook "+c.Hook, "needs the hook %s: give it in --hooks FILE", c.Hook)
	case strings.HasPrefix(c.ID, "TLS-") && !s.tlsJudged():
		return notRun("--development off", "TLS is not judged: %s; judge it with --development off or --tls-roots FILE", s.devWhy)
	case c.Load && !s.opts.Load:
		return notRun("--load", "sends at the declared speed: permit it with --load")
	case c.Probe && s.opts.ProbePlainHTTP == 0:
		return notRun("--probe-plain-http", "probes another port: permit it with --probe-plain-http PORT")
	}
	return nil
}

// certificateChecks judge whether the line can be trusted at all.
var certificateChecks = []string{"TLS-002", "TLS-003", "TLS-004", "TLS-005"}

// needs are the checks that c builds on. Over a line that does not verify
// nothing but the TLS checks runs: no token and no record goes to a stranger.
func (s *session) needs(c *conformance.Check) []string {
	if s.untrusted && !strings.HasPrefix(c.ID, "TLS-") {
		return append(slices.Clone(c.Needs), certificateChecks...)
	}
	return c.Needs
}

// chosen are the named objects that the endpoint lists.
func (s *session) chosen() []string {
	return slices.DeleteFunc(slices.Clone(s.opts.Objects), func(name string) bool { return s.catalog.object(name) == nil })
}

// newActor is the scenario of a check as the engine runs it.
func (s *session) newActor(ctx context.Context, found *engine.Findings) (actor any, end func() error) {
	s.judgesAlone.Store(found.Confirming())
	sc := s.scenarioOf(ctx, found)
	return sc, sc.end
}

// end looks for the cause of what was found twice, ends the hooks, and counts what was
// seen.
func (sc *scenario) end() error {
	defer sc.release()
	sc.reportFolding()
	if sc.Confirming() && sc.Held() != nil && sc.ctx.Err() == nil {
		sc.diagnose()
	}
	err := sc.endHooks()
	sc.count()
	if sc.Held() != nil && sc.hookAsked && !sc.shown(sc.object) {
		sc.Note("the read-back hook has shown no record of %s in this run yet: the hook itself may be at fault", sc.object)
	}
	return err
}
