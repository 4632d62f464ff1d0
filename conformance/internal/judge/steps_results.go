package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// These steps judge what sync_batch reports about its records: good and bad ones in one batch,
// skips, and the same records sent again, alone or in parallel (spec 7.2.4).
var resultSentences = sentences{
	`^every batch is processed$`:                                  (*Scenario).batchesProcessed,
	`^every operation accepts records that it is for$`:            (*Scenario).operationsAccept,
	`^every plan that maps no more than it must is accepted$`:     (*Scenario).leastPlanWorks,
	`^every value of the declared type is accepted$`:              (*Scenario).valuesAccepted,
	`^every declared field takes a value$`:                        (*Scenario).fieldsTakeValues,
	`^every record is acknowledged$`:                              (*Scenario).acknowledged,
	`^no good record is marked as failed$`:                        (*Scenario).goodNotFailed,
	`^no bad record is acknowledged$`:                             (*Scenario).badNotAcknowledged,
	`^no new record is refused next to those that exist$`:         (*Scenario).noneRefusedNextToOld,
	`^every record result stands at its own record$`:              (*Scenario).statusesInPlace,
	`^every record result reports a skip in one way$`:             (*Scenario).oneSkipConvention,
	`^every record has the same outcome as before$`:               (*Scenario).sameOutcome,
	`^every operation has the same outcome in parallel as alone$`: (*Scenario).sameInParallel,
	`^every repeated change has the same outcome as before$`:      (*Scenario).noRepeatRefused,
}

// batchesProcessed: what was deleted must have been created.
func (sc *Scenario) batchesProcessed() error {
	err := sc.holds(batchIsProcessed)
	if sc.Held() == nil && len(sc.Waves) > 1 && sc.LastOperation() == rpc.OperationDelete &&
		!slices.ContainsFunc(sc.Model.All(), func(e *write.Expected) bool { return e.Created }) {
		return sc.noneAccepted()
	}
	return err
}

func (sc *Scenario) acknowledged() error {
	for b, r := range write.Each(sc.Latest) {
		if e := sc.Model.Get(r); !e.Known || !e.Exists {
			return engine.Inconclusive("", "%s was not acknowledged when it was created", r.Key)
		}
		if before, looked := sc.Before[r.Place()]; looked && before.Count == 0 {
			return engine.Inconclusive("", "%s was acknowledged when it was created and is not there (SEM-001, SEM-006)", r.Key)
		}
		if b.Succeeded(r) {
			continue
		}
		symptom := refusedChange(b)
		sc.BrokenAs(symptom, b.Operation, "success for "+string(r.Key), b.WhyOf(r), b.Reply)
		if first := sc.Object.Identifiers()[0]; r.ID.APIName != first.APIName {
			sc.Explain(func(s string) bool { return s == symptom },
				fmt.Sprintf("a record that is there is not found by %s: another identifier than the active one is looked up, or the conflict is looked for on another column.", r.ID.APIName),
				"read active_identifier from the plan, and match by that field alone.", false)
		}
	}
	return sc.Held()
}

// refusedChange is the symptom of a batch that refuses its change.
func refusedChange(b *write.Batch) string {
	return "refused " + write.Purpose{Operation: b.Operation, Existing: true}.String()
}

func (sc *Scenario) isBad(r *write.Record) bool { return slices.Contains(sc.bad, r) }

// perRecord is the batch with the bad record; one that fails as a whole is RES-018's.
func (sc *Scenario) perRecord() (*write.Batch, error) {
	b := sc.Latest[0]
	if !b.Answered() {
		return nil, engine.Inconclusive("", "the batch failed as a whole because of one bad record: %s", b.Reply.Short())
	}
	return b, nil
}

func (sc *Scenario) goodNotFailed() error {
	b, err := sc.perRecord()
	if err != nil {
		return err
	}
	for _, r := range b.Records {
		if !sc.isBad(r) && b.Failed(r) {
			sc.brokenBy(b.Misplaced(sc.bad), "", b.Operation, "success for the good record "+string(r.Key), b.WhyOf(r), b.Reply)
		}
	}
	return sc.Held()
}

