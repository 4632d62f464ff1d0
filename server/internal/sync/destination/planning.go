package destination

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/destkit/destkit/destsim/rpc"
)

// planningCalls is how many planning calls of one connection run at once
// (schema calls come in parallel).
const planningCalls = 8

// objects makes all planning calls (spec 4.2): list_objects, then list_fields
// and supported_operations of every object in parallel. The first call that
// fails ends the rest; what a reply says wrongly about one object spoils only
// that object.
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
	var room atomic.Int64 // what the fields of all objects may still take
	room.Store(maxDescribed)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first *CallError
		slots = make(chan struct{}, planningCalls)
	)
	ask := func(method string, i int, read func(json.RawMessage)) {
		slots <- struct{}{} // calls end by their own timeout, so this does too
		wg.Go(func() {
			defer func() { <-slots }()
			raw, x, failed := c.exchange(ctx, method, objectParams{objects[i].Ref()})
			defer x.leave()
			if failed != nil {
				failed.Object = objects[i].APIName
				once.Do(func() { first = failed; cancel() })
				return
			}
			read(raw) // at once: the replies of all objects would fill the memory
		})
	}
	for i := 0; i < len(objects) && ctx.Err() == nil; i++ {
		ask(rpc.MethodListFields, i, func(raw json.RawMessage) { answers[i].fields.readFields(raw, &room) })
		ask(rpc.MethodSupportedOperations, i, func(raw json.RawMessage) { answers[i].operations.readOperations(raw) })
	}
	wg.Wait()
	if first == nil && ctx.Err() != nil {
		first = &CallError{Method: rpc.MethodListFields, Outcome: OutcomeCanceled, Message: "the call was cancelled"}
	}
	if first != nil {
		return nil, first
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
