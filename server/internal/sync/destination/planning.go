package destination

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/destkit/destkit/destsim/rpc"
)

// planningCalls is how many planning calls of one connection run at once
// (schema calls come in parallel).
const planningCalls = 8

// objects makes all planning calls (spec 4.2): list_objects, then list_fields
// and supported_operations of every object in parallel. The first call that
// fails ends the rest; an error in a reply about one object spoils only that
// object.
func (c *caller) objects(ctx context.Context) ([]wireObject, error) {
	raw, x, failed := c.exchange(ctx, rpc.MethodListObjects, nil)
	defer x.leave()
	if failed != nil {
		return nil, failed
	}
	objects, problem := decodeObjects(raw)
	x.leave()
	if problem != "" {
		return nil, &CallError{
			Method: rpc.MethodListObjects, Outcome: OutcomeMalformed,
			Message: unknownError + c.clean.Foreign(problem),
		}
	}
	answers := make([]described, len(objects))
	var room atomic.Int64 // bytes left for the fields of all objects
	room.Store(maxDescribed)
	calls, within := errgroup.WithContext(ctx)
	calls.SetLimit(planningCalls) // they end by their own timeout, so waiting does too
	ask := func(method string, i int, read func(json.RawMessage)) {
		calls.Go(func() error {
			raw, x, failed := c.exchange(within, method, objectParams{objects[i].Ref()})
			defer x.leave()
			if failed != nil {
				failed.Object = objects[i].APIName
				return failed
			}
			read(raw) // at once: the replies of all objects would fill the memory
			return nil
		})
	}
	for i := 0; i < len(objects) && within.Err() == nil; i++ {
		ask(rpc.MethodListFields, i, func(raw json.RawMessage) { answers[i].fields.readFields(raw, &room) })
		ask(rpc.MethodSupportedOperations, i, func(raw json.RawMessage) { answers[i].operations.readOperations(raw) })
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, &CallError{Method: rpc.MethodListFields, Outcome: OutcomeCanceled, Message: "the call was cancelled"}
	}
	for i := range objects {
		objects[i].describe(&answers[i])
	}
	return objects, nil
}

// objectParams are the params of list_fields and supported_operations: exactly
// this key.
type objectParams struct {
	Object rpc.ObjectRef `json:"object"`
}
