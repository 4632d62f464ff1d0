package destination

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// speedSteps judge get_sync_speed and X-RateLimit-Limit (spec 8).
func speedSteps() []definition {
	return []definition{
		step(`^the declared speed (has three positive integers|lets a batch finish within the batch deadline|stays below the rate limit)$`,
			func(sc *scenario) any { return func(claim string) error { return speedClaims[claim](sc) } }),
		step(`^the rate limit header (is a positive integer|has one value)$`,
			func(sc *scenario) any { return sc.rateLimitHeader }),
	}
}

var speedClaims = map[string]func(*scenario) error{
	"has three positive integers":                   (*scenario).speedNumbers,
	"lets a batch finish within the batch deadline": (*scenario).speedInTime,
	"stays below the rate limit":                    (*scenario).speedBelowLimit,
}

var speedKeys = []string{"maximum_batch_size", "maximum_parallel_batches", "maximum_records_per_second"}

func (sc *scenario) speedNumbers() error {
	judged := false
	for _, r := range sc.of(rpc.MethodGetSyncSpeed) {
		res := r.Result()
		if res == nil {
			continue // SPD-002 judges that
		}
		for _, key := range speedKeys {
			n := res.Get(key)
			v, ok := n.Int()
			switch {
			case n == nil:
				sc.broken(fmt.Sprintf("%q as an integer of 1 or more", key), "it is missing: "+r.Short(), r)
			case !ok || !n.IsInteger() || v < 1:
				sc.broken(fmt.Sprintf("%q as an integer of 1 or more", key), foreign.Clip(string(n.Raw), 80), r)
			case key == "maximum_parallel_batches" && v > 50:
				sc.note("maximum_parallel_batches is %d: the service sends at most 50 batches at once", v)
			}
		}
		judged = true
	}
	if !judged {
		return inconclusive("", "get_sync_speed gave no result")
	}
	return sc.held()
}

// speeds are the declared speeds of all replies that declare one.
func (sc *scenario) speeds() (replies []*reply, speeds []rpc.Speed) {
	for _, r := range sc.of(rpc.MethodGetSyncSpeed) {
		if s := readSpeed(r); s != nil {
			replies, speeds = append(replies, r), append(speeds, *s)
		}
	}
	return replies, speeds
}

func (sc *scenario) speedInTime() error {
	replies, speeds := sc.speeds()
	if len(speeds) == 0 {
		return noSpeed()
	}
	for i, s := range speeds {
		seconds := float64(s.MaximumBatchSize) / float64(s.MaximumRecordsPerSecond)
		if limit := sc.opts.BatchTimeout.Seconds(); seconds > limit {
			sc.broken(fmt.Sprintf("a full batch that takes less than the batch deadline of %s", sc.opts.BatchTimeout),
				fmt.Sprintf("%s in a batch at %d records/s take %.0f s", quantity.Count(s.MaximumBatchSize, "record"), s.MaximumRecordsPerSecond, seconds), replies[i])
		}
	}
	return sc.held()
}

func (sc *scenario) speedBelowLimit() error {
	replies, speeds := sc.speeds()
	if len(speeds) == 0 {
		return noSpeed()
	}
	for i, s := range speeds {
		limit := int64(defaultRateLimit)
		if v := replies[i].Header.Get("X-RateLimit-Limit"); v != "" {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < 1 {
				continue // RL-001 judges that
			}
			limit = n
		}
		implied := int64(math.Ceil(float64(s.MaximumRecordsPerSecond) / float64(s.MaximumBatchSize)))
		if implied > limit {
			sc.broken(fmt.Sprintf("a speed that full batches reach with at most %d requests/s", limit),
				fmt.Sprintf("%d records/s in batches of %d are %d requests/s", s.MaximumRecordsPerSecond, s.MaximumBatchSize, implied), replies[i])
		}
	}
	return sc.held()
}

// noSpeed is why nothing can be said about the declared speed.
func noSpeed() error { return inconclusive("", "get_sync_speed declared no speed that can be read") }

func (sc *scenario) speedStable() error {
	replies, speeds := sc.speeds()
	if len(speeds) == 0 {
		return noSpeed()
	}
	for i := 1; i < len(speeds); i++ {
		if speeds[i] != speeds[0] {
			sc.broken(fmt.Sprintf("the same speed within a run: %+v", speeds[0]), fmt.Sprintf("%+v", speeds[i]), replies[0], replies[i])
			break
		}
	}
	return sc.held()
}

const rateHeader = "X-RateLimit-Limit"

func (sc *scenario) rateLimitHeader(claim string) error {
	var seen []string // the values, each change of them
	for _, r := range sc.replies {
		values := r.Header.Values(rateHeader)
		if len(values) == 0 {
			continue
		}
		switch claim {
		case "is a positive integer":
			for _, v := range values {
				if n, err := strconv.ParseUint(v, 10, 63); err != nil || n < 1 || strings.HasPrefix(v, "+") {
					sc.brokenAs("rate limit header", "", rateHeader+": an integer of 1 or more, in requests per second", fmt.Sprintf("%s: %s", rateHeader, v), r)
				}
			}
		case "has one value":
			if len(values) > 1 || strings.Contains(values[0], ",") {
				sc.broken("one line "+rateHeader, fmt.Sprintf("%s: %s", quantity.Count(len(values), "line"), quantity.List(values)), r)
			}
		case "is the same on every reply":
			if len(seen) == 0 || seen[len(seen)-1] != values[0] {
				seen = append(seen, values[0])
			}
			// One step may be a limit that is changed now and then, but not one
			// that results and errors do not share.
			if len(seen) > 2 || len(seen) == 2 && r.IsError() {
				sc.brokenAs("rate limit header", "", "the same limit on every reply", strings.Join(seen, ", then "), r)
				return sc.held()
			}
		}
	}
	if claim == "is the same on every reply" {
		sc.noteLimits(seen)
	}
	if !slices.ContainsFunc(sc.replies, func(r *reply) bool { return len(r.Header.Values(rateHeader)) > 0 }) {
		return notApplicable("no reply has the header %s: the default of 50,000 requests per second applies", rateHeader)
	}
	return sc.held()
}

func (sc *scenario) noteLimits(seen []string) {
	switch len(seen) {
	case 0:
		sc.note("no reply has the header")
	case 2:
		sc.note("%s changed once, from %s to %s", rateHeader, seen[0], seen[1])
	}
}

func (sc *scenario) notesRateLimit() error {
	for _, r := range sc.replies {
		if v := r.Header.Get(rateHeader); v != "" {
			sc.note("%s: %s requests per second over all syncs of the connection", rateHeader, v)
			return nil
		}
	}
	sc.note("no %s: the default of %s per second applies to the connection", rateHeader, quantity.Count(defaultRateLimit, "request"))
	return nil
}

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

func (sc *scenario) rateAccepted() error {
	for _, r := range sc.replies {
		if r.Status == http.StatusTooManyRequests || r.Status == http.StatusServiceUnavailable {
			sc.broken("no refusal below the declared rate limit", r.Short(), r)
		}
	}
	if err := sc.held(); err != nil {
		return err
	}
	if reached := orZero(sc.measured.reached); reached < 0.9 {
		return inconclusive("", "the judge reached only %.0f %% of the rate that it wanted to send at", reached*100)
	}
	sc.proof("%s", quantity.Count(len(sc.replies), "call"))
	return nil
}

// orZero is the value of a measurement, 0 without one.
func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