func (sc *Scenario) badNotAcknowledged() error {
	refusedAlone := slices.ContainsFunc(sc.Batches, func(b *write.Batch) bool {
		return len(b.Records) == 1 && sc.isBad(b.Records[0]) && b.Refused(b.Records[0])
	})
	for _, r := range sc.bad {
		b := sc.batchWith(r)
		if b == nil || !b.Succeeded(r) {
			continue
		}
		if slices.ContainsFunc(b.Records, func(o *write.Record) bool { return !sc.isBad(o) && b.Failed(o) }) {
			continue // statuses that were mixed up are RES-010's
		}
		switch {
		case refusedAlone && len(b.Records) > 1:
			sc.brokenBy(write.Cause{
				Text: "a record that is refused alone is acknowledged among good ones: each record gets the status of the batch, or the error of one is passed over.",
				Fix:  "let each record have the result of its own write.",
			}, write.SymptomMissing, b.Operation, "a failure for the bad record "+string(r.Key)+", which is refused when it comes alone", b.WhyOf(r), b.Reply)
		case refusedAlone || sc.badSure:
			sc.BrokenAs(write.SymptomMissing, b.Operation, "a failure for the bad record "+string(r.Key), b.WhyOf(r), b.Reply)
		case sc.Readback == nil:
			return engine.Inconclusive("readback", "a record with null in a required field was accepted: only a read-back shows whether it is stored")
		default:
			seen, err := sc.Observe([]*write.Record{r})
			if err != nil {
				return err
			}
			if len(seen) == 0 {
				sc.BrokenAs(write.SymptomMissing, b.Operation, "a failure for "+string(r.Key)+", which is not stored", b.WhyOf(r), b.Reply)
			}
		}
	}
	return sc.Held()
}

// batchWith is the batch that carried this very record, nil when none did.
func (sc *Scenario) batchWith(r *write.Record) *write.Batch {
	return write.First(sc.Batches, func(b *write.Batch) bool { return slices.Contains(b.Records, r) })
}

// statusesInPlace: a success at the bad record and a failure at a good one are statuses that were mixed up.
func (sc *Scenario) statusesInPlace() error {
	b, err := sc.perRecord()
	if err != nil {
		return err
	}
	for _, bad := range sc.bad {
		for _, r := range b.Records {
			if b.Succeeded(bad) && !sc.isBad(r) && b.Failed(r) {
				sc.brokenBy(b.Misplaced(sc.bad), write.SymptomMissing, b.Operation,
					"the failure at "+string(bad.Key), fmt.Sprintf("it stands at %s, and %s is acknowledged", r.Key, bad.Key), b.Reply)
			}
		}
	}
	if !slices.ContainsFunc(b.Records, b.Failed) {
		return engine.Inconclusive("fixtures", "no record of the batch failed: describe a bad record under fixtures")
	}
	return sc.Held()
}

// oneSkipConvention looks at updates of absent records and at repeated inserts.
func (sc *Scenario) oneSkipConvention() error {
	first := map[string]string{}
	inserted, refused, skips, accepted := map[model.Place]bool{}, map[model.Place]bool{}, 0, false
	for b, r := range write.Each(sc.Batches) {
		accepted = accepted || b.Succeeded(r)
		skip := b.Operation == rpc.OperationUpdate || b.Operation == rpc.OperationInsert && inserted[r.Place()]
		inserted[r.Place()] = inserted[r.Place()] || b.Operation == rpc.OperationInsert && b.Succeeded(r)
		if !skip || len(b.ResultsOf(r)) == 0 {
			continue
		}
		skips++
		class, later := write.SkipClass(b.ResultsOf(r)[0]), refused[r.Place()] && b.Succeeded(r) // DUR-007 may find it, too
		refused[r.Place()] = refused[r.Place()] || b.Failed(r)
		switch want := cmp.Or(sc.Opts.SkipConvention, first[b.Operation]); want {
		case "":
			first[b.Operation] = class
			sc.Note("%s reports a skip as %s", b.Operation, class)
		case class:
		default:
			sc.BrokenAs(map[bool]string{true: "refused and there"}[later], b.Operation,
				fmt.Sprintf("every skip of %s as %s", b.Operation, want), fmt.Sprintf("%s is reported as %s: %s", r.Key, class, b.WhyOf(r)), b.Reply)
		}
	}
	if skips == 0 {
		return engine.Inconclusive("", "no record was skipped")
	}
	if !accepted {
		return sc.noneAccepted() // nothing distinguishes a skip from a refusal
	}
	return sc.Held()
}

