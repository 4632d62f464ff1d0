package violation

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// timeoutsViolations break the rules of TOUT: requests that take too long (spec 8).
func timeoutsViolations() []violation {
	endless := func(id, changes, method string, header, body bool) violation {
		return breaks(id, changes, seams{carry: func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
			if o.Method != method {
				return next(o)
			}
			return withoutDeadline(o, next, header, body)
		}})
	}
	return []violation{
		endless("TOUT-001", "the deadline of a batch begins with its answer", rpc.MethodSyncBatch, true, false),
		breaks("TOUT-002", "a batch that is not answered counts as sent", seams{
			carry: func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
				resp, err := next(o)
				if o.Method == rpc.MethodSyncBatch && late(o.Context) && err != nil {
					return allDone(o), nil
				}
				return resp, err
			},
		}),
		endless("TOUT-003", "the deadline of a batch ends with the first byte of its answer", rpc.MethodSyncBatch, false, true),
		endless("TOUT-005", "get_sync_speed has no deadline", rpc.MethodGetSyncSpeed, true, true),
		endless("TOUT-006", "test_connection has no deadline", rpc.MethodTestConnection, true, true),
	}
}

// late tells that the deadline of a call is over.
func late(ctx context.Context) bool { return errors.Is(ctx.Err(), context.DeadlineExceeded) }

// withoutDeadline makes a call whose deadline does not count until the header of
// the answer has come, or from then on.
func withoutDeadline(o *exchange.Call, next exchange.Next, header, body bool) (*http.Response, error) {
	deadline := o.Context
	ctx, cancel := context.WithCancel(context.WithoutCancel(deadline))
	stop := func() bool { return true }
	if !header {
		stop = context.AfterFunc(deadline, cancel)
	}
	free := *o
	free.Context = ctx
	resp, err := next(&free)
	if err != nil {
		cancel()
		return nil, err
	}
	if body {
		stop()
	} else {
		context.AfterFunc(deadline, cancel)
	}
	resp.Body = &closing{resp.Body, cancel}
	return resp, nil
}

// closing ends what belongs to a body with it.
type closing struct {
	io.ReadCloser
	end func()
}

// Close closes the body.
func (c *closing) Close() error {
	defer c.end()
	return c.ReadCloser.Close()
}

// allDone answers a batch as if every record of it had been stored.
func allDone(o *exchange.Call) *http.Response {
	var id, field any
	o.Edit(func(m map[string]any) { id = m["id"] })
	schema, _ := o.Param("sync_plan", "schema").(map[string]any)
	for name, f := range schema {
		if one, _ := f.(map[string]any); one["active_identifier"] == true {
			field = name
		}
	}
	results := []any{}
	records, _ := o.Param("records").([]any)
	for _, r := range records {
		record, _ := r.(map[string]any)
		name, _ := field.(string)
		results = append(results, map[string]any{"identifier": record[name], "success": true})
	}
	return exchange.Made(o, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": id, "result": map[string]any{"record_results": results}})
}
