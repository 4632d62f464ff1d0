package violation

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// throttlingViolations break the rules of THR: 429 and Retry-After.
func throttlingViolations() []violation {
	return []violation{
		onThrottled("THR-001", "seconds in Retry-After are not read", http.StatusTooManyRequests, rpc.MethodSyncBatch, func(r *http.Response) {
			if n, err := strconv.Atoi(r.Header.Get(retryHeader)); err == nil && n > 2 {
				r.Header.Del(retryHeader)
			}
		}),
		onThrottled("THR-002", "a date in Retry-After is not read", http.StatusTooManyRequests, rpc.MethodSyncBatch, func(r *http.Response) {
			if _, err := http.ParseTime(r.Header.Get(retryHeader)); err == nil {
				r.Header.Del(retryHeader)
			}
		}),
		atOnce("THR-003", "after 429 without Retry-After the same is sent again at once", func(text string) bool { return text == "" }),
		{Violation{ID: "THR-008", Changes: "a 429 that follows two others counts as a failed attempt"}, func(*Service) seams {
			return seams{carry: countsThrottles()}
		}},
		onThrottled("THR-010", "Retry-After is not read from an answer to get_sync_speed", http.StatusTooManyRequests, rpc.MethodGetSyncSpeed,
			func(r *http.Response) { r.Header.Del(retryHeader) }),
	}
}

const retryHeader = "Retry-After"

// onThrottled changes what the service sees of answers with a status to a
// method.
func onThrottled(id, changes string, status int, method string, change func(*http.Response)) violation {
	return violation{Violation{ID: id, Changes: changes}, func(*Service) seams {
		return seams{carry: func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
			resp, err := next(o)
			if err == nil && o.Method == method && resp.StatusCode == status {
				change(resp)
			}
			return resp, err
		}}
	}}
}

// atOnce makes a call again without a pause where Retry-After reads so.
func atOnce(id, changes string, reads func(retryAfter string) bool) violation {
	return breaks(id, changes, seams{carry: func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		resp, err := next(o)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests || !reads(resp.Header.Get(retryHeader)) {
			return resp, err
		}
		_ = resp.Body.Close()
		return next(o)
	}})
}

// countsThrottles makes failures of the 429s of an endpoint that follow one
// another.
func countsThrottles() exchange.Carry {
	var mu sync.Mutex
	row := map[string]int{}
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		resp, err := next(o)
		if err != nil {
			return resp, err
		}
		mu.Lock()
		defer mu.Unlock()
		key := o.HTTP.URL.String()
		if resp.StatusCode != http.StatusTooManyRequests {
			row[key] = 0
		} else if row[key]++; row[key] > 2 {
			resp.StatusCode = http.StatusInternalServerError
		}
		return resp, err
	}
}
