package rules

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// speedGroup judges get_sync_speed and X-RateLimit-Limit (spec 8).
func speedGroup() group {
	g := group{claims: map[string]Claim{
		"the declared speed has three positive integers":                   speedNumbers,
		"the declared speed lets a batch finish within the batch deadline": speedInTime,
		"the declared speed stays below the rate limit":                    speedBelowLimit,
		"the declared speed stays the same":                                speedStable,
		"the rate limit header is a positive integer":                      rateHeader(positive),
		"the rate limit header has one value":                              rateHeader(once),
		"the rate limit header is the same on every reply":                 sameRate,
		"no reply refuses the rate":                                        rateAccepted,

		"it is noted which rate limit applies": notesRateLimit,
	}, rules: map[string]*rule{}}
	g.on(resultOf(rpc.MethodGetSyncSpeed), "SPD-001", "SPD-003", "SPD-004")
	g.on(emptyOf(rpc.MethodGetSyncSpeed), "SPD-002")
	g.pair("SPD-005", func(t *Traffic, c *Call) *Call { return earlier(c, rpc.MethodGetSyncSpeed, t.spoke) })
	g.on(func(c *Call) bool { return c.Ended() && limited(c.reply) }, "RL-001", "RL-002", "RL-006")
	g.rules["RL-003"] = &rule{
		takes: func(t *Traffic, c *Call) bool {
			return c.Ended() && limited(c.reply) && !t.beside(c) // which was answered first is not known
		},
		with: func(t *Traffic, c *Call, l *Look) {
			l.Replies = nil
			for _, b := range t.limits {
				if c.near(b) {
					l.Replies = append(l.Replies, b.reply)
				}
			}
			l.Replies = append(l.Replies, c.reply)
		},
	}
	g.rules["RL-004"] = &rule{
		takes: func(t *Traffic, c *Call) bool { return c.Status == http.StatusTooManyRequests && t.calm(c) },
		with:  func(_ *Traffic, _ *Call, l *Look) { l.Reached = new(1.0) },
	}
	return g
}

var SpeedKeys = []string{"maximum_batch_size", "maximum_parallel_batches", "maximum_records_per_second"}

func speedNumbers(l *Look) error {
	judged := false
	for _, r := range l.of(rpc.MethodGetSyncSpeed) {
		res := r.Result()
		if res == nil {
			continue // SPD-002 judges that
		}
		for _, key := range SpeedKeys {
			n := res.Get(key)
			v, ok := n.Int()
			switch {
			case n == nil:
				l.broken(fmt.Sprintf("%q as an integer of 1 or more", key), "it is missing: "+r.Short(), r)
			case !ok || !n.IsInteger() || v < 1:
				l.broken(fmt.Sprintf("%q as an integer of 1 or more", key), foreign.Clip(string(n.Raw), 80), r)
			case key == "maximum_parallel_batches" && v > 50:
				l.note("maximum_parallel_batches is %d: the service sends at most 50 batches at once", v)
			}
		}
		judged = true
	}
	if !judged {
		return inconclusive("", "get_sync_speed gave no result")
	}
	return l.held()
}

// speeds are the declared speeds of all replies that declare one.
func (l *Look) speeds() (replies []*reply, speeds []rpc.Speed) {
	for _, r := range l.of(rpc.MethodGetSyncSpeed) {
		if s := r.Speed(); s != nil {
			replies, speeds = append(replies, r), append(speeds, *s)
		}
	}
	return replies, speeds
}

func speedInTime(l *Look) error {
	replies, speeds := l.speeds()
	if len(speeds) == 0 {
		return noSpeed()
	}
	for i, s := range speeds {
		seconds := float64(s.MaximumBatchSize) / float64(s.MaximumRecordsPerSecond)
		if limit := l.BatchTimeout.Seconds(); seconds > limit {
			l.broken(fmt.Sprintf("a full batch that takes less than the batch deadline of %s", l.BatchTimeout),
				fmt.Sprintf("%s in a batch at %d records/s take %.0f s", quantity.Count(s.MaximumBatchSize, "record"), s.MaximumRecordsPerSecond, seconds), replies[i])
		}
	}
	return l.held()
}

