package conformance

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
)

// A witness operation gives evidence of existence without a read-back: an
// update of an absent record is skipped, an insert of an existing one too. It
// counts only where skips are visible, by declaration or by calibration.

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
		sent[i] = w.changed(r, r.n+70)
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
			there := w.skipped(b, r) == (op == rpc.OperationInsert)
			if there == want {
				continue
			}
			if want {
				w.brokenFor(w.lastOperation(), "the acknowledged record "+string(r.key)+" in the destination",
					"the witness operation "+op+" says that it is not there: "+b.why(r), w.replyFor(r), b.reply)
			} else {
				w.brokenFor(w.lastOperation(), "no record "+string(r.key)+" in the destination",
					"the witness operation "+op+" says that it is there: "+b.why(r), w.replyFor(r), b.reply)
			}
		}
	}
	w.proof("%d records witnessed by %s", len(records), op)
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
			if b, err = w.writeOne(op, probe, plan{}); err != nil {
				return "", err
			}
		}
		if b.failed(probe[0]) {
			return op, nil
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
	w.vars["lanes"], w.vars["witness"] = out, witness
	return sent, nil
}

func (w *world) runLane(create, witness string, r *record) (lane, error) {
	var l lane
	var err error
	if l.created, err = w.batch(w, create, []*record{r}, plan{}); err != nil || !l.created.succeeded(r) {
		return l, err
	}
	second := w.changed(r, r.n+70)
	if witness == rpc.OperationUpdate {
		second = second.updateable()
	}
	l.witness, err = w.batch(w, witness, []*record{second}, plan{})
	return l, err
}

func (w *world) witnessesSee() error {
	lanes, _ := w.vars["lanes"].([]lane)
	witness, _ := w.vars["witness"].(string)
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
			w.brokenFor(witness, "an acknowledged record that every later call sees",
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
	w.proof("%d records witnessed by %s", seen, witness)
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
	for range rounds {
		if last, err = w.writeOne(op, probe, plan{}); err != nil {
			return false, err
		}
	}
	return slices.ContainsFunc(probe, func(r *record) bool { return w.skipped(last, r) }), nil
}
