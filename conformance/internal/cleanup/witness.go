package cleanup

import (
	"cmp"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// Witnessed decides by witness operations whether records are there: an update of an absent
// record is skipped, an insert of an existing one too. That counts only where skips are
// visible, by declaration or by calibration.
func (sc *Scenario) Witnessed(records []*write.Record, want bool) error {
	op, err := sc.calibrated()
	if err != nil {
		return err
	}
	sent, created := make([]*write.Record, len(records)), make([]bool, len(records))
	for i, r := range records {
		created[i] = sc.Model.Get(r).Created // an insert that finds nothing creates the record
		sent[i] = sc.Changed(r, write.WitnessVersion)
		if op == rpc.OperationUpdate {
			sent[i] = sent[i].Updateable()
		}
	}
	// A limit that has cut a batch must not cut its witnesses.
	batches, err := sc.WriteEach(op, slices.Chunk(sent, min(10, sc.LargestBatch())), func([]*write.Record) write.Plan { return write.Plan{} })
	if err != nil {
		return err
	}
	for _, b := range batches {
		for _, r := range b.Records {
			there := sc.Skipped(b, r) == (op == rpc.OperationInsert)
			switch {
			case !b.Answered():
				return engine.Inconclusive("readback", "the witness operation %s was not answered: %s", op, b.Reply.Short())
			case !b.Succeeded(r) && !b.Failed(r):
				return engine.Inconclusive("readback", "the witness operation %s has no result for %s, or results that contradict each other (RES-002)", op, r.Key)
			case there == want:
			case there:
				sc.BrokenAs("still there", sc.LastOperation(), "no record "+string(r.Key)+" in the destination",
					"the witness operation "+op+" says that it is there: "+b.WhyOf(r), sc.ReplyFor(r), b.Reply)
			default:
				if op == rpc.OperationUpdate {
					sc.Unmet.Unwitnessed = append(sc.Unmet.Unwitnessed, r)
				}
				sc.BrokenAs(write.SymptomMissing, sc.LastOperation(), "the acknowledged record "+string(r.Key)+" in the destination",
					"the witness operation "+op+" says that it is not there: "+b.WhyOf(r), sc.ReplyFor(r), b.Reply)
			}
		}
	}
	sc.Proof("witnessed by %s", op)
	for i := range records {
		if want {
			sc.Saw(conformance.SeenStored, 1)
			continue
		}
		if created[i] {
			sc.Saw(conformance.SeenDeleted, 1)
		}
		sc.Saw(conformance.SeenAbsent, 1)
	}
	return sc.Held()
}

// calibrated finds a witness operation whose skips differ from successes.
func (sc *Scenario) calibrated() (string, error) {
	declared := sc.Opts.SkipConvention == conformance.SkipFailure || sc.Opts.SkipConvention == conformance.SkipSuccessWithMessage
	if sc.Opts.SkipConvention == conformance.SkipSuccess {
		return "", engine.Inconclusive("readback", "skips are reported as plain successes, so only a read-back can decide")
	}
	for _, op := range []string{rpc.OperationUpdate, rpc.OperationInsert} {
		if !sc.Object.Accepts(op) {
			continue
		}
		if declared {
			return op, nil
		}
		if visible, err := sc.skipsVisible(op); err != nil || visible {
			return op, err
		}
	}
	return "", engine.Inconclusive("readback", "the results do not show it: give a read-back hook, or declare --skip-convention where skips are visible")
}

func (sc *Scenario) WitnessesSee() error {
	lanes, witness := sc.Parallel.Lanes, sc.Parallel.Witness
	if sc.Opts.SkipConvention == conformance.SkipSuccess {
		return engine.Inconclusive("readback", "skips are reported as plain successes, so a witness sees nothing")
	}
	blind, seen := 0, 0
	for _, l := range lanes {
		if l.Witness == nil {
			continue
		}
		seen++
		if r := l.Witness.Records[0]; sc.Skipped(l.Witness, r) != (witness == rpc.OperationInsert) {
			blind++
			sc.Unmet.Outpaced = append(sc.Unmet.Outpaced, l.Created.Records[0])
			sc.BrokenAs(write.SymptomMissing, witness, "an acknowledged record that every later call sees",
				string(r.Key)+" was acknowledged, and then "+witness+" did not find it: "+l.Witness.WhyOf(r), l.Created.Reply, l.Witness.Reply)
		}
	}
	if seen == 0 {
		return engine.Inconclusive("", "no record was acknowledged, so that none could be witnessed")
	}
	if blind == seen || sc.Opts.SkipConvention == "" {
		if visible, err := sc.skipsVisible(witness); err != nil || !visible {
			sc.Drop()
			return cmp.Or(err, engine.Inconclusive("readback", "skips of %s cannot be told from successes: declare --skip-convention", witness))
		}
	}
	sc.Proof("witnessed by %s", witness)
	sc.Saw(conformance.SeenStored, seen)
	return sc.Held()
}

// skipsVisible calibrates one witness operation.
func (sc *Scenario) skipsVisible(op string) (bool, error) {
	probe, err := sc.Make(1, op, rpc.Field{}, &write.Sending{})
	if err != nil {
		return false, err
	}
	rounds := 1
	if op == rpc.OperationInsert {
		rounds = 2
	}
	for i := range rounds {
		b, err := sc.WriteOne(op, probe, write.Plan{})
		if err != nil {
			return false, err
		}
		// One that takes nothing shows nothing by refusing it again.
		if last := i+1 == rounds; last && !sc.Skipped(b, probe[0]) || !last && !b.Succeeded(probe[0]) {
			return false, nil
		}
	}
	return sc.Finds(op)
}

// Finds is the positive control of a witness: an update takes a record that is there, which
// has some time to arrive. One that takes none shows nothing by refusing.
func (sc *Scenario) Finds(op string) (bool, error) {
	if op != rpc.OperationUpdate || sc.Object.Creating() == "" {
		return true, nil
	}
	made, err := sc.Make(1, sc.Object.Creating(), rpc.Field{}, &write.Sending{})
	if err != nil {
		return false, err
	}
	created, err := sc.WriteOne(sc.Object.Creating(), made, write.Plan{})
	if err != nil || !created.Succeeded(made[0]) {
		return false, err
	}
	change := write.ForOperation(op, []*write.Record{sc.Changed(made[0], write.WitnessVersion)})
	for range 10 {
		b, err := sc.WriteOne(op, change, write.Plan{})
		if err != nil {
			return false, err
		}
		if !sc.Skipped(b, change[0]) {
			return true, nil
		}
		if err := line.Elapse(sc.Ctx, 100*time.Millisecond); err != nil {
			return false, err
		}
	}
	return false, nil
}
