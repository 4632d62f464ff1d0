package judge

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/write"
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
		out = append(out, step("^("+subject+" (?:"+strings.Join(bySubject[subject], "|")+"))$", func(sc *Scenario) any { return sc.holds }))
	}
	return out
}

// terms are what the rules know of the run.
func (s *Judge) terms() rules.Terms {
	return rules.Terms{
		URL: s.URL, Profile: s.Opts.Profile, PlanningTimeout: s.Opts.PlanningTimeout, BatchTimeout: s.Opts.BatchTimeout,
		Token: s.Target.Token, Secret: s.Secret, JudgeTLS: s.TLSJudged(), Roots: s.Opts.Roots,
	}
}

// holds puts what the scenario has sent to a rule.
func (sc *Scenario) holds(sentence string) error {
	shared := func(b *write.Batch) *rules.Batch { return &b.Batch }
	l := &rules.Look{
		Terms: sc.j.terms(), Replies: sc.Replies, Handshake: sc.Handshaken, Reached: sc.Measured.Reached,
		Batches: lists.Of(sc.Batches, shared), Latest: lists.Of(sc.Latest, shared),
	}
	return sc.takes(l, rules.Of(sentence)(l))
}

// takes adds what a rule has found, and says what it comes to.
func (sc *Scenario) takes(l *rules.Look, err error) error {
	for _, b := range l.Breaches {
		sc.BrokenAs(b.Symptom, b.Operation, b.Expected, b.Actual, b.Where...)
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

// definition is a step of the destination suite.
type definition = engine.Step

func step(pattern string, bind func(*Scenario) any) definition {
	return engine.NewStep(pattern, bind)
}
