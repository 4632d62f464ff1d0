package violation

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// limitViolations break the limit that all calls of a connection share (spec 8).
func limitViolations() []violation {
	return []violation{
		readsLimit("PACE-013", "X-RateLimit-Limit is not read", func(_ *exchange.Call, h http.Header) { h.Del(limitHeader) }),
		readsLimit("PACE-013.2", "X-RateLimit-Limit is read as requests per tenth of a second", func(_ *exchange.Call, h http.Header) {
			if n, err := strconv.Atoi(h.Get(limitHeader)); err == nil && n > 0 {
				h.Set(limitHeader, strconv.Itoa(10*n))
			}
		}),
		breaks("PACE-014", "each run counts its own calls against X-RateLimit-Limit", seams{engine: func(d *executor.Deviations) { d.LimitOfRun = true }}),
		readsLimit("PACE-015", "X-RateLimit-Limit is read from the answers to batches and get_sync_speed only", func(o *exchange.Call, h http.Header) {
			if o.Method != rpc.MethodSyncBatch && o.Method != rpc.MethodGetSyncSpeed {
				h.Del(limitHeader)
			}
		}),
		{Violation{ID: "PACE-016", Changes: "the first X-RateLimit-Limit of a connection stays"}, func(*Service) seams {
			return seams{carry: keptLimit(func(kept, _ int) bool { return kept > 0 })}
		}},
		breaks("PACE-018", "X-RateLimit-Limit is not read from an answer that is an error", seams{
			carry: func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
				resp, err := next(o)
				if err == nil && resp.StatusCode != http.StatusOK {
					resp.Header.Del(limitHeader)
				}
				return resp, err
			},
		}),
		{Violation{ID: "PACE-022", Changes: "5 requests per second are sent before 24 answers have come without X-RateLimit-Limit"}, func(*Service) seams { return seams{carry: slowStart()} }},
	}
}

const limitHeader = "X-Ratelimit-Limit"

// readsLimit changes what the service makes of the headers of an answer.
func readsLimit(id, changes string, read func(o *exchange.Call, h http.Header), also ...Also) violation {
	return violation{Violation{ID: id, Changes: changes, Also: also}, func(*Service) seams {
		return seams{carry: func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
			resp, err := next(o)
			if err == nil {
				read(o, resp.Header)
			}
			return resp, err
		}}
	}}
}

// keptLimit holds on to a limit of an endpoint against the one that is named.
func keptLimit(stays func(kept, named int) bool) exchange.Carry {
	var mu sync.Mutex
	limits := map[string]int{}
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		resp, err := next(o)
		if err != nil {
			return resp, err
		}
		named, wrong := strconv.Atoi(resp.Header.Get(limitHeader))
		if wrong != nil || named <= 0 {
			return resp, err
		}
		mu.Lock()
		defer mu.Unlock()
		key := o.HTTP.URL.String()
		if stays(limits[key], named) {
			resp.Header.Set(limitHeader, strconv.Itoa(limits[key]))
			return resp, err
		}
		limits[key] = named
		return resp, err
	}
}

// slowStart holds connections that name no limit back for a while.
func slowStart() exchange.Carry {
	const many = 24
	var mu sync.Mutex
	answers := map[string]int{}
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		resp, err := next(o)
		if err != nil || len(resp.Header.Values(limitHeader)) > 0 {
			return resp, err
		}
		mu.Lock()
		defer mu.Unlock()
		key := o.HTTP.URL.String()
		if answers[key]++; answers[key] < many {
			resp.Header.Set(limitHeader, "5")
		} else {
			resp.Header.Set(limitHeader, "50000")
		}
		return resp, err
	}
}
