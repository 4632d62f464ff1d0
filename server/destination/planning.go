package destination

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
)

// planningCalls is how many planning calls of one connection run at once
// (facts A6: schema calls come in parallel).
const planningCalls = 8

// objects makes all planning calls (spec 4.2): list_objects, then list_fields
// and supported_operations of every object in parallel. The first call that
// fails ends the rest; what a reply says wrongly about one object spoils only
// that object.
func (c *caller) objects(ctx context.Context) ([]wireObject, error) {
	raw, _, failed := c.exchange(ctx, rpc.MethodListObjects, nil)
	if failed != nil {
		return nil, failed
	}
	objects, problem := decodeObjects(raw)
	if problem != "" {
		return nil, &CallError{
			Method: rpc.MethodListObjects, Outcome: OutcomeMalformed,
			Message: unknownError + c.clean.foreign(problem),
		}
	}
	fields, operations := make([]json.RawMessage, len(objects)), make([]json.RawMessage, len(objects))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first *CallError
		slots = make(chan struct{}, planningCalls)
	)
	ask := func(method string, i int, dst *json.RawMessage) {
		slots <- struct{}{} // calls end by their own timeout, so this does too
		wg.Go(func() {
			defer func() { <-slots }()
			raw, _, failed := c.exchange(ctx, method, objectParams{objects[i].Ref()})
			if failed != nil {
				failed.Object = objects[i].APIName
				once.Do(func() { first = failed; cancel() })
				return
			}
			*dst = raw
		})
	}
	for i := 0; i < len(objects) && ctx.Err() == nil; i++ {
		ask(rpc.MethodListFields, i, &fields[i])
		ask(rpc.MethodSupportedOperations, i, &operations[i])
	}
	wg.Wait()
	if first == nil && ctx.Err() != nil {
		first = &CallError{Method: rpc.MethodListFields, Outcome: OutcomeCanceled, Message: "the call was cancelled"}
	}
	if first != nil {
		return nil, first
	}
	for i := range objects {
		objects[i].readFields(fields[i])
		objects[i].readOperations(operations[i])
	}
	return objects, nil
}

// objectParams are the params of list_fields and supported_operations: exactly
// this key (facts A3).
type objectParams struct {
	Object rpc.ObjectRef `json:"object"`
}
