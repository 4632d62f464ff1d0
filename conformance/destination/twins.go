package destination

import (
	"fmt"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/destsim/rpc"
)

// twinSteps look at records that one identifier of a batch names, and that are none of
// its records: those of another object with the same keys, and those of another identifier.
func twinSteps() []definition {
	return []definition{
		step(`^(the same keys are created in another named object|the service sends records whose identifiers disagree with every changing operation)$`, func(sc *scenario) any {
			return func(what string) error {
				if strings.HasPrefix(what, "the same") {
					return sc.createsTwins()
				}
				return sc.sendsDisagreeing()
			}
		}),
		step(`^(the records of the other object are kept|only the record that the active identifier names is changed)$`, func(sc *scenario) any {
			return func(what string) error {
				if strings.HasPrefix(what, "only") {
					return sc.onlyActiveChanged()
				}
				return sc.twinsKept()
			}
		}),
	}
}

// createsTwins creates records under the keys that were sent in the first other
// object that takes them. Only named objects are written.
func (sc *scenario) createsTwins() error {
	var sent []*record
	for _, s := range sc.sets {
		sent = append(sent, s.records...)
	}
	for _, name := range sc.opts.Objects {
		o := sc.catalog.object(name)
		if o == nil || o.APIName == sc.object.APIName || o.creating() == "" {
			continue
		}
		for _, id := range o.identifiers() {
			if id.Type != sent[0].id.Type {
				continue
			}
			if err := sc.createsTwinsIn(o, id, sent); err != nil || len(sc.twins) > 0 {
				return err
			}
		}
	}
	return notApplicable("no other named object takes the keys of %s", sc.object)
}

func (sc *scenario) createsTwinsIn(o *object, id rpc.Field, sent []*record) error {
	var twins []*record
	for _, r := range sent {
		t, err := sc.recordWith(o, id, o.ordinary(id))
		if err != nil {
			return err
		}
		twins = append(twins, t.with(id.APIName, r.key))
	}
	other := sc.newScenario(sc.ctx, sc.Check(), o)
	if _, err := other.write(o.creating(), twins, plan{}); err != nil {
		return err
	}
	seen, err := other.observe(twins)
	if err != nil {
		return err
	}
	for _, t := range twins {
		if seen[exchange.KeyText(t.key)].count > 0 {
			sc.twins = append(sc.twins, t)
		}
	}
	return nil
}

// twinsKept judges the records of the other object after a delete of their keys in
// the first one.
func (sc *scenario) twinsKept() error {
	var due []*record
	for _, t := range sc.twins {
		for _, b := range sc.latest {
			for _, r := range b.records {
				if exchange.KeyText(r.key) == exchange.KeyText(t.key) && b.succeeded(r) {
					due = append(due, t)
				}
			}
		}
	}
	if len(due) == 0 {
		return sc.noneAccepted()
	}
	seen, err := sc.observe(due)
	if err != nil {
		return err
	}
	for _, t := range due {
		if seen[exchange.KeyText(t.key)].count > 0 {
			sc.Saw(conformance.SeenKept, 1)
			continue
		}
		sc.brokenAs("gone elsewhere", rpc.OperationDelete, fmt.Sprintf("%s in %q, which no call has deleted", t.key, t.object.APIName),
			"it is not there any more", sc.lastReply())
	}
	return sc.Held()
}
