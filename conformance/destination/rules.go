package destination

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/internal/lists"
)

// liveSentences are those of the rules to which a run adds what it has asked itself.
var liveSentences = []string{"every batch is processed"}

// ruleSteps put what a scenario has sent to the rules: one step for those about "every", one for
// those about "no", and so on.
func ruleSteps() []definition {
	bySubject := map[string][]string{}
	for _, sentence := range rules.Sentences() {
		if !slices.Contains(liveSentences, sentence) {
			subject, rest, _ := strings.Cut(sentence, " ")
			bySubject[subject] = append(bySubject[subject], regexp.QuoteMeta(rest))
		}
	}
	var out []definition
	for _, subject := range slices.Sorted(maps.Keys(bySubject)) {
		out = append(out, step("^("+subject+" (?:"+strings.Join(bySubject[subject], "|")+"))$", func(sc *scenario) any { return sc.holds }))
	}
	return out
}

// terms are what the rules know of the run.
func (s *session) terms() rules.Terms {
	return rules.Terms{
		URL: s.url, Profile: s.opts.Profile, PlanningTimeout: s.opts.PlanningTimeout, BatchTimeout: s.opts.BatchTimeout,
		Token: s.target.Token, Secret: s.secret, JudgeTLS: s.tlsJudged(), Roots: s.opts.Roots,
	}
}

// holds puts what the scenario has sent to a rule.
func (sc *scenario) holds(sentence string) error {
	shared := func(b *batch) *rules.Batch { return &b.Batch }
	l := &rules.Look{
		Terms: sc.terms(), Replies: sc.replies, Handshake: sc.handshaken, Reached: sc.measured.reached,
		Batches: lists.Of(sc.batches, shared), Latest: lists.Of(sc.latest, shared),
	}
	return sc.takes(l, rules.Of(sentence)(l))
}

// takes adds what a rule has found, and says what it comes to.
func (sc *scenario) takes(l *rules.Look, err error) error {
	for _, b := range l.Breaches {
		sc.brokenAs(b.Symptom, b.Operation, b.Expected, b.Actual, b.Where...)
		if b.Cause != "" {
			symptom := b.Symptom
			if symptom == "" {
				symptom = b.Where[0].Symptom()
			}
			sc.ExplainAs(func(s string) bool { return s == symptom }, b.Cause, b.Fix, b.Observed)
		}
		if found := sc.All(); b.Curl != "" && len(found) > 0 {
			found[len(found)-1].Curl = b.Curl
		}
	}
	for _, n := range l.Notes {
		sc.Note("%s", n)
	}
	for _, p := range l.Proofs {
		sc.Proof("%s", p)
	}
	if open, is := errors.AsType[*rules.Undecided](err); is {
		return engine.Outcome(open.Status, open.Decider, "%s", open.Reason)
	}
	return sc.Held()
}
