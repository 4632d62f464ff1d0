package destination

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// Rules hold for every exchange of a run, and not only for the calls of their own
// scenarios: a page of HTML for one odd record is no JSON either. What the rules find in
// any exchange, and no failed check shows, becomes a finding of the rule.

// overall puts the exchanges of a live run to the rules, as a proxy does with those of
// others.
type overall struct {
	mu    sync.Mutex
	rules *ruler
	calls int
	lost  []*reply // good calls that got no response
}

// beginOverall has the rules of the checks that are selected.
func (s *session) beginOverall(checks []*conformance.Check) (err error) {
	own := &session{target: Target{URL: s.target.URL}, opts: s.opts, url: s.url, redactor: s.redactor, secret: s.secret, dev: s.dev, cat: s.cat, keys: s.keys}
	own.replicas.names, own.replicas.lines = s.replicas.names, s.replicas.lines
	s.overall.rules, err = newRuler(own, own.suite(), slices.DeleteFunc(slices.Clone(checks), func(c *conformance.Check) bool {
		// What is about time or pace is judged by calls that are alone.
		return !rules.Decides(c.ID) || c.Acquit || c.Load || strings.HasPrefix(c.ID, "TLS-")
	}))
	s.seen = s.observe
	return err
}

// observe looks at one reply of the run. Calls that the judge itself cut short, or that
// did not go to the endpoint as it was given, say nothing of others.
func (s *session) observe(req request, r *reply) {
	if s.overall.rules == nil || req.url != "" || req.plain || req.conn != nil || req.cutAtOnce || req.cutReply > 0 || req.cutRequest > 0 {
		return
	}
	var unread *wire.SyntaxError
	if r.Kind == wire.KindUnread || errors.As(r.DocErr, &unread) && unread.Kind == wire.SyntaxTooLarge {
		return
	}
	if s.watch.expected() { // an author's hook makes the endpoint another one
		return
	}
	method := req.httpMethod
	if method == "" {
		method = http.MethodPost
	}
	s.overall.mu.Lock()
	defer s.overall.mu.Unlock()
	s.overall.calls++
	shown := *r
	c := rules.Read(&shown, method, s.authOf(req), s.overall.calls)
	if c.Good() && (r.Kind == wire.KindClosed || r.Kind == wire.KindReset) {
		s.overall.lost = append(s.overall.lost, r)
	}
	s.overall.rules.see(c)
}

// authOf is the Authorization header of a call.
func (s *session) authOf(req request) string {
	if lines, set := req.header["Authorization"]; set {
		return strings.Join(lines, "")
	}
	if token := s.token.get(); token != "" {
		return "Bearer " + token
	}
	for name, value := range s.target.Headers {
		if strings.EqualFold(name, "Authorization") {
			return value
		}
	}
	return ""
}

// forgetSchema is called when a hook may have changed the schema of the endpoint.
func (s *session) forgetSchema() {
	s.overall.mu.Lock()
	defer s.overall.mu.Unlock()
	if s.overall.rules != nil {
		s.overall.rules.traffic.ForgetFields()
	}
}

// brokenOverall adds to the findings of a rule what was broken outside its own scenario.
// What a failed check shows already is not shown again, and one lost connection is none.
func (s *session) brokenOverall(ctx context.Context, found *engine.Findings, shown func(symptom string, warnings bool) bool) {
	s.overall.mu.Lock()
	defer s.overall.mu.Unlock()
	check := found.Check().ID
	sc := s.scenarioOf(ctx, found)
	if ctx.Err() == nil {
		sc.ofCleanUp()
	}
	if check == "HTTP-003" && len(s.overall.lost) > 1 && len(s.watch.outages) == 0 {
		for _, r := range s.overall.lost {
			if symptom := r.Symptom(); !shown(symptom, false) && !slices.Contains(found.Symptoms(), symptom) {
				sc.brokenAs(symptom, "", "a response to every call", r.What()+": "+r.Failure(), r)
			}
		}
	}
	if pc := s.overall.rules.byID[check]; pc != nil {
		s.overall.rules.conclude(pc)
		found.TakeUnless(func(symptom string) bool { return shown(symptom, true) }, pc.found)
	}
}
