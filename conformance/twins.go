package conformance

import (
	"fmt"

	"github.com/destkit/destkit/destsim/rpc"
)

// twinSteps look at two objects that have the same keys.
func twinSteps() []definition {
	return []definition{
		step(`^the same keys are created in another named object$`, func(w *world) any { return w.createsTwins }),
		step(`^the records of the other object are kept$`, func(w *world) any { return w.twinsKept }),
	}
}

// createsTwins creates records under the keys that were sent in the first other
// object that takes them. Only named objects are written.
func (w *world) createsTwins() error {
	var sent []*record
	for _, s := range w.sets {
		sent = append(sent, s.records...)
	}
	for _, name := range w.opts.Objects {
		o := w.catalog.object(name)
		if o == nil || o.APIName == w.object.APIName || o.creating() == "" {
			continue
		}
		for _, id := range o.identifiers() {
			if id.Type != sent[0].id.Type {
				continue
			}
			if err := w.createsTwinsIn(o, id, sent); err != nil || len(w.twins) > 0 {
				return err
			}
		}
	}
	return notApplicable("no other named object takes the keys of %s", w.object)
}

func (w *world) createsTwinsIn(o *object, id rpc.Field, sent []*record) error {
	var twins []*record
	for _, r := range sent {
		t, err := w.recordWith(o, id, o.ordinary(id))
		if err != nil {
			return err
		}
		twins = append(twins, t.with(id.APIName, r.key))
	}
	other := w.newWorld(w.ctx, w.check, o)
	if _, err := other.write(o.creating(), twins, plan{}); err != nil {
		return err
	}
	seen, err := other.observe(twins)
	if err != nil {
		return err
	}
	for _, t := range twins {
		if seen[keyText(t.key)].count > 0 {
			w.twins = append(w.twins, t)
		}
	}
	return nil
}

// twinsKept judges the records of the other object after a delete of their keys in
// the first one.
func (w *world) twinsKept() error {
	var due []*record
	for _, t := range w.twins {
		for _, b := range w.latest {
			for _, r := range b.records {
				if keyText(r.key) == keyText(t.key) && b.succeeded(r) {
					due = append(due, t)
				}
			}
		}
	}
	if len(due) == 0 {
		return w.noneAccepted()
	}
	seen, err := w.observe(due)
	if err != nil {
		return err
	}
	for _, t := range due {
		if seen[keyText(t.key)].count > 0 {
			w.Saw(SeenKept, 1)
			continue
		}
		w.brokenAs("gone elsewhere", rpc.OperationDelete, fmt.Sprintf("%s in %q, which no call has deleted", t.key, t.object.APIName),
			"it is not there any more", w.lastReply())
	}
	return w.held()
}
