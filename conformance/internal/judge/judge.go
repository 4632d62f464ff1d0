// Package judge has the steps of the scenarios, which godog runs: what they send and what they
// claim of it; and it looks for the causes of what does not hold. Package write sends and knows
// what to expect, package rules has the rules on single exchanges.
package judge

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/cleanup"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
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

// Judge is a run that judges.
type Judge struct {
	cleanup.Cleanup
	Settled  statuses
	Overall  overall
	storedBy sync.Map // object and operation of records that were there
	atOnce   sync.Map // kinds of writes that no later ones carry out
	exact    sync.Map // values that small batches have stored as they were sent
	Cat      *conformance.Catalogue
	Full     []*write.Batch // of the declared size, sent when nothing else is
}

// statuses are those of the checks that have their final result, by id.
type statuses struct{ by sync.Map }

// Settle keeps the final status of a check.
func (s *statuses) Settle(r *conformance.CheckResult) { s.by.Store(r.ID, r.Status) }

// of is the status of a check, "" as long as it has none.
func (s *statuses) of(id string) conformance.Status {
	known, _ := s.by.Load(id)
	status, _ := known.(conformance.Status)
	return status
}

// Scenario is a scenario with what its steps leave for its claims.
type Scenario struct {
	*cleanup.Scenario
	j           *Judge
	bad         []*write.Record               // the records that must not be accepted
	badSure     bool                          // the author declares them bad
	disagreeing []disagreeing                 // records with identifiers of two records
	twins       []*write.Record               // records of another object with keys that were sent
	full        bool                          // the latest batch has the declared size
	keysTooWide string                        // all records with integer keys were refused: how
	endings     []func(context.Context) error // hooks to end
	altered     map[string]json.RawMessage    // what the hook alter_schema answered
}

// NewScenario is a scenario of a check for an object, or for none.
func (s *Judge) NewScenario(ctx context.Context, c *conformance.Check, o *write.Object) *Scenario {
	return &Scenario{Scenario: s.Cleanup.NewScenario(ctx, c, o), j: s}
}

// apart is a scenario of the same check with a separate sync run.
func (sc *Scenario) apart() *Scenario {
	other := sc.j.NewScenario(sc.Ctx, sc.Check(), sc.Object)
	other.Model = sc.NewView()
	return other
}

// fresh makes n ordinary records for an operation.
func (sc *Scenario) fresh(n int, operation string) ([]*write.Record, error) {
	return sc.Make(n, operation, rpc.Field{}, &write.Sending{})
}

// sentences are steps without a parameter, by their patterns.
type sentences map[string]func(*Scenario) error

// terms are what the rules know of the run.
func (s *Judge) terms() rules.Terms {
	return rules.Terms{
		URL: s.URL, Profile: s.Opts.Profile, PlanningTimeout: s.Opts.PlanningTimeout, BatchTimeout: s.Opts.BatchTimeout,
		Token: s.Target.Token, Secret: s.Secret, JudgeTLS: s.TLSJudged(), Roots: s.Opts.Roots,
	}
}

// takes adds the breaches of a rule, and returns the result.
func (sc *Scenario) takes(l *rules.Look, err error) error {
	for _, b := range l.Breaches {
		sc.BrokenAs(b.Symptom, b.Operation, b.Expected, b.Actual, b.Where...)
		if b.Cause != "" {
			symptom := b.Symptom
			if symptom == "" {
				symptom = b.Where[0].Symptom()
			}
			sc.Explain(func(s string) bool { return s == symptom }, b.Cause, b.Fix, b.Observed)
		}
		if b.Curl != "" {
			sc.lastFinding().Curl = b.Curl
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

// lastFinding is the one that was added last, to be completed; without any, one that nothing keeps.
func (sc *Scenario) lastFinding() *engine.Finding {
	found := sc.All()
	if len(found) == 0 {
		return &engine.Finding{}
	}
	return &found[len(found)-1]
}

// otherObjects are the listed objects except one.
func (sc *Scenario) otherObjects(than *write.Object) []*write.Object {
	return lists.Where(sc.Catalog.Objects, func(o *write.Object) bool { return o.APIName != than.APIName })
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

// operations resolves the words of a step; there may be no changing one, and none "if there is one".
func (sc *Scenario) operations(which string) ([]string, error) {
	o := sc.Object
	if o == nil {
		return nil, line.Harness("no object is chosen")
	}
	op, missing := "", "creates records"
	switch which {
	case "every changing operation":
		return lists.Where([]string{rpc.OperationUpsert, rpc.OperationUpdate}, o.Accepts), nil
	case "any operation":
		return o.Writing()[:1], nil
	case "each operation":
		return o.Writing(), nil
	case "an operation that is not advertised":
		op = write.First([]string{rpc.OperationUpdate, rpc.OperationInsert, rpc.OperationUpsert}, func(op string) bool { return !o.Accepts(op) })
		if op == "" {
			return nil, line.NotApplicable("%s advertises every operation", o)
		}
	case "the creating operation":
		op = o.Creating()
	case "the changing operation":
		op, missing = o.FirstOf(rpc.OperationUpsert, rpc.OperationUpdate), "changes records"
	default:
		name, optional := strings.CutSuffix(strings.TrimPrefix(which, "operation "), " if there is one")
		if op = strings.Trim(name, `"`); optional && !o.Accepts(op) {
			return nil, nil
		}
	}
	if op == "" {
		return nil, line.NotApplicable("%s advertises no operation that %s", o, missing)
	}
	return []string{op}, nil
}

// operationOf is the operation of the last batch that carried a record.
func (sc *Scenario) operationOf(r *write.Record) string {
	if b := sc.BatchAt(r); b != nil {
		return b.Operation
	}
	return sc.LastOperation()
}

// inLatest reports whether the last batch named a record.
func (sc *Scenario) inLatest(r *write.Record) bool {
	return slices.ContainsFunc(sc.Latest, func(b *write.Batch) bool { return write.Holds(b.Records, r) })
}
