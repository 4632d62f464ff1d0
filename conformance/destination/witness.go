package destination

import (
	"encoding/json"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
)

// A witness operation gives evidence of existence without a read-back: an
// update of an absent record is skipped, an insert of an existing one too. It
// counts only where skips are visible, by declaration or by calibration.

// witnessVersion is the version of the values that witnesses carry.
const witnessVersion = 100

// skipped reports whether a result reports a skip under the declared convention,
// else under the only one that is visible by itself.
func (sc *scenario) skipped(b *batch, r *record) bool {
	all := b.resultsOf(r)
	if len(all) == 0 {
		return false
	}
	if sc.opts.SkipConvention == conformance.SkipSuccessWithMessage {
		return skipClass(all[0]) == conformance.SkipSuccessWithMessage
	}
	return b.failed(r)
}

// witnessed decides by witness operations whether records are there.
func (sc *scenario) witnessed(records []*record, want bool) error {
	op, err := sc.calibrated()
	if err != nil {
		return err
	}
	sent, created := make([]*record, len(records)), make([]bool, len(records))
	for i, r := range records {
		created[i] = sc.model.get(r).Created // an insert that finds nothing creates the record
		sent[i] = sc.changed(r, witnessVersion)
		if op == rpc.OperationUpdate {
			sent[i] = sent[i].updateable()
		}
	}
	batches, err := sc.write(op, sent, plan{})
	if err != nil {
		return err
	}
	for _, b := range batches {
		for _, r := range b.records {
			if !b.answered() {
				return inconclusive("readback", "the witness operation %s was not answered: %s", op, b.reply.Short())
			}
			if !b.succeeded(r) && !b.failed(r) {
				return inconclusive("readback", "the witness operation %s has no result for %s, or results that contradict each other (RES-002)", op, r.key)
			}
			there := sc.skipped(b, r) == (op == rpc.OperationInsert)
			if there == want {
				continue
			}
			if want {
				if op == rpc.OperationUpdate {
					sc.unmet.unwitnessed = append(sc.unmet.unwitnessed, r)
				}
				sc.brokenAs(symptomMissing, sc.lastOperation(), "the acknowledged record "+string(r.key)+" in the destination",
					"the witness operation "+op+" says that it is not there: "+b.whyOf(r), sc.replyFor(r), b.reply)
			} else {
				sc.brokenFor(sc.lastOperation(), "no record "+string(r.key)+" in the destination",
					"the witness operation "+op+" says that it is there: "+b.whyOf(r), sc.replyFor(r), b.reply)
			}
		}
	}
	sc.Proof("witnessed by %s", op)
	for i := range records {
		switch {
		case want:
			sc.Saw(conformance.SeenStored, 1)
		case created[i]:
			sc.Saw(conformance.SeenDeleted, 1)
			fallthrough
		default:
			sc.Saw(conformance.SeenAbsent, 1)
		}
	}
	return sc.Held()
}

// calibrated finds a witness operation whose skips differ from successes.
func (sc *scenario) calibrated() (string, error) {
	declared := sc.opts.SkipConvention == conformance.SkipFailure || sc.opts.SkipConvention == conformance.SkipSuccessWithMessage
	if sc.opts.SkipConvention == conformance.SkipSuccess {
		return "", inconclusive("readback", "skips are reported as plain successes, so only a read-back can decide")
	}
	for _, op := range []string{rpc.OperationUpdate, rpc.OperationInsert} {
		if !sc.object.accepts(op) {
			continue
		}
		if declared {
			return op, nil
		}
		if visible, err := sc.skipsVisible(op); err != nil || visible {
			return op, err
		}
	}
	return "", inconclusive("readback", "the results do not show it: give a read-back hook, or declare --skip-convention where skips are visible")
}

// lane is one record that is created and witnessed at once.
type lane struct{ created, witness *batch }

// maxLanes is the number of records under way at once in sendsInLanes.
const maxLanes = 64

