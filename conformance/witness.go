package conformance

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
)

// A witness operation gives evidence of existence without a read-back: an
// update of an absent record is skipped, an insert of an existing one too. It
// counts only where skips are visible, by declaration or by calibration.

// witnessVersion is the version of the values that witnesses carry.
const witnessVersion = 100

// skipped tells that a result reports a skip under the declared convention,
// else under the only one that is visible by itself.
func (w *world) skipped(b *batch, r *record) bool {
	all := b.of(r)
	if len(all) == 0 {
		return false
	}
	if w.opts.SkipConvention == SkipSuccessWithMessage {
		return skipClass(all[0]) == SkipSuccessWithMessage
	}
	return b.failed(r)
}

// witnessed decides by witness operations whether records are there.
func (w *world) witnessed(records []*record, want bool) error {
	op, err := w.calibrated()
	if err != nil {
		return err
	}
	sent := make([]*record, len(records))
	for i, r := range records {
		sent[i] = w.changed(r, witnessVersion)
		if op == rpc.OperationUpdate {
			sent[i] = sent[i].updateable()
		}
	}
	batches, err := w.write(op, sent, plan{})
	if err != nil {
		return err
	}
	for _, b := range batches {
		for _, r := range b.records {
			if !b.answered() {
				return inconclusive("readback", "the witness operation %s was not answered: %s", op, b.reply.short())
			}
			if !b.succeeded(r) && !b.failed(r) {
				return inconclusive("readback", "the witness operation %s has no result for %s, or results that contradict each other (RES-002)", op, r.key)
			}
			there := w.skipped(b, r) == (op == rpc.OperationInsert)
			if there == want {
				continue
			}
			if want {
				if op == rpc.OperationUpdate {
					w.unwitnessed = append(w.unwitnessed, r)
				}
				w.brokenAs(symptomMissing, w.lastOperation(), "the acknowledged record "+string(r.key)+" in the destination",
					"the witness operation "+op+" says that it is not there: "+b.why(r), w.replyFor(r), b.reply)
			} else {
				w.brokenFor(w.lastOperation(), "no record "+string(r.key)+" in the destination",
					"the witness operation "+op+" says that it is there: "+b.why(r), w.replyFor(r), b.reply)
			}
		}
	}
	w.proof("witnessed by %s", op)
	for _, r := range records {
		switch {
		case want:
			w.Saw(SeenStored, 1)
		case w.model.get(r).created:
			w.Saw(SeenDeleted, 1)
			fallthrough
		default:
			w.Saw(SeenAbsent, 1)
		}
	}
	return w.held()
}

