package destination

import (
	"context"
	"errors"
	"sync"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
)

// Rules about every reply hold for the whole run and not only for the calls of
// their own scenario: a page of HTML for one odd record is no JSON either. The
// session notes the replies to well-formed calls that break such a rule; one that
// no failed check shows becomes a finding of the rule.

// overall keeps, for each rule and symptom, the first replies that break it.
type overall struct {
	mu     sync.Mutex
	broken map[string]map[string]*breach // by check, by symptom
}

// breach is one way in which a rule was broken.
type breach struct {
	expected, actual string
	replies          []*reply
	times            int
}

// everywhere are the rules with the claim that each reply must hold.
var everywhere = []struct {
	check string
	claim replyClaim
}{
	{"RPC-001", oneValue},
	{"RPC-003", sameID},
	{"HTTP-003", answeredAtAll},
	{"HTTP-006", framedWell},
	{"RES-005", successes},
}

func answeredAtAll(r *reply) (string, string) {
	if r.Kind == wire.KindClosed || r.Kind == wire.KindReset {
		return "a response to every call", r.Failure()
	}
	return "", ""
}

func framedWell(r *reply) (string, string) {
	if r.Kind == wire.KindMalformed || r.Kind == wire.KindTruncated {
		return "a response whose length is as its head says, with nothing behind it", r.Failure()
	}
	return "", ""
}

// successes looks at the status of each record result.
func successes(r *reply) (string, string) {
	if r.Method != rpc.MethodSyncBatch {
		return "", ""
	}
	for _, n := range r.Items("record_results") {
		if _, is := n.Get("success").Bool(); n.Kind == wire.Object && !is {
			return `"success" as true or false in every record result`, foreign.Clip(string(n.Raw), 200)
		}
	}
	return "", ""
}

// notice looks at one reply of the run.
func (s *session) notice(req request, r *reply) {
	if req.body != nil || req.httpMethod != "" || req.header != nil || req.url != "" || req.plain || req.conn != nil ||
		req.cutAtOnce || req.cutReply > 0 || req.cutRequest > 0 || req.chunked || req.expect {
		return
	}
	// What was not read is not known.
	var unread *wire.SyntaxError
	if r.Kind == wire.KindUnread || errors.As(r.DocErr, &unread) && unread.Kind == wire.SyntaxTooLarge {
		return
	}
	for _, rule := range everywhere {
		// A library that could not read the request answers with a null id.
		expected, actual := rule.claim(r)
		if actual == "" || rule.check == "RPC-003" && req.odd && r.Member("id").Is(wire.Null) {
			continue
		}
		symptom := r.Symptom()
		if rule.check == "RES-005" {
			symptom = "no boolean success"
		}
		s.overall.mu.Lock()
		of := s.overall.broken[rule.check]
		if of == nil {
			if s.overall.broken == nil {
				s.overall.broken = map[string]map[string]*breach{}
			}
			of = map[string]*breach{}
			s.overall.broken[rule.check] = of
		}
		b := of[symptom]
		if b == nil {
			b = &breach{expected: expected, actual: r.What() + ": " + actual}
			of[symptom] = b
		}
		if b.times++; len(b.replies) < 3 {
			b.replies = append(b.replies, r)
		}
		s.overall.mu.Unlock()
	}
}

// brokenOverall adds to the findings of a rule what was broken outside its own scenario.
// What a failed check shows already is not shown again, and one lost connection is none.
func (s *session) brokenOverall(ctx context.Context, found *engine.Findings, shown func(symptom string) bool) {
	s.overall.mu.Lock()
	defer s.overall.mu.Unlock()
	check := found.Check().ID
	sc := s.scenarioOf(ctx, found)
	for symptom, b := range s.overall.broken[check] {
		if check == "HTTP-003" && (b.times < 2 || len(s.watch.outages) > 0) || shown(symptom) {
			continue
		}
		sc.brokenAs(symptom, "", b.expected, b.actual, b.replies...)
	}
}
