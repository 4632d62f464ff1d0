package discover

import (
	"context"
	"crypto/tls"
	"errors"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/internal/foreign"
)

// Preflight discovers the endpoint and keeps apart what is no verdict: there is
// no answer, or it is no answer of the endpoint, or the endpoint says itself
// that it is unhealthy.
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
		if status, reason, _ := line.Decided(err); status == conformance.HarnessError {
			r.Problems = append(r.Problems, conformance.Problem{Kind: "harness", ExitStatus: 3, Message: reason})
		}
		return
	}
	s.Found(c)
	if s.Queued != nil {
		r.Notes = append(r.Notes, line.OneConnection+" (PAR-001): all calls of this run are made one after the other")
	}
	if p := s.NothingToJudge(ctx, c); p != nil {
		s.Found(nil)
		r.Problems = append(r.Problems, *p)
		return
	}
	switch {
	case silent != "":
		s.Found(nil)
		r.Problems = append(r.Problems, conformance.Problem{
			Kind: "unreachable", ExitStatus: 3, Message: silent,
			Fix: "check the URL, that this process runs too, and that this machine may reach it",
		})
	case c.Unhealthy != "":
		r.Problems = append(r.Problems, s.unhealthyProblem(c))
	}
}

func (s *Discovery) unhealthyProblem(c *write.Catalog) conformance.Problem {
	p := conformance.Problem{
		Kind: "unhealthy", ExitStatus: 3,
		Message: s.Redactor.String("the endpoint says that it is unhealthy: " + foreign.Clip(c.Unhealthy, 500)),
		Fix:     "make test_connection succeed, then judge again",
	}
	if s.Target.Token == "" && speaksOfCredentials(c.Unhealthy) {
		p.Fix = "give the token of the connection with --token-env NAME; or make test_connection succeed without one"
	}
	return p
}

// NothingToJudge says why no check could look at anything, nil when there is
// something to look at.
func (s *Discovery) NothingToJudge(ctx context.Context, c *write.Catalog) *conformance.Problem {
	if c.First != nil && !c.First.Ended() && c.Objects == nil && c.Speed == nil && !s.Responded.Load() {
		return s.Unreachable(ctx, c.First)
	}
	p := s.uniform(ctx, c.Planning)
	if p == nil && !statusOfAll(c.Planning, 400) {
		return nil
	}
	if statusOfAll(c.Planning, 400) && s.speaksTLS(ctx) {
		return &conformance.Problem{
			Kind: "unreachable", ExitStatus: 3,
			Message: "TLS is spoken on this port, and the URL begins with http://: every call is answered with HTTP status 400",
			Fix:     "begin the URL with https://",
		}
	}
	return p
}

// Unreachable is an endpoint from which no HTTP response came to its end.
func (s *Discovery) Unreachable(ctx context.Context, first *exchange.Reply) *conformance.Problem {
	what, fix := s.WhyUnreached(first, "endpoint", s.URL.Host)
	if s.speaksTLS(ctx) {
		what, fix = "TLS is spoken on this port, and the URL begins with http://", "begin the URL with https://"
	}
	message := line.NoResponse(first) + " from the endpoint: " + what
	if _, other := errors.AsType[tls.RecordHeaderError](first.Err); other {
		message = what // the scheme says it all
	}
	return &conformance.Problem{Kind: "unreachable", ExitStatus: 3, Message: s.Redactor.String(message), Fix: fix}
}

// speaksTLS reports whether a URL of plain http leads to a port of TLS. It is
// asked only when no call was answered as one would be over plain http.
func (s *Discovery) speaksTLS(ctx context.Context) bool {
	if s.URL.Scheme != "http" || s.InMemory {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, s.Opts.PlanningTimeout)
	defer cancel()
	_, err := s.Client.Handshake(limited, &tls.Config{MinVersion: tls.VersionTLS10, InsecureSkipVerify: true}, "", s.URL.Hostname())
	return err == nil
}

// AsError is a problem for calls that make no report.
func AsError(p *conformance.Problem) error {
	if p.Fix == "" {
		return errors.New(p.Message)
	}
	return errors.New(p.Message + ": " + p.Fix)
}
