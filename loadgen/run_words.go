package loadgen

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// limitNote precedes a reason of Generator.Reasons among the notes.
const limitNote = "the generator was a limit: "

// exceeds reports where the load goes beyond what the target allows: only
// as declared it is held back.
func (s *session) exceeds(mode string) {
	d, o := s.e.declared, s.o
	switch mode {
	case "as-declared":
		return
	case "search":
		s.note("a search goes beyond what the destination declares")
		return
	}
	if int64(s.e.plan.size) > d.Speed.MaximumBatchSize {
		s.note("batches of %s exceed the declared maximum_batch_size of %d", quantity.Count(s.e.plan.size, "record"), d.Speed.MaximumBatchSize)
	}
	if int64(o.Connections) > min(d.Speed.MaximumParallelBatches, ServiceParallel) {
		s.note("%s: more than the declared maximum_parallel_batches of %d", quantity.Count(o.Connections, "connection"), d.Speed.MaximumParallelBatches)
	}
	peak := 0.0
	for _, st := range o.Stages {
		peak = max(peak, st.From, st.To)
	}
	if allowed := declaredRate(d, d.Limit, s.e.plan.size); peak > allowed {
		s.note("%.6g requests/s exceed the declared speed, which allows %.6g", peak, allowed)
	}
}

// note reports something before or while it runs, remark at the end, when the
// result is shown anyway.
func (s *session) note(format string, args ...any) {
	s.remark(format, args...)
	if s.o.Note != nil {
		s.o.Note(s.result.Notes[len(s.result.Notes)-1])
	}
}

func (s *session) remark(format string, args ...any) {
	s.result.Notes = append(s.result.Notes, fmt.Sprintf(format, args...))
}

// mostByHand bounds how many changes are described in words; the result has them all.
const mostByHand = 20

// tellByHand reports the changes while the load ran, and the period of the figures.
func (s *session) tellByHand(m *measure) {
	r := s.result
	r.ByHand = s.o.Control.byHand()
	paused, since := 0.0, -1.0
	for i, c := range r.ByHand {
		text := ""
		switch c.Did {
		case "pause":
			since = c.At
			text = fmt.Sprintf("paused by hand after %.1f s", c.At)
		case "resume":
			paused, since = paused+c.At-max(since, 0), -1
			text = fmt.Sprintf("went on by hand after %.1f s", c.At)
		default:
			text = fmt.Sprintf("the rate was changed by hand after %.1f s: from %.6g to %.6g requests/s", c.At, c.From, c.To)
		}
		if i < mostByHand {
			s.remark("%s", text)
		}
	}
	if more := len(r.ByHand) - mostByHand; more > 0 {
		s.remark("%s by hand: the JSON result has all", quantity.Count(more, "further change"))
	}
	if since >= 0 {
		paused += max(m.seconds()-since, 0)
	}
	switch {
	case paused > 0:
		s.remark("figures and thresholds are those of all %.1f s, of which it was paused %.1f s", m.seconds(), paused)
	case len(r.ByHand) > 0:
		s.remark("figures and thresholds are those of all %.1f s, at each of these rates together", m.seconds())
	}
}

// comment describes what the figures alone would hide.
func (s *session) comment(m *measure, ph phase) {
	r := s.result
	if r.Generator.Limited {
		for _, reason := range r.Generator.Reasons {
			s.remark(limitNote+"%s", reason)
		}
	}
	s.tellByHand(m)
	if !ph.open {
		return
	}
	lasted := time.Duration(m.stopped - m.began)
	if ph.duration > 0 {
		lasted = min(lasted, ph.duration) // a burst is not due because the end was seen late
	}
	asked := meanRate(ph.stages, ph.burst, lasted)
	if p := s.e.pacer; p != nil && len(p.Changes()) > 0 && lasted > 0 {
		asked = changedRate(ph, p.Changes(), lasted)
		r.Load.Rate = asked
	}
	if s.e.follow {
		s.e.limits.Lock()
		r.Declared.Changes, r.Declared.SpeedChanges = s.e.limits.changes, s.e.limits.speeds
		if rests := s.e.limits.rests; rests.Times > 0 {
			r.Declared.Rests = &rests
		}
		s.e.limits.Unlock()
		if r.Errors == 0 && m.reason != stopTime && lasted < shortestWord {
			s.remark("it ended after %s: too soon to say whether the declared speed is kept", time.Duration(r.Seconds*float64(time.Second)).Round(time.Millisecond))
			return
		}
		kept := r.Errors == 0 && (r.RequestsPerSecond >= 0.99*asked || keptUp(m, asked*lasted.Seconds(), r.Declared.Parallel))
		r.Declared.Kept = &kept
		return
	}
	if r.RequestsPerSecond < 0.99*asked && m.reason == stopTime && m.requests > 10 {
		what := "the target did not take more"
		switch late := m.requests - int64(r.RequestsPerSecond*r.Seconds+0.5); {
		case m.queued*2 > m.requests:
			what = fmt.Sprintf("%s %s busy: the target is slower, or more --connections are needed", allOf(ph.connections, "connection"), quantity.Verb(ph.connections, "was", "were"))
		case float64(m.requests) >= 0.99*asked*lasted.Seconds():
			what = fmt.Sprintf("all were sent, and %d were answered after the end or never", late)
		case r.Generator.Limited && m.late+m.unsent > 0:
			what = "the generator did not send more"
		}
		s.remark("the rate was not reached: %.6g of %.6g requests/s; %s", r.RequestsPerSecond, asked, what)
	}
}

