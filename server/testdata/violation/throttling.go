package violation

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/internal/sync/executor"
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
		atOnce("THR-004", "after 429 with a Retry-After that cannot be read the same is sent again at once", func(text string) bool {
			_, wrong := strconv.Atoi(text)
			_, noDate := http.ParseTime(text)
			return text != "" && wrong != nil && noDate != nil
		}),
		{Violation{ID: "THR-005", Changes: "after a Retry-After of more than a day nothing goes to the destination any more"}, func(*Service) seams {
			return seams{carry: parks()}
		}},
		breaks("THR-006", "only the call that was answered with 429 rests", seams{engine: func(d *executor.Deviations) { d.RestsAlone = true }}),
		{Violation{ID: "THR-007", Changes: "all connections rest for the Retry-After of one"}, func(s *Service) seams {
			return seams{carry: allRest(s)}
		}},
		{Violation{ID: "THR-008", Changes: "a 429 that follows two others counts as a failed attempt"}, func(*Service) seams {
			return seams{carry: countsThrottles()}
		}},
		breaks("THR-009", "429 to a batch of more than one record counts as a failed attempt", seams{
			carry: func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
				resp, err := next(o)
				if records, _ := o.Param("records").([]any); err == nil && len(records) > 1 && resp.StatusCode == http.StatusTooManyRequests {
					resp.StatusCode = http.StatusInternalServerError
				}
				return resp, err
			},
		}),
		onThrottled("THR-010", "Retry-After is not read from an answer to get_sync_speed", http.StatusTooManyRequests, rpc.MethodGetSyncSpeed,
			func(r *http.Response) { r.Header.Del(retryHeader) }),
		onThrottled("THR-011", "Retry-After is not read with 503", http.StatusServiceUnavailable, rpc.MethodSyncBatch,
			func(r *http.Response) { r.Header.Del(retryHeader) }),
		onThrottled("THR-012", "a Retry-After of 0 counts as a minute", http.StatusTooManyRequests, rpc.MethodSyncBatch, func(r *http.Response) {
			if r.Header.Get(retryHeader) == "0" {
				r.Header.Set(retryHeader, "60")
			}
		}),
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

// parks gives an endpoint up that has asked to wait for too long.
func parks() exchange.Carry {
	const day = 24 * 60 * 60
	var mu sync.Mutex
	parked := map[string]bool{}
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		key := o.HTTP.URL.String()
		mu.Lock()
		is := parked[key]
		mu.Unlock()
		if is {
			return exchange.Made(o, http.StatusUnauthorized, map[string]any{}), nil
		}
		resp, err := next(o)
		if err == nil && resp.StatusCode == http.StatusTooManyRequests {
			if n, wrong := strconv.Atoi(resp.Header.Get(retryHeader)); wrong == nil && n > day {
				mu.Lock()
				parked[key] = true
				mu.Unlock()
			}
		}
		return resp, err
	}
}

// allRest answers for every other endpoint while one of them rests.
func allRest(s *Service) exchange.Carry {
	var mu sync.Mutex
	var until time.Time
	var by string
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		key := o.HTTP.URL.String()
		mu.Lock()
		rest := until.Sub(s.Now())
		other := by != key
		mu.Unlock()
		if rest > 0 && other {
			resp := exchange.Made(o, http.StatusTooManyRequests, map[string]any{})
			resp.Header.Set(retryHeader, strconv.Itoa(int(rest/time.Second)+1))
			return resp, nil
		}
		resp, err := next(o)
		if err == nil && resp.StatusCode == http.StatusTooManyRequests {
			if n, wrong := strconv.Atoi(resp.Header.Get(retryHeader)); wrong == nil && n <= 60 {
				mu.Lock()
				until, by = s.Now().Add(time.Duration(n)*time.Second), key
				mu.Unlock()
			}
		}
		return resp, err
	}
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
