package destination

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/judge"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// Rules hold for every exchange of a run, and not only for the calls of their own
// scenarios: a page of HTML for one odd record is no JSON either. What the rules find in
// any exchange, and no failed check shows, becomes a finding of the rule.

// beginOverall has the rules of the checks that are selected.
func (s *session) beginOverall(checks []*conformance.Check) (err error) {
	own := &session{}
	own.Target.URL, own.Opts, own.URL, own.Redactor, own.Secret, own.Dev = s.Target.URL, s.Opts, s.URL, s.Redactor, s.Secret, s.Dev
	own.Cat, own.Keys = s.Cat, s.Keys
	own.Replicas.Names, own.Replicas.Lines = s.Replicas.Names, s.Replicas.Lines
	s.Overall.Rules, err = judge.NewRuler(&own.Judge, own.suite(), slices.DeleteFunc(slices.Clone(checks), func(c *conformance.Check) bool {
		// What is about time or pace is judged by calls that are alone.
		return !rules.Decides(c.ID) || c.Acquit || c.Load || strings.HasPrefix(c.ID, "TLS-")
	}))
	s.Seen = s.observe
	return err
}

// observe looks at one reply of the run. Calls that the judge itself cut short, or that
// did not go to the endpoint as it was given, say nothing of others.
func (s *session) observe(req line.Request, r *exchange.Reply) {
	if s.Overall.Rules == nil || req.URL != "" || req.Plain || req.Conn != nil || req.CutAtOnce || req.CutReply > 0 || req.CutRequest > 0 {
		return
	}
	var unread *wire.SyntaxError
	if r.Kind == wire.KindUnread || errors.As(r.DocErr, &unread) && unread.Kind == wire.SyntaxTooLarge {
		return
	}
	if s.Watch.Expected() { // an author's hook makes the endpoint another one
		return
	}
	method := req.HTTPMethod
	if method == "" {
		method = http.MethodPost
	}
	s.Overall.Mu.Lock()
	defer s.Overall.Mu.Unlock()
	s.Overall.Calls++
	shown := *r
	c := rules.Read(&shown, method, s.authOf(req), s.Overall.Calls)
	if c.Good() && (r.Kind == wire.KindClosed || r.Kind == wire.KindReset) {
		s.Overall.Lost = append(s.Overall.Lost, r)
	}
	s.Overall.Rules.See(c)
}

// authOf is the Authorization header of a call.
func (s *session) authOf(req line.Request) string {
	if lines, set := req.Header["Authorization"]; set {
		return strings.Join(lines, "")
	}
	if token := s.Token.Get(); token != "" {
		return "Bearer " + token
	}
	for name, value := range s.Target.Headers {
		if strings.EqualFold(name, "Authorization") {
			return value
		}
	}
	return ""
}

// brokenOverall adds to the findings of a rule what was broken outside its own scenario.
// What a failed check shows already is not shown again, and one lost connection is none.
func (s *session) brokenOverall(ctx context.Context, found *engine.Findings, shown func(symptom string, warnings bool) bool) {
	check := found.Check().ID
	sc := s.ScenarioOf(ctx, found)
	if ctx.Err() == nil {
		sc.OfCleanUp() // it can send, which the rules look at
	}
	s.Overall.Mu.Lock()
	defer s.Overall.Mu.Unlock()
	if check == "HTTP-003" && len(s.Overall.Lost) > 1 && len(s.Watch.Outages) == 0 {
		for _, r := range s.Overall.Lost {
			if symptom := r.Symptom(); !shown(symptom, false) && !slices.Contains(found.Symptoms(), symptom) {
				sc.BrokenAs(symptom, "", "a response to every call", r.What()+": "+r.Failure(), r)
			}
		}
	}
	if pc := s.Overall.Rules.ByID[check]; pc != nil {
		s.Overall.Rules.Conclude(pc)
		found.TakeUnless(func(symptom string) bool { return shown(symptom, true) }, pc.Found)
	}
}