// shortestWord is how long a load of so many records lasts at least to show a speed.
const shortestWord = 100 * time.Millisecond

// keptUp reports whether a target took requests as they were due: all were sent, unless a
// slower target holds all connections, and requests under way at the end are few or ended
// soon. The figures per second leave those out.
func keptUp(m *measure, due float64, parallel int64) bool {
	if m.requests == 0 || float64(m.requests) < 0.99*due-1 {
		return false
	}
	soon := 2*m.service.Min() + int64(50*time.Millisecond)
	return m.requests >= 100*parallel || m.ended-m.stopped <= soon
}

// allOf is "all 8 connections", or "the only connection".
func allOf[N quantity.Integer](n N, noun string) string {
	if n == 1 {
		return "the only " + noun
	}
	return "all " + quantity.Count(n, noun)
}

// explainPlanning describes the failure of a planning call: before a load there
// is one error and no table of kinds.
func explainPlanning(e *wire.Endpoint, err error) error {
	if status, ok := errors.AsType[*rpc.StatusError](err); ok {
		if refused := status.Status == 401 || status.Status == 403; refused && !tokenSent(e) {
			return fmt.Errorf("no token was sent, and the endpoint answers HTTP %d: %s", status.Status, giveToken)
		} else if refused {
			return fmt.Errorf("the endpoint refuses the token (HTTP %d): is --token-env right?", status.Status)
		}
		if status.Status == 400 && speaksOfTLS(status.Body) {
			return fmt.Errorf("%s: %s", called(err), wire.TLSPort)
		}
		return fmt.Errorf("%s: %s", called(err), e.Redact(wire.StatusText(status.Status, []byte(status.Body))))
	}
	if words := lineWords(e, err); words != "" {
		return fmt.Errorf("%s: %s", called(err), e.Redact(words))
	}
	var refused *rpc.Error
	if errors.As(err, &refused) && !tokenSent(e) && authentication.MatchString(refused.Message) {
		return fmt.Errorf("%s; no token was sent: %s", e.Redact(err.Error()), giveToken)
	}
	return errors.New(e.Redact(err.Error()))
}

// giveToken is what to do where the endpoint wants a token.
const giveToken = "run 'export DESTKIT_TOKEN=…', or give --token-env NAME (NAME is the environment variable that holds it)"

// authentication is how messages speak of a caller who is not known.
var authentication = regexp.MustCompile(`(?i)authenticat|authori[sz]|credential|token|api[ _-]?key|forbidden|denied`)

// tokenSent reports whether the requests carry a token.
func tokenSent(e *wire.Endpoint) bool { return e.Header.Get("Authorization") != "" }

// speaksOfTLS recognises the page by which servers refuse plain http on a port of
// TLS: that of Go and that of nginx.
func speaksOfTLS(body string) bool {
	lower := strings.ToLower(body)
	return strings.Contains(lower, "http request to an https server") || strings.Contains(lower, "plain http request was sent to https port")
}

// lineWords sorts what went wrong before there was a whole reply; "" for the rest,
// which is about the reply and names it.
func lineWords(e *wire.Endpoint, err error) string {
	text := err.Error()
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial" && !wire.TimedOut(err):
		return wire.Dial(err).Message
	case wire.TimedOut(err):
		return fmt.Sprintf("no whole reply in %s (--planning-timeout)", e.Transport.PlanningTimeout)
	case strings.Contains(text, "HTTP response to HTTPS client"):
		return wire.PlainPort
	case strings.Contains(text, "tls: "), strings.Contains(text, "x509: "):
		return wire.TLS(err).Message
	case strings.Contains(text, `malformed HTTP response "\x15\x03`): // an alert of TLS
		return wire.TLSPort
	case strings.Contains(text, "malformed HTTP"):
		return "the reply is not HTTP: is the port right?"
	case strings.Contains(text, ": send request: "):
		return wire.Call(err, false).Message
	}
	return ""
}

// called is the part of an error that names the call.
func called(err error) string {
	what, _, _ := strings.Cut(err.Error(), ": ")
	return what
}
