package rules

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// speedGroup judges get_sync_speed and X-RateLimit-Limit (spec 8).
func speedGroup(g ruleset) map[string]Claim {
	g.on(resultOf(rpc.MethodGetSyncSpeed), "SPD-001", "SPD-003", "SPD-004")
	g.pair("SPD-005", rpc.MethodGetSyncSpeed, func(t *Traffic, _ *Call) *Call { return t.spoke })
	g.on(func(c *Call) bool { return c.Ended() && limited(c.reply) }, "RL-001", "RL-002", "RL-006")
	g["RL-003"] = &rule{
		takes: func(t *Traffic, c *Call) bool {
			return c.Ended() && limited(c.reply) && !t.beside(c) // which was answered first is not known
		},
		with: func(t *Traffic, c *Call, l *Look) {
			for _, b := range t.limits {
				if c.near(b) {
					l.Replies = slices.Insert(l.Replies, len(l.Replies)-1, b.reply)
				}
			}
		},
	}
	g["RL-004"] = &rule{
		takes: func(t *Traffic, c *Call) bool { return c.Status == http.StatusTooManyRequests && t.calm(c) },
		with:  func(_ *Traffic, _ *Call, l *Look) { l.Reached = new(1.0) },
	}
	return map[string]Claim{
		"the declared speed has three positive integers":                   speedNumbers,
		"the declared speed lets a batch finish within the batch deadline": eachSpeed(speedInTime),
		"the declared speed stays below the rate limit":                    eachSpeed(speedBelowLimit),
		"the declared speed stays the same":                                speedStable,
		"the rate limit header is a positive integer":                      rateHeader(positive),
		"the rate limit header has one value": rateHeader(func(l *Look, r *reply, values []string) {
			if len(values) > 1 || strings.Contains(values[0], ",") {
				l.broken("one line "+RateHeader, fmt.Sprintf("%s: %s", quantity.Count(len(values), "line"), quantity.List(values)), r)
			}
		}),
		"the rate limit header is the same on every reply": sameRate,
		"no reply refuses the rate":                        rateAccepted,

		"it is noted which rate limit applies": notesRateLimit,
	}
}

var SpeedKeys = []string{"maximum_batch_size", "maximum_parallel_batches", "maximum_records_per_second"}

func speedNumbers(l *Look) error {
	judged := false
	for _, r := range l.of(rpc.MethodGetSyncSpeed) {
		res := r.Result()
		if res == nil {
			continue // SPD-002 judges that
		}
		judged = true
		for _, key := range SpeedKeys {
			n := res.Get(key)
			v, ok := n.Int()
			expected := fmt.Sprintf("%q as an integer of 1 or more", key)
			switch {
			case n == nil:
				l.broken(expected, "it is missing: "+r.Short(), r)
			case !ok || v < 1:
				l.broken(expected, foreign.Clip(string(n.Raw), 80), r)
			case key == "maximum_parallel_batches" && v > 50:
				l.note("maximum_parallel_batches is %d: the service sends at most 50 batches at once", v)
			}
		}
	}
	return l.heldBy(judged, "get_sync_speed gave no result")
}

// eachSpeed is the claim about each declared speed that can be read.
func eachSpeed(claim func(l *Look, r *reply, s rpc.Speed)) Claim {
	return func(l *Look) error {
		declared := false
		for _, r := range l.of(rpc.MethodGetSyncSpeed) {
			if s := r.Speed(); s != nil {
				declared = true
				claim(l, r, *s)
			}
		}
		return l.heldBy(declared, "get_sync_speed declared no speed that can be read")
	}
}

func speedInTime(l *Look, r *reply, s rpc.Speed) {
	if seconds := float64(s.MaximumBatchSize) / float64(s.MaximumRecordsPerSecond); seconds > l.BatchTimeout.Seconds() {
		l.broken(fmt.Sprintf("a full batch that takes less than the batch deadline of %s", l.BatchTimeout),
			fmt.Sprintf("%s in a batch at %d records/s take %.0f s", quantity.Count(s.MaximumBatchSize, "record"), s.MaximumRecordsPerSecond, seconds), r)
	}
}

func speedBelowLimit(l *Look, r *reply, s rpc.Speed) {
	value := r.Header.Get(RateHeader)
	limit, err := strconv.ParseInt(cmp.Or(value, strconv.Itoa(DefaultRateLimit)), 10, 64)
	implied := int64(math.Ceil(float64(s.MaximumRecordsPerSecond) / float64(s.MaximumBatchSize)))
	if err != nil || limit < 1 || implied <= limit {
		return // RL-001 judges a header that is no number
	}
	breach := l.broken(fmt.Sprintf("a speed that full batches reach with at most %d requests/s", limit),
		fmt.Sprintf("%d records/s in batches of %d are %d requests/s", s.MaximumRecordsPerSecond, s.MaximumBatchSize, implied), r)
	if value == "" { // the cause of the check is about the header
		breach.Cause = fmt.Sprintf("the batches are too small for the declared speed: without %s the service sends at most %d requests/s.", RateHeader, limit)
	}
}

func speedStable(l *Look) error {
	var first *reply
	return eachSpeed(func(l *Look, r *reply, s rpc.Speed) {
		if first == nil {
			first = r
		}
		if was := *first.Speed(); s != was && len(l.Breaches) == 0 {
			l.broken(fmt.Sprintf("the same speed within a run: %+v", was), fmt.Sprintf("%+v", s), first, r)
		}
	})(l)
}

// RateHeader is where a reply declares its rate limit.
const RateHeader = "X-RateLimit-Limit"

// DefaultRateLimit applies without the header, in requests per second (spec 8).
const DefaultRateLimit = 50_000

// limited reports whether a reply declares a rate limit.
func limited(r *reply) bool { return len(r.Header.Values(RateHeader)) > 0 }

// rateHeader is the claim about the header of each reply that has it.
func rateHeader(look func(l *Look, r *reply, values []string)) Claim {
	return func(l *Look) error {
		with := lists.Where(l.Replies, limited)
		for _, r := range with {
			look(l, r, r.Header.Values(RateHeader))
		}
		if len(with) == 0 {
			return &Undecided{conformance.NotApplicable, "", "no reply has the header " + RateHeader + ": the default of 50,000 requests per second applies"}
		}
		return l.held()
	}
}

func positive(l *Look, r *reply, values []string) {
	for _, v := range values {
		if n, err := strconv.ParseUint(v, 10, 63); err != nil || n < 1 {
			l.broken(RateHeader+": an integer of 1 or more, in requests per second", RateHeader+": "+v, r).Symptom = "rate limit header"
		}
	}
}

// sameRate takes one step for a limit that was changed, unless results and errors differ in it.
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
			l.broken("the same limit on every reply", strings.Join(seen, ", then "), r).Symptom = "rate limit header"
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
	reached := 0.0
	if l.Reached != nil {
		reached = *l.Reached
	}
	err := l.heldBy(reached >= 0.9, "the judge reached only %.0f %% of the rate that it wanted to send at", reached*100)
	if err == nil {
		l.Proofs = append(l.Proofs, quantity.Count(len(l.Replies), "call"))
	}
	return err
}
