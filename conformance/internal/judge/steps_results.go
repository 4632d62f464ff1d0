package judge

import (
	"fmt"
	"slices"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// resultSteps judge what sync_batch says of its records (spec 7.2.4).
func resultSteps() []definition {
	return []definition{
		step(`^every record result (stands at its own record|reports a skip in one way)$`, func(sc *Scenario) any { return sc.statuses }),
		step(`^every (batch is processed|operation accepts records that it is for|plan that maps no more than it must is accepted|value of the declared type is accepted|declared field takes a value)$`,
			func(sc *Scenario) any { return func(claim string) error { return batchClaims[claim](sc) } }),
		step(`^(every record is acknowledged|no good record is marked as failed|no bad record is acknowledged|no new record is refused next to those that exist)$`,
			func(sc *Scenario) any { return sc.statuses }),
		step(`^every (record|operation|repeated change) has the same outcome (?:as before|in parallel as alone)$`, func(sc *Scenario) any { return sc.sameOutcomes }),
	}
}

var batchClaims = map[string]func(*Scenario) error{
	"batch is processed":                              (*Scenario).batchesProcessed,
	"operation accepts records that it is for":        (*Scenario).operationsAccept,
	"plan that maps no more than it must is accepted": (*Scenario).leastPlanWorks,
	"value of the declared type is accepted":          (*Scenario).valuesAccepted,
	"declared field takes a value":                    (*Scenario).fieldsTakeValues,
}

// batchesProcessed: what was deleted must have been created.
func (sc *Scenario) batchesProcessed() error {
	err := sc.holds("every batch is processed")
	if sc.Held() == nil && len(sc.Waves) > 1 && sc.LastOperation() == rpc.OperationDelete &&
		!slices.ContainsFunc(sc.Model.All(), func(e *write.Expected) bool { return e.Created }) {
		return sc.noneAccepted()
	}
	return err
}

func (sc *Scenario) acknowledged() error {
	for _, b := range sc.Latest {
		for _, r := range b.Records {
			if e := sc.Model.Get(r); !e.Known || !e.Exists {
				return engine.Inconclusive("", "%s was not acknowledged when it was created", r.Key)
			}
			if before, looked := sc.Before[r.Place()]; looked && before.Count == 0 {
				return engine.Inconclusive("", "%s was acknowledged when it was created and is not there (SEM-001, SEM-006)", r.Key)
			}
			if !b.Succeeded(r) {
				symptom := "refused " + write.Purpose{Operation: b.Operation, Existing: true}.String()
				sc.BrokenAs(symptom, b.Operation, "success for "+string(r.Key), b.WhyOf(r), b.Reply)
				if first := sc.Object.Identifiers()[0]; r.ID.APIName != first.APIName {
					sc.ExplainAs(func(s string) bool { return s == symptom },
						fmt.Sprintf("a record that is there is not found by %s: another identifier than the active one is looked up, or the conflict is looked for on another column.", r.ID.APIName),
						"read active_identifier from the plan, and match by that field alone.", false)
				}
			}
		}
	}
	return sc.Held()
}

func (sc *Scenario) statuses(claim string) error {
	switch claim {
	case "stands at its own record":
		return sc.statusesInPlace()
	case "reports a skip in one way":
		return sc.oneSkipConvention()
	case "no good record is marked as failed":
		return sc.goodNotFailed()
	case "no bad record is acknowledged":
		return sc.badNotAcknowledged()
	case "no new record is refused next to those that exist":
		return sc.noneRefusedNextToOld()
	}
	return sc.acknowledged()
}
