// Package discover learns what an endpoint offers and refuses before it is judged: its
// objects, the values and plans that it takes, how late writes arrive, and whether the
// read-back hook can be believed. It judges nothing.
package discover

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
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

// Permitted returns what a check needs that the caller has not permitted or given.
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
	return lists.Where(s.Opts.Objects, func(name string) bool { return s.Catalog.Object(name) != nil })
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

// lasting are the named objects from which the run could not remove what it writes.
func (s *Discovery) lasting() []string {
	if !s.Opts.Write || s.Opts.Hooks.Cleanup.Set() {
		return nil
	}
	return lists.Where(s.Chosen(), func(name string) bool { return !s.Catalog.Object(name).Accepts("delete") })
}

// mostRecords is the most that the checks write into one object. A check that
// takes one object of several may take this one.
func (s *Discovery) mostRecords(checks []*conformance.Check) int {
	writing := lists.Where(checks, func(c *conformance.Check) bool { return c.Write && s.Permitted(c) == nil })
	if len(writing) == 0 {
		return 0
	}
	records := TrialRecords
	for _, c := range writing {
		records += c.Records
	}
	if s.HookTested(checks) {
		records += HookRecords
	}
	return min(records, s.Opts.MaxRecords)
}

// WhatLasts describes what the run would leave behind, "" when it can remove all.
func (s *Discovery) WhatLasts(checks []*conformance.Check) string {
	names, records := s.lasting(), s.mostRecords(checks)
	switch {
	case len(names) == 0 || records == 0:
		return ""
	case len(names) == 1:
		return fmt.Sprintf("up to %s will stay in %s, which accepts no deletes (mirror)", quantity.Count(records, "record"), names[0])
	}
	return fmt.Sprintf("up to %s will stay in each of %s, which accept no deletes (mirror)", quantity.Count(records, "record"), strings.Join(names, ", "))
}

// CheckLasting refuses fixtures that fit no record, and, if requested, what would be left behind.
func (s *Discovery) CheckLasting(checks []*conformance.Check) error {
	if err := s.CheckFixtures(); err != nil {
		return err
	}
	if what := s.WhatLasts(checks); what != "" && s.Opts.RefuseLeftovers {
		return conformance.Usage("nothing was written: %s: give a clean-up hook with --hooks FILE, name another --object, or accept it with --allow-leftovers", what)
	}
	return nil
}

// HookRecords is the most that the test of the hook writes into an object: one
// record for each of two operations, and three updates as witnesses.
const HookRecords = 5

// HookTested reports whether some check queries the hook, so that it is tested first.
func (s *Discovery) HookTested(checks []*conformance.Check) bool {
	asks := func(c *conformance.Check) bool { return c.Write && (c.ReadbackRequired || c.ReadbackDecides) }
	return s.Readback != nil && s.Opts.Write && slices.ContainsFunc(checks, asks)
}

// Preflight discovers the endpoint and separates problems from verdicts: no response, a response
// that is not the endpoint's, or an endpoint that reports itself unhealthy.
func (s *Discovery) Preflight(ctx context.Context, r *conformance.Report) {
	if s.TLSJudged() && s.URL.Scheme == "https" && !s.Trusted(ctx) {
		s.Catalog, s.Untrusted = &write.Catalog{}, true
		return
	}
	if s.TLSJudged() && s.URL.Scheme == "http" && s.Target.Token != "" {
		r.Notes = append(r.Notes, "the token travels over plain http")
	}
	c, err := s.Discover(ctx)
	silent := ""
	if err == nil && s.Responded.Load() {
		silent, err = s.Silent(ctx)
	}
	if err != nil {
		if status, reason, _ := engine.Decided(err); status == conformance.HarnessError {
			r.Problems = append(r.Problems, conformance.Problem{Kind: "harness", ExitStatus: 3, Message: reason})
		}
		return
	}
	s.Found(c)
	if s.Queued != nil {
		r.Notes = append(r.Notes, line.OneConnection+" (PAR-001): all calls of this run are made one after the other")
	}
	p := s.NothingToJudge(ctx, c)
	if p == nil && silent != "" {
		p = unreachable(silent, "check the URL, that this process runs too, and that this machine may reach it")
	}
	switch {
	case p != nil:
		s.Found(nil)
		r.Problems = append(r.Problems, *p)
	case c.Unhealthy != "":
		r.Problems = append(r.Problems, s.unhealthyProblem(c))
	}
}

func (s *Discovery) unhealthyProblem(c *write.Catalog) conformance.Problem {
	fix := "make test_connection succeed, then judge again"
	if s.Target.Token == "" && credentials.MatchString(c.Unhealthy) {
		fix = "give the token of the connection with --token-env NAME; or make test_connection succeed without one"
	}
	message := s.Redactor.String("the endpoint reports that it is unhealthy: " + foreign.Clip(c.Unhealthy, 500))
	return conformance.Problem{Kind: "unhealthy", ExitStatus: 3, Message: message, Fix: fix}
}

// NothingToJudge returns why no check could look at anything, nil when one could.
func (s *Discovery) NothingToJudge(ctx context.Context, c *write.Catalog) *conformance.Problem {
	if c.First != nil && !c.First.Ended() && c.Objects == nil && c.Speed == nil && !s.Responded.Load() {
		return s.Unreachable(ctx, c.First)
	}
	other := func(r *exchange.Reply) bool { return r.Status != http.StatusBadRequest }
	if len(c.Planning) > 0 && !slices.ContainsFunc(c.Planning, other) && s.speaksTLS(ctx) {
		return unreachable(spokenTLS+": every call is answered with HTTP status 400", beginHTTPS)
	}
	return s.uniform(ctx, c.Planning)
}

const (
	spokenTLS  = "TLS is spoken on this port, and the URL begins with http://"
	beginHTTPS = "begin the URL with https://"
)

// Unreachable is an endpoint from which no HTTP response came to its end.
func (s *Discovery) Unreachable(ctx context.Context, first *exchange.Reply) *conformance.Problem {
	what, fix := s.WhyUnreached(first, "endpoint", s.URL.Host)
	if s.speaksTLS(ctx) {
		what, fix = spokenTLS, beginHTTPS
	}
	message := line.NoResponse(first) + " from the endpoint: " + what
	if _, other := errors.AsType[tls.RecordHeaderError](first.Err); other {
		message = what // the scheme explains it
	}
	return unreachable(s.Redactor.String(message), fix)
}

func unreachable(message, fix string) *conformance.Problem {
	return &conformance.Problem{Kind: "unreachable", ExitStatus: 3, Message: message, Fix: fix}
}

// speaksTLS reports whether a URL of plain http leads to a port of TLS.
func (s *Discovery) speaksTLS(ctx context.Context) bool {
	if s.URL.Scheme != "http" || s.InMemory {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, s.Opts.PlanningTimeout)
	defer cancel()
	_, err := s.Client.Handshake(limited, &tls.Config{MinVersion: tls.VersionTLS10, InsecureSkipVerify: true})
	return err == nil
}

// AsError is a problem for calls that make no report.
func AsError(p *conformance.Problem) error {
	if p.Fix == "" {
		return errors.New(p.Message)
	}
	return errors.New(p.Message + ": " + p.Fix)
}
