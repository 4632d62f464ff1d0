package destination

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/internal/unreached"
)

// preflight discovers the endpoint and keeps apart what is no verdict: there is
// no answer, or it is no answer of the endpoint, or the endpoint says itself
// that it is unhealthy.
func (s *session) preflight(ctx context.Context, r *conformance.Report) {
	if s.tlsJudged() && s.url.Scheme == "https" && !s.trusted(ctx) {
		s.catalog, s.untrusted = &catalog{}, true
		return
	}
	if s.tlsJudged() && s.url.Scheme == "http" && s.target.Token != "" {
		r.Notes = append(r.Notes, "the token travels over plain http")
	}
	c, err := s.discover(ctx)
	silent := ""
	if err == nil && s.responded.Load() {
		silent, err = s.silent(ctx)
	}
	if err != nil {
		if statusOf(err) == conformance.HarnessError {
			r.Problems = append(r.Problems, conformance.Problem{Kind: "harness", ExitStatus: 3, Message: reasonOf(err)})
		}
		return
	}
	s.found(c)
	if s.queued != nil {
		r.Notes = append(r.Notes, oneConnection+" (PAR-001): all calls of this run are made one after the other")
	}
	if p := s.nothingToJudge(ctx, c); p != nil {
		s.found(nil)
		r.Problems = append(r.Problems, *p)
		return
	}
	switch {
	case silent != "":
		s.found(nil)
		r.Problems = append(r.Problems, conformance.Problem{
			Kind: "unreachable", ExitStatus: 3, Message: silent,
			Fix: "check the URL, that this process runs too, and that this machine may reach it",
		})
	case c.unhealthy != "":
		r.Problems = append(r.Problems, s.unhealthyProblem(c))
	}
}

func (s *session) unhealthyProblem(c *catalog) conformance.Problem {
	p := conformance.Problem{
		Kind: "unhealthy", ExitStatus: 3,
		Message: s.redactor.String("the endpoint says that it is unhealthy: " + foreign.Clip(c.unhealthy, 500)),
		Fix:     "make test_connection succeed, then judge again",
	}
	if s.target.Token == "" && speaksOfCredentials(c.unhealthy) {
		p.Fix = "give the token of the connection with --token-env NAME; or make test_connection succeed without one"
	}
	return p
}

// nothingToJudge says why no check could look at anything, nil when there is
// something to look at.
func (s *session) nothingToJudge(ctx context.Context, c *catalog) *conformance.Problem {
	if c.first != nil && !c.first.Ended() && c.objects == nil && c.speed == nil && !s.responded.Load() {
		return s.unreachable(ctx, c.first)
	}
	p := s.uniform(ctx, c.planning)
	if p == nil && !statusOfAll(c.planning, 400) {
		return nil
	}
	if statusOfAll(c.planning, 400) && s.speaksTLS(ctx) {
		return &conformance.Problem{
			Kind: "unreachable", ExitStatus: 3,
			Message: "TLS is spoken on this port, and the URL begins with http://: every call is answered with HTTP status 400",
			Fix:     "begin the URL with https://",
		}
	}
	return p
}

// noResponse tells a reply that never began from one that never ended.
func noResponse(r *reply) string {
	if r.Received > 0 {
		return "no complete HTTP response"
	}
	return "no HTTP response"
}

// unreachable is an endpoint from which no HTTP response came to its end.
func (s *session) unreachable(ctx context.Context, first *reply) *conformance.Problem {
	what, fix := s.whyUnreached(first, "endpoint", s.url.Host)
	if s.speaksTLS(ctx) {
		what, fix = "TLS is spoken on this port, and the URL begins with http://", "begin the URL with https://"
	}
	message := noResponse(first) + " from the endpoint: " + what
	if _, other := errors.AsType[tls.RecordHeaderError](first.Err); other {
		message = what // the scheme says it all
	}
	return &conformance.Problem{Kind: "unreachable", ExitStatus: 3, Message: s.redactor.String(message), Fix: fix}
}

// whyUnreached says in plain words why a reply did not come to its end, and what to do.
func (s *session) whyUnreached(r *reply, name, host string) (what, fix string) {
	cause := unreached.Of(r.Err, name, host)
	switch {
	case r.Kind == wire.KindTimeout && r.Framing == wire.FramingClose && len(r.Body) > 0:
		then := ""
		if json.Valid(r.Body) {
			then = ", then nothing"
		}
		return fmt.Sprintf("HTTP %d and %s came%s: the response has neither Content-Length nor chunked encoding, and the connection stays open",
			r.Status, quantity.Count(len(r.Body), "byte"), then), "send Content-Length, or close the connection"
	case r.Kind == wire.KindTimeout && r.Received > 0:
		return r.Failure(), "look whether the " + name + " hangs in the middle of a response, or announces a longer one than it sends"
	case cause == unreached.Cause{} || r.Received > 0:
		return r.Failure(), "check the URL, that the " + name + " runs, and that this machine may reach it"
	case cause.Late:
		return r.Failure(), cause.Fix // with the time
	}
	return cause.What, cause.Fix
}

// speaksTLS reports whether a URL of plain http leads to a port of TLS. It is
// asked only when no call was answered as one would be over plain http.
func (s *session) speaksTLS(ctx context.Context) bool {
	if s.url.Scheme != "http" || s.inMemory {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, s.opts.PlanningTimeout)
	defer cancel()
	_, err := s.client.Handshake(limited, &tls.Config{MinVersion: tls.VersionTLS10, InsecureSkipVerify: true}, "", s.url.Hostname())
	return err == nil
}

// asError is a problem for calls that make no report.
func asError(p *conformance.Problem) error {
	if p.Fix == "" {
		return errors.New(p.Message)
	}
	return errors.New(p.Message + ": " + p.Fix)
}
