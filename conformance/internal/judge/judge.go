// Package judge has the steps of the scenarios, which godog runs: what they send and what they
// claim of it; and it looks for the causes of what does not hold. Package write sends and knows
// what to expect, package rules has the rules on single exchanges.
package judge

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/internal/lists"
)

// ScenarioOf is the scenario whose findings the engine looks at.
func (s *Judge) ScenarioOf(ctx context.Context, found *engine.Findings) *Scenario {
	sc := s.NewScenario(ctx, found.Check(), nil)
	if sc.Findings = found; found.Object() != "" {
		sc.Object = s.Catalog.Object(found.Object())
	}
	return sc
}

// End looks for the cause of what was found twice, ends the hooks, and counts what was seen.
func (sc *Scenario) End() error {
	defer sc.Release()
	sc.ReportFolding()
	if sc.Confirming() && sc.Held() != nil && sc.Ctx.Err() == nil {
		sc.diagnose()
	}
	err := sc.endHooks()
	sc.Count()
	if sc.Held() != nil && sc.HookAsked && !sc.j.shown(sc.Object) {
		sc.Note("the read-back hook has shown no record of %s in this run yet: the hook itself may be at fault", sc.Object)
	}
	return err
}

// Definitions are all sentences that a feature file may use.
var Definitions = sync.OnceValue(func() []engine.Step {
	plain := sentences{}
	for _, some := range []sentences{
		callSentences, authSentences, hookSentences, outageSentences, objectSentences, recordSentences, valueSentences, fullSentences,
		resultSentences, evidenceSentences, keptSentences, twinSentences, parallelSentences,
	} {
		maps.Copy(plain, some)
	}
	texts := lists.Of(slices.Sorted(maps.Keys(plain)), func(pattern string) string { return strings.Trim(pattern, "^$") })
	return slices.Concat(
		callSteps(), ruleSteps(), hookSteps(), objectSteps(), recordSteps(), valueSteps(), evidenceSteps(),
		[]engine.Step{engine.NewStep("^("+strings.Join(texts, "|")+")$", func(sc *Scenario) any {
			return func(sentence string) error { return plain["^"+sentence+"$"](sc) }
		})},
	)
})

// ruleSteps put what a scenario has sent to the rules: one step for each first word of their sentences.
func ruleSteps() []engine.Step {
	bySubject := map[string][]string{}
	for _, sentence := range rules.Sentences() {
		if subject, rest, _ := strings.Cut(sentence, " "); sentence != batchIsProcessed {
			bySubject[subject] = append(bySubject[subject], regexp.QuoteMeta(rest))
		}
	}
	return lists.Of(slices.Sorted(maps.Keys(bySubject)), func(subject string) engine.Step {
		return engine.NewStep("^("+subject+" (?:"+strings.Join(bySubject[subject], "|")+"))$", func(sc *Scenario) any { return sc.holds })
	})
}
