// Package discover learns what an endpoint offers and refuses before it is judged: its
// objects, the values and plans that it takes, how late writes arrive, and whether the
// read-back hook can be believed. It judges nothing.
package discover

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/internal/quantity"
)

// Discovery is a run with what was learned of its endpoint.
type Discovery struct {
	write.Session
	// HookFault: the read-back hook failed its own test and is not believed.
	HookFault error
	Unwritten *Unwritten // why a run that may write does not; nil when it does
	Untrusted bool       // the certificate does not verify
}

// Permitted says what keeps a check from being run: what the caller has not permitted
// or equipped, or a line that does not verify.
func (s *Discovery) Permitted(c *conformance.Check) error {
	switch {
	case s.Untrusted && !strings.HasPrefix(c.ID, "TLS-"):
		return engine.NotRun("a certificate that verifies", "the certificate of the endpoint does not verify, so nothing is sent to it")
	case c.Write && s.Unwritten != nil:
		return engine.NotRun("", "%s", s.Unwritten.Reason())
	case c.Write && !s.Opts.Write:
		return engine.NotRun("--write", "writes records: permit it with --write --object NAME")
	case c.ReadbackRequired && s.Readback == nil:
		return engine.NotRun("readback", "only a read-back can decide it: give --readback-url or --readback-command")
	case (c.ReadbackRequired || c.ReadbackDecides) && s.HookFault != nil:
		return s.HookFault
	case c.Hook != "" && !s.Hook(c.Hook).Set():
		return engine.NotRun("hook "+c.Hook, "needs the hook %s: give it in --hooks FILE", c.Hook)
	case strings.HasPrefix(c.ID, "TLS-") && !s.TLSJudged():
		return engine.NotRun("--development off", "TLS is not judged: %s; judge it with --development off or --tls-roots FILE", s.DevWhy)
	case c.Load && !s.Opts.Load:
		return engine.NotRun("--load", "sends at the declared speed: permit it with --load")
	case c.Probe && s.Opts.ProbePlainHTTP == 0:
		return engine.NotRun("--probe-plain-http", "probes another port: permit it with --probe-plain-http PORT")
	}
	return nil
}

// Chosen are the named objects that the endpoint lists.
func (s *Discovery) Chosen() []string {
	return slices.DeleteFunc(slices.Clone(s.Opts.Objects), func(name string) bool { return s.Catalog.Object(name) == nil })
}

// Unwritten is why a run that may write does not: objects that are not listed.
type Unwritten struct {
	Missing []string
	Check   string // the one about the list that does not hold; "" for none
	Why     string
}

// Reason is that of a check which writes, as long as the others are not judged.
func (u *Unwritten) Reason() string {
	if u.Check != "" {
		return "blocked by " + u.Check
	}
	return fmt.Sprintf("object %s is not listed: %s", quantity.List(u.Missing), u.Why)
}
