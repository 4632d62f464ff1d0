package judge

import (
	"fmt"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// What the service does with several objects.

// amongObjects is what the service does with several objects at a time.
func (sc *Scenario) amongObjects(what string) error {
	if what != "plans every other object" {
		return sc.sendsInTurn()
	}
	var calls []line.Request
	for _, o := range sc.Catalog.Objects {
		if o.APIName != sc.Object.APIName {
			calls = append(calls, objectCalls(o)...)
		}
	}
	if len(calls) == 0 {
		return line.NotApplicable("the endpoint lists one object only")
	}
	return sc.sendAll(append(calls[:min(len(calls), 20)], line.Request{Method: rpc.MethodGetSyncSpeed}))
}

// sendsInTurn sends batches of one record, the object of the check and the other
// named ones in turn, as the service does with two syncs.
func (sc *Scenario) sendsInTurn() error {
	var objects []*write.Object
	for _, name := range sc.Opts.Objects {
		if o := sc.Catalog.Object(name); o != nil && o.Creating() != "" && (o == sc.Object || len(objects) < 4) {
			objects = append(objects, o)
		}
	}
	if len(objects) < 2 || sc.Object.Creating() == "" {
		return nil // the steps before show what one object shows
	}
	if sc.Model == nil {
		sc.Model = sc.NewView()
	}
	for range 3 {
		for _, o := range objects {
			id, err := o.Identifier()
			if err != nil {
				continue
			}
			r, err := sc.NewRecord(o, id)
			if err != nil {
				return err
			}
			b, err := sc.WriteOne(o.Creating(), []*write.Record{r}, write.Plan{})
			if err != nil {
				return err
			}
			sc.Model.Follow(b)
			sc.KeepRefusal(b)
			sc.Latest, sc.Sets = append(sc.Latest, b), append(sc.Sets, write.Set{Operation: b.Operation, Records: b.Records})
		}
	}
	return nil
}

func (sc *Scenario) sendsNone(which string) error {
	if which == "" {
		return sc.sendEmpty(sc.Object)
	}
	others := 0
	for _, o := range sc.Catalog.Objects {
		if o.APIName != sc.Object.APIName && len(o.Writing()) > 0 {
			others++
			if err := sc.sendEmpty(o); err != nil {
				return err
			}
		}
	}
	if others == 0 {
		return line.NotApplicable("the endpoint lists one object only")
	}
	return nil
}

func (sc *Scenario) sendEmpty(o *write.Object) error {
	params, ok := sc.emptyBatch(o)
	if !ok {
		return nil
	}
	_, err := sc.Send(line.Request{Method: rpc.MethodSyncBatch, Params: params, Object: o.APIName})
	return err
}

// twinSteps look at records that one identifier of a batch names, and that are none of
// its records: those of another object with the same keys, and those of another identifier.
func twinSteps() []definition {
	return []definition{
		step(`^(the same keys are created in another named object|the service sends records whose identifiers disagree with every changing operation)$`, func(sc *Scenario) any {
			return func(what string) error {
				if strings.HasPrefix(what, "the same") {
					return sc.createsTwins()
				}
				return sc.sendsDisagreeing()
			}
		}),
		step(`^(the records of the other object are kept|only the record that the active identifier names is changed)$`, func(sc *Scenario) any {
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
func (sc *Scenario) createsTwins() error {
	var sent []*write.Record
	for _, s := range sc.Sets {
		sent = append(sent, s.Records...)
	}
	for _, name := range sc.Opts.Objects {
		o := sc.Catalog.Object(name)
		if o == nil || o.APIName == sc.Object.APIName || o.Creating() == "" {
			continue
		}
		for _, id := range o.Identifiers() {
			if id.Type != sent[0].ID.Type {
				continue
			}
			if err := sc.createsTwinsIn(o, id, sent); err != nil || len(sc.twins) > 0 {
				return err
			}
		}
	}
	return line.NotApplicable("no other named object takes the keys of %s", sc.Object)
}

func (sc *Scenario) createsTwinsIn(o *write.Object, id rpc.Field, sent []*write.Record) error {
	var twins []*write.Record
	for _, r := range sent {
		t, err := sc.RecordWith(o, id, o.Ordinary(id))
		if err != nil {
			return err
		}
		twins = append(twins, t.With(id.APIName, r.Key))
	}
	other := sc.j.NewScenario(sc.Ctx, sc.Check(), o)
	if _, err := other.Write(o.Creating(), twins, write.Plan{}); err != nil {
		return err
	}
	seen, err := other.Observe(twins)
	if err != nil {
		return err
	}
	for _, t := range twins {
		if seen[exchange.KeyText(t.Key)].Count > 0 {
			sc.twins = append(sc.twins, t)
		}
	}
	return nil
}

// twinsKept judges the records of the other object after a delete of their keys in
// the first one.
func (sc *Scenario) twinsKept() error {
	var due []*write.Record
	for _, t := range sc.twins {
		for _, b := range sc.Latest {
			for _, r := range b.Records {
				if exchange.KeyText(r.Key) == exchange.KeyText(t.Key) && b.Succeeded(r) {
					due = append(due, t)
				}
			}
		}
	}
	if len(due) == 0 {
		return sc.noneAccepted()
	}
	seen, err := sc.Observe(due)
	if err != nil {
		return err
	}
	for _, t := range due {
		if seen[exchange.KeyText(t.Key)].Count > 0 {
			sc.Saw(conformance.SeenKept, 1)
			continue
		}
		sc.BrokenAs("gone elsewhere", rpc.OperationDelete, fmt.Sprintf("%s in %q, which no call has deleted", t.Key, t.Object.APIName),
			"it is not there any more", sc.lastReply())
	}
	return sc.Held()
}
