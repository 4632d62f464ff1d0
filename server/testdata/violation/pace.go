package violation

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// paceViolations break the rules of PACE: speed, parallelism and the limit of a connection (spec 4.2, 8).
func paceViolations() []violation {
	return append(limitViolations(), []violation{
		{Violation{ID: "PACE-001", Changes: "get_sync_speed is called for the first run of a connection, and its answer kept", Also: []Also{
			{ID: "PACE-009", Why: "what is not asked for again does not change"},
		}}, func(*Service) seams { return seams{carry: rememberedSpeed(false)} }},
		readsSpeed("PACE-002", "batches have one record too many", func(s map[string]any) { adds(s, "maximum_batch_size", 1) },
			Also{ID: "PACE-009", Why: "so have those of the second run"}),
		readsSpeed("PACE-002.2", "batches have a hundred records, whatever the destination says", func(s map[string]any) {
			if exchange.IntOf(s["maximum_batch_size"]) > 0 {
				s["maximum_batch_size"] = 100
			}
		}, Also{ID: "PACE-009", Why: "a lowered maximum_batch_size is not read either"}),
		readsSpeed("PACE-003", "one batch more than allowed is under way", func(s map[string]any) {
			if n := exchange.IntOf(s["maximum_parallel_batches"]); n > 1 && n < 50 {
				adds(s, "maximum_parallel_batches", 1)
			}
		}),
		breaks("PACE-004", "maximum_parallel_batches is not capped", seams{engine: func(d *executor.Deviations) { d.Uncapped = true }}),
		readsSpeed("PACE-005", "half as many batches as allowed are sent at once", func(s map[string]any) {
			if n := exchange.IntOf(s["maximum_parallel_batches"]); n > 1 {
				s["maximum_parallel_batches"] = n / 2
			}
		}),
		readsSpeed("PACE-006", "maximum_records_per_second is not read", func(s map[string]any) {
			if n := exchange.IntOf(s["maximum_records_per_second"]); n > 0 && n >= exchange.IntOf(s["maximum_batch_size"]) {
				s["maximum_records_per_second"] = 1_000_000
			}
		}),
		readsSpeed("PACE-006.2", "maximum_records_per_second is what each of the parallel batches may have", func(s map[string]any) {
			n, size, parallel := exchange.IntOf(s["maximum_records_per_second"]), exchange.IntOf(s["maximum_batch_size"]), exchange.IntOf(s["maximum_parallel_batches"])
			if n > 0 && parallel > 0 && n >= size {
				s["maximum_records_per_second"] = n * parallel
			}
		}),
		{Violation{ID: "PACE-008", Changes: "batches of one sync at a time go to a destination"}, func(*Service) seams {
			return seams{carry: oneSyncAtATime()}
		}},
		{Violation{ID: "PACE-009", Changes: "the speed of the first run of a connection is used for all"}, func(*Service) seams {
			return seams{carry: rememberedSpeed(true)}
		}},
		readsSpeed("PACE-010", "a key that is missing counts as 1", func(s map[string]any) {
			for _, key := range speedKeys {
				if _, there := s[key]; !there {
					s[key] = 1
				}
			}
		}),
		readsSpeed("PACE-011", "a number in a text is taken", func(s map[string]any) {
			for _, key := range speedKeys {
				if text, ok := s[key].(string); ok {
					s[key] = json.Number(text)
				}
			}
		}),
		readsSpeed("PACE-011.2", "null, true and fractions count as 1", func(s map[string]any) {
			for _, key := range speedKeys {
				switch v, there := s[key]; v := v.(type) {
				case json.Number:
					if _, err := v.Int64(); err != nil {
						s[key] = 1
					}
				case nil, bool:
					if there {
						s[key] = 1
					}
				}
			}
		}),
	}...)
}

var speedKeys = []string{"maximum_batch_size", "maximum_parallel_batches", "maximum_records_per_second"}

// adds makes a positive number larger.
func adds(s map[string]any, key string, by int64) {
	if n := exchange.IntOf(s[key]); n > 0 {
		s[key] = n + by
	}
}

// readsSpeed changes what the service makes of the result of get_sync_speed.
func readsSpeed(id, changes string, read func(speed map[string]any), also ...Also) violation {
	return violation{Violation{ID: id, Changes: changes, Also: also}, func(*Service) seams {
		return seams{carry: func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
			resp, err := next(o)
			if o.Method != rpc.MethodGetSyncSpeed {
				return resp, err
			}
			return exchange.Rewrite(resp, err, func(body map[string]any) {
				if speed, ok := body["result"].(map[string]any); ok {
					read(speed)
				}
			})
		}}
	}}
}

// rememberedSpeed answers get_sync_speed as it was answered first; calls reports
// whether the destination is called nevertheless.
func rememberedSpeed(calls bool) exchange.Carry {
	var mu sync.Mutex
	first := map[string]any{}
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		if o.Method != rpc.MethodGetSyncSpeed {
			return next(o)
		}
		var id any
		o.Edit(func(m map[string]any) { id = m["id"] })
		key := o.HTTP.URL.String()
		mu.Lock()
		known, seen := first[key]
		mu.Unlock()
		var resp *http.Response
		var err error
		if seen && !calls {
			resp = exchange.Made(o, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": id, "result": known})
		} else {
			resp, err = next(o)
		}
		return exchange.Rewrite(resp, err, func(body map[string]any) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case seen:
				body["result"] = known
			case body["result"] != nil:
				first[key] = body["result"]
			}
		})
	}
}

// oneSyncAtATime lets batches to one endpoint wait while those of another sync
// are under way.
func oneSyncAtATime() exchange.Carry {
	type turn struct {
		sync  any
		under int
	}
	var mu sync.Mutex
	over := sync.NewCond(&mu)
	turns := map[string]*turn{}
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		if o.Method != rpc.MethodSyncBatch {
			return next(o)
		}
		own := o.Param("sync_plan", "sync_id")
		mu.Lock()
		t := turns[o.HTTP.URL.String()]
		if t == nil {
			t = &turn{}
			turns[o.HTTP.URL.String()] = t
		}
		for t.under > 0 && t.sync != own {
			over.Wait()
		}
		t.sync = own
		t.under++
		mu.Unlock()
		defer func() {
			mu.Lock()
			t.under--
			mu.Unlock()
			over.Broadcast()
		}()
		return next(o)
	}
}
