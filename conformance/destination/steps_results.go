package destination

import (
	"fmt"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
)

// resultSteps judge what sync_batch says of its records (spec 7.2.4).
func resultSteps() []definition {
	return []definition{
		step(`^every record result (stands at its own record|reports a skip in one way)$`, func(sc *scenario) any { return sc.statuses }),
		step(`^every (batch is processed|operation accepts records that it is for|plan that maps no more than it must is accepted|value of the declared type is accepted|declared field takes a value)$`,
			func(sc *scenario) any { return func(claim string) error { return batchClaims[claim](sc) } }),
		step(`^(every record is acknowledged|no good record is marked as failed|no bad record is acknowledged|no new record is refused next to those that exist)$`,
			func(sc *scenario) any { return sc.statuses }),
		step(`^every (record|operation|repeated change) has the same outcome (?:as before|in parallel as alone)$`, func(sc *scenario) any { return sc.sameOutcomes }),
	}
}

var batchClaims = map[string]func(*scenario) error{
	"batch is processed":                              (*scenario).batchesProcessed,
	"operation accepts records that it is for":        (*scenario).operationsAccept,
	"plan that maps no more than it must is accepted": (*scenario).leastPlanWorks,
	"value of the declared type is accepted":          (*scenario).valuesAccepted,
	"declared field takes a value":                    (*scenario).fieldsTakeValues,
}

// batchesProcessed: what was deleted must have been created.
func (sc *scenario) batchesProcessed() error {
	err := sc.holds("every batch is processed")
	if sc.Held() == nil && len(sc.waves) > 1 && sc.lastOperation() == rpc.OperationDelete &&
		!slices.ContainsFunc(sc.model.all(), func(e *expected) bool { return e.Created }) {
		return sc.noneAccepted()
	}
	return err
}

func (sc *scenario) acknowledged() error {
	for _, b := range sc.latest {
		for _, r := range b.records {
			if e := sc.model.get(r); !e.Known || !e.Exists {
				return inconclusive("", "%s was not acknowledged when it was created", r.key)
			}
			if before, looked := sc.before[r.place()]; looked && before.count == 0 {
				return inconclusive("", "%s was acknowledged when it was created and is not there (SEM-001, SEM-006)", r.key)
			}
			if !b.succeeded(r) {
				symptom := "refused " + purpose{b.operation, true}.String()
				sc.brokenAs(symptom, b.operation, "success for "+string(r.key), b.whyOf(r), b.reply)
				if first := sc.object.identifiers()[0]; r.id.APIName != first.APIName {
					sc.ExplainAs(func(s string) bool { return s == symptom },
						fmt.Sprintf("a record that is there is not found by %s: another identifier than the active one is looked up, or the conflict is looked for on another column.", r.id.APIName),
						"read active_identifier from the plan, and match by that field alone.", false)
				}
			}
		}
	}
	return sc.Held()
}

func (sc *scenario) statuses(claim string) error {
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