func speedBelowLimit(l *Look) error {
	replies, speeds := l.speeds()
	if len(speeds) == 0 {
		return noSpeed()
	}
	for i, s := range speeds {
		limit := int64(DefaultRateLimit)
		if v := replies[i].Header.Get(RateHeader); v != "" {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < 1 {
				continue // RL-001 judges that
			}
			limit = n
		}
		implied := int64(math.Ceil(float64(s.MaximumRecordsPerSecond) / float64(s.MaximumBatchSize)))
		if implied > limit {
			cause := "" // that of the check, which is about the header
			if replies[i].Header.Get(RateHeader) == "" {
				cause = fmt.Sprintf("the batches are too small for the declared speed: without %s the service sends at most %d requests/s.", RateHeader, limit)
			}
			l.brokenBy(cause, "", "", fmt.Sprintf("a speed that full batches reach with at most %d requests/s", limit),
				fmt.Sprintf("%d records/s in batches of %d are %d requests/s", s.MaximumRecordsPerSecond, s.MaximumBatchSize, implied), replies[i])
		}
	}
	return l.held()
}

// noSpeed is why nothing can be said about the declared speed.
func noSpeed() error { return inconclusive("", "get_sync_speed declared no speed that can be read") }

func speedStable(l *Look) error {
	replies, speeds := l.speeds()
	if len(speeds) == 0 {
		return noSpeed()
	}
	for i := 1; i < len(speeds); i++ {
		if speeds[i] != speeds[0] {
			l.broken(fmt.Sprintf("the same speed within a run: %+v", speeds[0]), fmt.Sprintf("%+v", speeds[i]), replies[0], replies[i])
			break
		}
	}
	return l.held()
}

// RateHeader is where a reply says which rate limit applies.
const RateHeader = "X-RateLimit-Limit"

// DefaultRateLimit applies without the header, in requests per second (spec 8).
const DefaultRateLimit = 50_000

// limited reports whether a reply says which rate limit applies.
func limited(r *reply) bool { return len(r.Header.Values(RateHeader)) > 0 }

// rateHeader is the claim about the header of each reply that has it.
func rateHeader(look func(l *Look, r *reply, values []string)) Claim {
	return func(l *Look) error {
		for _, r := range l.Replies {
			if limited(r) {
				look(l, r, r.Header.Values(RateHeader))
			}
		}
		if !slices.ContainsFunc(l.Replies, limited) {
			return notApplicable("no reply has the header %s: the default of 50,000 requests per second applies", RateHeader)
		}
		return l.held()
	}
}

func positive(l *Look, r *reply, values []string) {
	for _, v := range values {
		if n, err := strconv.ParseUint(v, 10, 63); err != nil || n < 1 || strings.HasPrefix(v, "+") {
			l.brokenAs("rate limit header", "", RateHeader+": an integer of 1 or more, in requests per second", fmt.Sprintf("%s: %s", RateHeader, v), r)
		}
	}
}

func once(l *Look, r *reply, values []string) {
	if len(values) > 1 || strings.Contains(values[0], ",") {
		l.broken("one line "+RateHeader, fmt.Sprintf("%s: %s", quantity.Count(len(values), "line"), quantity.List(values)), r)
	}
}

// sameRate: one step may be a limit that is changed now and then, but not one that results
// and errors do not share.
func sameRate(l *Look) error {
	var seen []string // the values, each change of them
	err := rateHeader(func(l *Look, r *reply, values []string) {
		if len(l.Breaches) > 0 {
			return
		}
		if len(seen) == 0 || seen[len(seen)-1] != values[0] {
			seen = append(seen, values[0])
		}
		if len(seen) > 2 || len(seen) == 2 && r.IsError() {
			l.brokenAs("rate limit header", "", "the same limit on every reply", strings.Join(seen, ", then "), r)
		}
	})(l)
	switch {
	case len(seen) == 0:
		l.note("no reply has the header")
	case len(seen) == 2 && err == nil:
		l.note("%s changed once, from %s to %s", RateHeader, seen[0], seen[1])
	}
	return err
}

func notesRateLimit(l *Look) error {
	for _, r := range l.Replies {
		if v := r.Header.Get(RateHeader); v != "" {
			l.note("%s: %s requests per second over all syncs of the connection", RateHeader, v)
			return nil
		}
	}
	l.note("no %s: the default of %s per second applies to the connection", RateHeader, quantity.Count(DefaultRateLimit, "request"))
	return nil
}

func rateAccepted(l *Look) error {
	for _, r := range l.Replies {
		if r.Status == http.StatusTooManyRequests || r.Status == http.StatusServiceUnavailable {
			l.broken("no refusal below the declared rate limit", r.Short(), r)
		}
	}
	if err := l.held(); err != nil {
		return err
	}
	if l.Reached == nil || *l.Reached < 0.9 {
		reached := 0.0
		if l.Reached != nil {
			reached = *l.Reached
		}
		return inconclusive("", "the judge reached only %.0f %% of the rate that it wanted to send at", reached*100)
	}
	l.Proofs = append(l.Proofs, quantity.Count(len(l.Replies), "call"))
	return nil
}
