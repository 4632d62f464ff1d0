package judge

import (
	"slices"
	"sync"
)

// Definitions are all sentences that a feature file may use.
var Definitions = sync.OnceValue(func() []definition {
	return slices.Concat(
		callSteps(), ruleSteps(), tlsSteps(), authSteps(),
		planningSteps(), objectSteps(), recordSteps(), valueSteps(), twinSteps(), resultSteps(), evidenceSteps(), keptSteps(),
		parallelSteps(), timeSteps(), fullSteps(), hookSteps(),
	)
})

// End looks for the cause of what was found twice, ends the hooks, and counts what was
// seen.
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