// sendsInLanes creates records one by one in parallel lanes; each lane sends its
// witness operation as soon as the creation is acknowledged (spec 4.2.2).
func (sc *scenario) sendsInLanes(s set) ([]*batch, error) {
	create, records := s.operation, s.records
	witness := rpc.OperationUpdate
	if !sc.object.accepts(witness) {
		witness = rpc.OperationInsert
	}
	out := make([]lane, len(records))
	errs := make([]error, len(records))
	var lanes errgroup.Group
	lanes.SetLimit(maxLanes)
	for i, r := range records {
		lanes.Go(func() error {
			out[i], errs[i] = sc.runLane(create, witness, r)
			return nil
		})
	}
	_ = lanes.Wait() // each lane has its error
	var sent []*batch
	for i, l := range out {
		if errs[i] != nil {
			return sent, errs[i]
		}
		sent = append(sent, l.created)
		sc.batches, sc.replies = append(sc.batches, l.created), append(sc.replies, l.created.reply)
	}
	sc.parallel.lanes, sc.parallel.witness = out, witness
	return sent, nil
}

func (sc *scenario) runLane(create, witness string, r *record) (lane, error) {
	var l lane
	var err error
	if l.created, err = sc.batch(sc, create, []*record{r}, plan{}); err != nil || !l.created.succeeded(r) {
		return l, err
	}
	second := sc.changed(r, witnessVersion)
	if witness == rpc.OperationUpdate {
		second = second.updateable()
	}
	l.witness, err = sc.batch(sc, witness, []*record{second}, plan{})
	return l, err
}

func (sc *scenario) witnessesSee() error {
	lanes, witness := sc.parallel.lanes, sc.parallel.witness
	if sc.opts.SkipConvention == conformance.SkipSuccess {
		return inconclusive("readback", "skips are reported as plain successes, so a witness sees nothing")
	}
	blind, seen := 0, 0
	for _, l := range lanes {
		if l.witness == nil {
			continue
		}
		seen++
		r := l.witness.records[0]
		there := sc.skipped(l.witness, r) == (witness == rpc.OperationInsert)
		if !there {
			blind++
			sc.unmet.outpaced = append(sc.unmet.outpaced, l.created.records[0])
			sc.brokenAs(symptomMissing, witness, "an acknowledged record that every later call sees",
				string(json.RawMessage(r.key))+" was acknowledged, and then "+witness+" did not find it: "+l.witness.whyOf(r), l.created.reply, l.witness.reply)
		}
	}
	if seen == 0 {
		return inconclusive("", "no record was acknowledged, so that none could be witnessed")
	}
	if witness == rpc.OperationInsert && blind == seen || sc.opts.SkipConvention == "" {
		if visible, err := sc.skipsVisible(witness); err != nil || !visible {
			sc.Drop()
			return orError(err, inconclusive("readback", "skips of %s cannot be told from successes: declare --skip-convention", witness))
		}
	}
	sc.Proof("witnessed by %s", witness)
	sc.Saw(conformance.SeenStored, seen)
	return sc.Held()
}

func orError(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// skipsVisible calibrates one witness operation.
func (sc *scenario) skipsVisible(op string) (bool, error) {
	probe, err := sc.make(1, op, rpc.Field{}, &sending{})
	if err != nil {
		return false, err
	}
	rounds := 1
	if op == rpc.OperationInsert {
		rounds = 2
	}
	var last *batch
	for i := range rounds {
		if last, err = sc.writeOne(op, probe, plan{}); err != nil {
			return false, err
		}
		if i+1 < rounds && !last.succeeded(probe[0]) {
			return false, nil // one that takes nothing shows nothing by refusing it again
		}
	}
	if !sc.skipped(last, probe[0]) {
		return false, nil
	}
	return sc.finds(op)
}

// finds is the positive control of a witness: an update takes a record that is
// there. One that takes none shows nothing by refusing. A record that was
// acknowledged before it was written has some time to arrive.
func (sc *scenario) finds(op string) (bool, error) {
	if op != rpc.OperationUpdate || sc.object.creating() == "" {
		return true, nil
	}
	made, err := sc.make(1, sc.object.creating(), rpc.Field{}, &sending{})
	if err != nil {
		return false, err
	}
	created, err := sc.writeOne(sc.object.creating(), made, plan{})
	if err != nil || !created.succeeded(made[0]) {
		return false, err
	}
	change := forOperation(op, []*record{sc.changed(made[0], witnessVersion)})
	for range 10 {
		b, err := sc.writeOne(op, change, plan{})
		if err != nil {
			return false, err
		}
		if !sc.skipped(b, change[0]) {
			return true, nil
		}
		if err := elapse(sc.ctx, 100*time.Millisecond); err != nil {
			return false, err
		}
	}
	return false, nil
}
