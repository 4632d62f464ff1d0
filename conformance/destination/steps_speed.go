package destination

import (
	"strconv"
	"sync"
	"time"
)

// callsAtRate sends calls at a share of the declared rate, for one second or
// the length of the load checks, whichever is shorter.
func (sc *scenario) callsAtRate(method, share string) error {
	percent, _ := strconv.Atoi(share)
	limit := sc.catalog.rateLimit
	if limit < 1 {
		limit = defaultRateLimit
	}
	rate := float64(limit) * float64(percent) / 100
	length := min(sc.opts.LoadDuration, time.Second)
	n := int(rate * length.Seconds())
	if n > 20_000 {
		return inconclusive("a load test", "the declared %d requests/s are more than the judge sends: measure them with a load test", limit)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, 64)
	start := time.Now()
	for i := range n {
		// The intended time of the i-th call; lost time is not made good.
		due := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		if d := time.Until(due); d > 0 {
			if err := elapse(sc.ctx, d); err != nil {
				return err
			}
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r, err := sc.session.send(sc.ctx, sc.Check().ID, request{method: method, unrepeated: true})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				sc.replies = append(sc.replies, r)
			}
		})
	}
	wg.Wait()
	sc.measured.reached = new(float64(n) / time.Since(start).Seconds() / rate)
	return nil
}