// calibrated finds a witness operation whose skips can be told from successes.
func (w *world) calibrated() (string, error) {
	declared := w.opts.SkipConvention == SkipFailure || w.opts.SkipConvention == SkipSuccessWithMessage
	if w.opts.SkipConvention == SkipSuccess {
		return "", inconclusive("readback", "skips are reported as plain successes, so only a read-back can decide")
	}
	for _, op := range []string{rpc.OperationUpdate, rpc.OperationInsert} {
		if !w.object.accepts(op) {
			continue
		}
		if declared {
			return op, nil
		}
		probe, err := w.make(1, op, rpc.Field{}, &sending{})
		if err != nil {
			return "", err
		}
		b, err := w.writeOne(op, probe, plan{})
		if err != nil {
			return "", err
		}
		if op == rpc.OperationInsert {
			if !b.succeeded(probe[0]) {
				continue // one that takes nothing shows nothing by refusing it again
			}
			if b, err = w.writeOne(op, probe, plan{}); err != nil {
				return "", err
			}
		}
		if !b.failed(probe[0]) {
			continue
		}
		if found, err := w.finds(op); err != nil || found {
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
func (w *world) sendsInLanes(s set) ([]*batch, error) {
	create, records := s.operation, s.records
	witness := rpc.OperationUpdate
	if !w.object.accepts(witness) {
		witness = rpc.OperationInsert
	}
	out := make([]lane, len(records))
	errs := make([]error, len(records))
	slots := make(chan struct{}, maxLanes)
	var wg sync.WaitGroup
	for i, r := range records {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			out[i], errs[i] = w.runLane(create, witness, r)
		})
	}
	wg.Wait()
	var sent []*batch
	for i, l := range out {
		if errs[i] != nil {
			return sent, errs[i]
		}
		sent = append(sent, l.created)
		w.batches, w.replies = append(w.batches, l.created), append(w.replies, l.created.reply)
	}
	w.parallel.lanes, w.parallel.witness = out, witness
	return sent, nil
}

func (w *world) runLane(create, witness string, r *record) (lane, error) {
	var l lane
	var err error
	if l.created, err = w.batch(w, create, []*record{r}, plan{}); err != nil || !l.created.succeeded(r) {
		return l, err
	}
	second := w.changed(r, witnessVersion)
	if witness == rpc.OperationUpdate {
		second = second.updateable()
	}
	l.witness, err = w.batch(w, witness, []*record{second}, plan{})
	return l, err
}

func (w *world) witnessesSee() error {
	lanes, witness := w.parallel.lanes, w.parallel.witness
	if w.opts.SkipConvention == SkipSuccess {
		return inconclusive("readback", "skips are reported as plain successes, so a witness sees nothing")
	}
	blind, seen := 0, 0
	for _, l := range lanes {
		if l.witness == nil {
			continue
		}
		seen++
		r := l.witness.records[0]
		there := w.skipped(l.witness, r) == (witness == rpc.OperationInsert)
		if !there {
			blind++
			w.brokenAs(symptomMissing, witness, "an acknowledged record that every later call sees",
				string(json.RawMessage(r.key))+" was acknowledged, and then "+witness+" did not find it: "+l.witness.why(r), l.created.reply, l.witness.reply)
		}
	}
	if seen == 0 {
		return inconclusive("", "no record was acknowledged, so that none could be witnessed")
	}
	if witness == rpc.OperationInsert && blind == seen || w.opts.SkipConvention == "" {
		if visible, err := w.skipsVisible(witness); err != nil || !visible {
			w.findings = nil
			return orError(err, inconclusive("readback", "skips of %s cannot be told from successes: declare --skip-convention", witness))
		}
	}
	w.proof("witnessed by %s", witness)
	w.Saw(SeenStored, seen)
	return w.held()
}

func orError(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// skipsVisible calibrates one witness operation.
func (w *world) skipsVisible(op string) (bool, error) {
	probe, err := w.make(1, op, rpc.Field{}, &sending{})
	if err != nil {
		return false, err
	}
	rounds := 1
	if op == rpc.OperationInsert {
		rounds = 2
	}
	var last *batch
	for i := range rounds {
		if last, err = w.writeOne(op, probe, plan{}); err != nil {
			return false, err
		}
		if i+1 < rounds && !last.succeeded(probe[0]) {
			return false, nil
		}
	}
	if !w.skipped(last, probe[0]) {
		return false, nil
	}
	return w.finds(op)
}

// finds is the positive control of a witness: an update takes a record that is
// there. One that takes none shows nothing by refusing. A record that was
// acknowledged before it was written has some time to arrive.
func (w *world) finds(op string) (bool, error) {
	if op != rpc.OperationUpdate || w.object.creating() == "" {
		return true, nil
	}
	made, err := w.make(1, w.object.creating(), rpc.Field{}, &sending{})
	if err != nil {
		return false, err
	}
	created, err := w.writeOne(w.object.creating(), made, plan{})
	if err != nil || !created.succeeded(made[0]) {
		return false, err
	}
	change := forOperation(op, []*record{w.changed(made[0], witnessVersion)})
	for range 10 {
		b, err := w.writeOne(op, change, plan{})
		if err != nil {
			return false, err
		}
		if !w.skipped(b, change[0]) {
			return true, nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-w.ctx.Done():
			return false, overtime(w.ctx)
		}
	}
	return false, nil
}
