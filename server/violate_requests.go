package server

import (
	"net/http"

	"github.com/destkit/destkit/destsim/rpc"
)

// requestViolations break the envelope of calls to destinations (spec 4.2).
func requestViolations() []violation {
	edits := func(id, changes, method string, change func(map[string]any)) violation {
		return breaks(id, changes, seams{carry: func(o *sentCall, next func(*sentCall) (*http.Response, error)) (*http.Response, error) {
			if o.method == method {
				o.edit(change)
			}
			return next(o)
		}})
	}
	return []violation{
		edits("CALL-001", "get_sync_speed is sent without jsonrpc", rpc.MethodGetSyncSpeed, func(m map[string]any) { delete(m, "jsonrpc") }),
		edits("CALL-001.2", "get_sync_speed is sent with params null", rpc.MethodGetSyncSpeed, func(m map[string]any) { m["params"] = nil }),
		{Violation{ID: "CALL-002", Changes: "all batches are sent with the id of the first, and the answer gets back its own"}, func(*Server) seams {
			return seams{carry: sameID()}
		}},
	}
}

// sameID sends every batch with one id; the caller does not notice.
func sameID() func(*sentCall, func(*sentCall) (*http.Response, error)) (*http.Response, error) {
	return func(o *sentCall, next func(*sentCall) (*http.Response, error)) (*http.Response, error) {
		if o.method != rpc.MethodSyncBatch {
			return next(o)
		}
		var own any
		o.edit(func(m map[string]any) { own, m["id"] = m["id"], "1" })
		resp, err := next(o)
		return rewrite(resp, err, func(m map[string]any) { m["id"] = own })
	}
}
