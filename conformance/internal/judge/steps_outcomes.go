package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// What became of single records: good and bad ones in one batch, skips, and the
// same records sent again, alone or in parallel (spec 7.2.4).

func (sc *Scenario) isBad(r *write.Record) bool { return slices.Contains(sc.bad, r) }

// perRecord reports whether the batch with the bad record was answered record by
// record; a batch that fails as a whole is RES-018's.
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
			from := len(sc.All())
			sc.BrokenFor(b.Operation, "success for the good record "+string(r.Key), b.WhyOf(r), b.Reply)
			sc.because(from, b.Misplaced(sc.bad))
		}
	}
	return sc.Held()
}

func (sc *Scenario) badNotAcknowledged() error {
	refusedAlone := false
	for _, b := range sc.Batches {
		refusedAlone = refusedAlone || len(b.Records) == 1 && sc.isBad(b.Records[0]) && b.Refused(b.Records[0])
	}
	for _, r := range sc.bad {
		b := sc.batchWith(r)
		if b == nil || !b.Succeeded(r) {
			continue
		}
		if slices.ContainsFunc(b.Records, func(o *write.Record) bool { return !sc.isBad(o) && b.Failed(o) }) {
			continue // statuses that were mixed up are RES-010's
		}
		if sc.badSure || refusedAlone {
			expected := "a failure for the bad record " + string(r.Key)
			if refusedAlone && len(b.Records) > 1 {
				expected += ", which is refused when it comes alone"
			}
			from := len(sc.All())
			sc.BrokenAs(write.SymptomMissing, b.Operation, expected, b.WhyOf(r), b.Reply)
			if refusedAlone && len(b.Records) > 1 {
				sc.because(from, write.Cause{
					Text: "a record that is refused alone is acknowledged among good ones: each record gets the status of the batch, or the error of one is passed over.",
					Fix:  "let each record have the result of its own write.",
				})
			}
			continue
		}
		if sc.Readback == nil {
			return engine.Inconclusive("readback", "a record with null in a required field was accepted: only a read-back shows whether it is stored")
		}
		seen, err := sc.Observe([]*write.Record{r})
		if err != nil {
			return err
		}
		if seen[exchange.KeyText(r.Key)].Count == 0 {
			sc.BrokenAs(write.SymptomMissing, b.Operation, "a failure for "+string(r.Key)+", which is not stored", b.WhyOf(r), b.Reply)
		}
	}
	return sc.Held()
}

// batchWith is the batch that carried this very record, nil when none did.
func (sc *Scenario) batchWith(r *write.Record) *write.Batch {
	for _, b := range sc.Batches {
		if slices.Contains(b.Records, r) {
			return b
		}
	}
	return nil
}

// statusesInPlace: a success at the bad record and a failure at a good one are
// the mark of statuses that were mixed up.
func (sc *Scenario) statusesInPlace() error {
	b, err := sc.perRecord()
	if err != nil {
		return err
	}
	for _, bad := range sc.bad {
		for _, r := range b.Records {
			if b.Succeeded(bad) && !sc.isBad(r) && b.Failed(r) {
				from := len(sc.All())
				sc.BrokenAs(write.SymptomMissing, b.Operation, "the failure at "+string(bad.Key), fmt.Sprintf("it stands at %s, and %s is acknowledged", r.Key, bad.Key), b.Reply)
				sc.because(from, b.Misplaced(sc.bad))
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
	inserted, skips := map[model.Place]bool{}, 0
	for _, b := range sc.Batches {
		for _, r := range b.Records {
			skip := b.Operation == rpc.OperationUpdate || b.Operation == rpc.OperationInsert && inserted[r.Place()]
			inserted[r.Place()] = inserted[r.Place()] || b.Operation == rpc.OperationInsert && b.Succeeded(r)
			if !skip || len(b.ResultsOf(r)) == 0 {
				continue
			}
			skips++
			class := write.SkipClass(b.ResultsOf(r)[0])
			want := cmp.Or(sc.Opts.SkipConvention, first[b.Operation])
			if want == "" {
				first[b.Operation] = class
				sc.Note("%s reports a skip as %s", b.Operation, class)
				continue
			}
			if class != want {
				sc.BrokenFor(b.Operation, fmt.Sprintf("every skip of %s as %s", b.Operation, want), fmt.Sprintf("%s is reported as %s: %s", r.Key, class, b.WhyOf(r)), b.Reply)
			}
		}
	}
	if skips == 0 {
		return engine.Inconclusive("", "no record was skipped")
	}
	if !slices.ContainsFunc(sc.Batches, func(b *write.Batch) bool { return slices.ContainsFunc(b.Records, b.Succeeded) }) {
		return sc.noneAccepted() // nothing tells a skip from a refusal
	}
	return sc.Held()
}

func (sc *Scenario) sameOutcomes(of string) error {
	switch of {
	case "record":
		return sc.sameOutcome()
	case "repeated change":
		return sc.noRepeatRefused()
	}
	return sc.sameInParallel()
}

// sameOutcome compares the latest sending with the one before.
func (sc *Scenario) sameOutcome() error {
	if len(sc.Waves) < 2 {
		return line.Harness("the records were sent only once")
	}
	before, places := map[model.Place]string{}, map[model.Place]string{}
	for _, b := range sc.Waves[len(sc.Waves)-2] {
		for i, r := range b.Records {
			before[r.Place()], places[r.Place()] = b.OutcomeOf(r), fmt.Sprintf("%d of %d", i+1, len(b.Records))
		}
	}
	var refused []string
	for _, b := range sc.Latest {
		for _, r := range b.Records {
			was, is := before[r.Place()], b.OutcomeOf(r)
			if was == write.Unclear || is == write.Unclear {
				continue // RES-002 judges that
			}
			if was == is {
				continue
			}
			if sc.BrokenAs(cmp.Or(b.Reply.Symptom(), write.SymptomPosition), b.Operation, was+" for "+string(r.Key)+", as in its batch", is+" when it is sent alone: "+b.WhyOf(r), b.Reply); is == "success" {
				refused = append(refused, places[r.Place()])
			}
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
			sc.BrokenAs(symptom, b.Operation, was+", as when it runs alone", is+": "+b.Reply.Short(), b.Reply)
		}
	}
	return sc.Held()
}
