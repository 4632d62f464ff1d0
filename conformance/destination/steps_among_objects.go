package destination

import (
	"github.com/destkit/destkit/destsim/rpc"
)

// What the service does with several objects.

// amongObjects is what the service does with several objects at a time.
func (sc *scenario) amongObjects(what string) error {
	if what != "plans every other object" {
		return sc.sendsInTurn()
	}
	var calls []request
	for _, o := range sc.catalog.objects {
		if o.APIName != sc.object.APIName {
			calls = append(calls, objectCalls(o)...)
		}
	}
	if len(calls) == 0 {
		return notApplicable("the endpoint lists one object only")
	}
	return sc.sendAll(append(calls[:min(len(calls), 20)], request{method: rpc.MethodGetSyncSpeed}))
}

// sendsInTurn sends batches of one record, the object of the check and the other
// named ones in turn, as the service does with two syncs.
func (sc *scenario) sendsInTurn() error {
	var objects []*object
	for _, name := range sc.opts.Objects {
		if o := sc.catalog.object(name); o != nil && o.creating() != "" && (o == sc.object || len(objects) < 4) {
			objects = append(objects, o)
		}
	}
	if len(objects) < 2 || sc.object.creating() == "" {
		return nil // the steps before show what one object shows
	}
	if sc.model == nil {
		sc.model = sc.newView()
	}
	for range 3 {
		for _, o := range objects {
			id, err := o.identifier()
			if err != nil {
				continue
			}
			r, err := sc.newRecord(o, id)
			if err != nil {
				return err
			}
			b, err := sc.writeOne(o.creating(), []*record{r}, plan{})
			if err != nil {
				return err
			}
			sc.model.follow(b)
			sc.keepRefusal(b)
			sc.latest, sc.sets = append(sc.latest, b), append(sc.sets, set{b.operation, b.records})
		}
	}
	return nil
}

func (sc *scenario) sendsNone(which string) error {
	if which == "" {
		return sc.sendEmpty(sc.object)
	}
	others := 0
	for _, o := range sc.catalog.objects {
		if o.APIName != sc.object.APIName && len(o.writing()) > 0 {
			others++
			if err := sc.sendEmpty(o); err != nil {
				return err
			}
		}
	}
	if others == 0 {
		return notApplicable("the endpoint lists one object only")
	}
	return nil
}

func (sc *scenario) sendEmpty(o *object) error {
	params, ok := sc.emptyBatch(o)
	if !ok {
		return nil
	}
	_, err := sc.send(request{method: rpc.MethodSyncBatch, params: params, object: o.APIName})
	return err
}