// waveBefore are the batches of the sending before the latest one.
func (sc *Scenario) waveBefore() ([]*write.Batch, error) {
	if len(sc.Waves) < 2 {
		return nil, line.Harness("the records were sent only once")
	}
	return sc.Waves[len(sc.Waves)-2], nil
}

// sameOutcome compares the latest sending with the one before.
func (sc *Scenario) sameOutcome() error {
	wave, err := sc.waveBefore()
	if err != nil {
		return err
	}
	before, places := map[model.Place]string{}, map[model.Place]string{}
	for _, b := range wave {
		for i, r := range b.Records {
			before[r.Place()], places[r.Place()] = b.OutcomeOf(r), fmt.Sprintf("%d of %d", i+1, len(b.Records))
		}
	}
	var refused []string
	for b, r := range write.Each(sc.Latest) {
		was, is := before[r.Place()], b.OutcomeOf(r)
		if was == write.Unclear || is == write.Unclear || was == is {
			continue // RES-002 judges unclear results
		}
		if sc.BrokenAs(cmp.Or(b.Reply.Symptom(), write.SymptomPosition), b.Operation, was+" for "+string(r.Key)+", as in its batch", is+" when it is sent alone: "+b.WhyOf(r), b.Reply); is == "success" {
			refused = append(refused, places[r.Place()])
		}
	}
	if len(refused) > 0 {
		sc.ExplainPosition("number " + quantity.List(refused))
	}
	return sc.Held()
}

// sameInParallel compares the batches of each operation alone and in parallel.
func (sc *Scenario) sameInParallel() error {
	alone := map[string]string{}
	for _, b := range sc.Waves[0] {
		alone[b.Operation] = b.Outcomes()
	}
	for _, b := range sc.Latest {
		if was, is := alone[b.Operation], b.Outcomes(); was != is {
			symptom := ""
			if strings.Contains(is, write.Unclear) {
				symptom = rules.SymptomNoResult
			}
			c := write.Cause{}
			if !b.Answered() && !b.Reply.InPlace() {
				c.Text = "calls at the same time are refused (" + foreign.Clip(cmp.Or(b.Reply.ErrorText(), b.Reply.Short()), 120) +
					"): they wait for an open transaction or a lock, or share a connection."
				c.Fix = "give each call its own connection and transaction, end the transaction on every path, and wait for a lock."
			}
			sc.brokenBy(c, symptom, b.Operation, was+", as when it runs alone", is+": "+b.Reply.Short(), b.Reply)
		}
	}
	return sc.Held()
}

// noRepeatRefused: a change that was accepted is accepted again, though it changes nothing.
func (sc *Scenario) noRepeatRefused() error {
	wave, err := sc.waveBefore()
	if err != nil {
		return err
	}
	accepted := map[model.Place]bool{}
	for b, r := range write.Each(wave) {
		accepted[r.Place()] = b.Succeeded(r)
	}
	for b, r := range write.Each(sc.Latest) {
		if accepted[r.Place()] && b.Operation != rpc.OperationInsert && b.Refused(r) {
			sc.BrokenAs(refusedChange(b), b.Operation, "the same "+b.Operation+" of "+foreign.Clip(string(r.Key), 60)+" accepted again", b.WhyOf(r), b.Reply)
		}
	}
	sc.Explain(func(string) bool { return true },
		"a change to the values that are there counts as none: the rows that a statement has changed are counted, not those that it has found.",
		"take a record that is found for updated, whatever the driver counts.", false)
	return sc.Held()
}

// noneRefusedNextToOld: next to records that exist new ones are taken, as before.
func (sc *Scenario) noneRefusedNextToOld() error {
	old := sc.History[0].Records
	if !slices.ContainsFunc(old, func(r *write.Record) bool { return sc.Model.Get(r).Exists }) {
		return sc.Held()
	}
	for b, r := range write.Each(sc.Latest) {
		if !write.Holds(old, r) && b.Failed(r) {
			there := lists.Where(b.Records, func(o *write.Record) bool { return write.Holds(old, o) })
			sc.brokenBy(b.Misplaced(there), "refused next to existing records", b.Operation,
				foreign.Clip(string(r.Key), 60)+" taken, which is new, next to records that exist", b.WhyOf(r), b.Reply)
		}
	}
	return sc.Held()
}
