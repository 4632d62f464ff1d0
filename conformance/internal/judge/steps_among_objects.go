package judge

import (
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
