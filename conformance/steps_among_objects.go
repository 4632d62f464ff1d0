package conformance

import (
	"github.com/destkit/destkit/destsim/rpc"
)

// What the service does with several objects.

// amongObjects is what the service does with several objects at a time.
func (w *world) amongObjects(what string) error {
	if what != "plans every other object" {
		return w.sendsInTurn()
	}
	var calls []request
	for _, o := range w.catalog.objects {
		if o.APIName != w.object.APIName {
			calls = append(calls, objectCalls(o)...)
		}
	}
	if len(calls) == 0 {
		return notApplicable("the endpoint lists one object only")
	}
	return w.sendAll(append(calls[:min(len(calls), 20)], request{method: rpc.MethodGetSyncSpeed}))
}

// sendsInTurn sends batches of one record, the object of the check and the other
// named ones in turn, as the service does with two syncs.
func (w *world) sendsInTurn() error {
	var objects []*object
	for _, name := range w.opts.Objects {
		if o := w.catalog.object(name); o != nil && o.creating() != "" && (o == w.object || len(objects) < 4) {
			objects = append(objects, o)
		}
	}
	if len(objects) < 2 || w.object.creating() == "" {
		return nil // the steps before show what one object shows
	}
	if w.model == nil {
		w.model = newModel()
	}
	for range 3 {
		for _, o := range objects {
			id, err := o.identifier()
			if err != nil {
				continue
			}
			r, err := w.newRecord(o, id)
			if err != nil {
				return err
			}
			b, err := w.writeOne(o.creating(), []*record{r}, plan{})
			if err != nil {
				return err
			}
			w.model.apply(b)
			w.keepRefusal(b)
			w.latest, w.sets = append(w.latest, b), append(w.sets, set{b.operation, b.records})
		}
	}
	return nil
}

func (w *world) sendsNone(which string) error {
	if which == "" {
		return w.sendEmpty(w.object)
	}
	others := 0
	for _, o := range w.catalog.objects {
		if o.APIName != w.object.APIName && len(o.writing()) > 0 {
			others++
			if err := w.sendEmpty(o); err != nil {
				return err
			}
		}
	}
	if others == 0 {
		return notApplicable("the endpoint lists one object only")
	}
	return nil
}

func (w *world) sendEmpty(o *object) error {
	params, ok := w.emptyBatch(o)
	if !ok {
		return nil
	}
	_, err := w.send(request{method: rpc.MethodSyncBatch, params: params, object: o.APIName})
	return err
}
