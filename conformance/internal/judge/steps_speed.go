package judge

import (
	"strconv"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/internal/line"
)

// callsAtRate sends calls at a share of the declared rate, for one second or
// the length of the load checks, whichever is shorter.
func (sc *Scenario) callsAtRate(method, share string) error {
	percent, _ := strconv.Atoi(share)
	limit := sc.Catalog.RateLimit
	if limit < 1 {
		limit = line.DefaultRateLimit
	}
	rate := float64(limit) * float64(percent) / 100
	length := min(sc.Opts.LoadDuration, time.Second)
	n := int(rate * length.Seconds())
	if n > 20_000 {
		return line.Inconclusive("a load test", "the declared %d requests/s are more than the judge sends: measure them with a load test", limit)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, 64)
	start := time.Now()
	for i := range n {
		// The intended time of the i-th call; lost time is not made good.
		due := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		if d := time.Until(due); d > 0 {
			if err := line.Elapse(sc.Ctx, d); err != nil {
				return err
			}
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r, err := sc.Session.Send(sc.Ctx, sc.Check().ID, line.Request{Method: method, Unrepeated: true})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				sc.Replies = append(sc.Replies, r)
			}
		})
	}
	wg.Wait()
	sc.Measured.Reached = new(float64(n) / time.Since(start).Seconds() / rate)
	return nil
}
