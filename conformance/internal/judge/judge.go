// Package judge has the steps of the scenarios, which godog runs: what they send and what
// they claim of it; and it looks for the causes of what does not hold. What is sent and
// expected is left to package write, rules on single exchanges to package rules.
package judge

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/cleanup"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/write"
)

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

// Scenario is a scenario with what its steps leave for its claims.
type Scenario struct {
	*cleanup.Scenario
	j           *Judge
	bad         []*write.Record               // the records that must not be accepted
	badSure     bool                          // the author says that they are bad
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

// ScenarioOf is the scenario whose findings the engine looks at.
func (s *Judge) ScenarioOf(ctx context.Context, found *engine.Findings) *Scenario {
	sc := s.NewScenario(ctx, found.Check(), nil)
	if sc.Findings = found; found.Object() != "" {
		sc.Object = s.Catalog.Object(found.Object())
	}
	return sc
}

// apart is a scenario of the same check with a sync run of its own.
func (sc *Scenario) apart() *Scenario {
	other := sc.j.NewScenario(sc.Ctx, sc.Check(), sc.Object)
	other.Model = sc.NewView()
	return other
}
