package service

import (
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
)

// A limit of a second is judged over less than one: between the service and the
// destination calls may be held up, and then come closer together than they
// were sent. So what is up to a quarter too fast for long is not seen.
const judgedSecond = 800 * time.Millisecond

// traffic is a number of calls with what each counts for.
type traffic struct {
	calls  []*call
	weight func(*call) int
}

func one(*call) int { return 1 }

func recordsIn(c *call) int { return len(c.records()) }

// densest is the window that begins with a call and brings most.
func (t traffic) densest(window time.Duration) (most int, within []*call) {
	calls := slices.SortedFunc(slices.Values(t.calls), func(a, b *call) int { return a.came.Compare(b.came) })
	sum, first := 0, 0
	for i, c := range calls {
		sum += t.weight(c)
		for c.came.Sub(calls[first].came) >= window {
			sum -= t.weight(calls[first])
			first++
		}
		if sum > most {
			most, within = sum, calls[first:i+1]
		}
	}
	return most, within
}

// beside are the calls that were under way when c came, itself included.
func beside(calls []*call, c *call) []*call {
	var out []*call
	for _, o := range calls {
		if !o.came.After(c.came) && (!o.done || o.ended.After(c.came)) {
			out = append(out, o)
		}
	}
	return out
}

// crowd is how many of the calls were under way at once, and which.
func crowd(calls []*call) (most int, which []*call) {
	for _, c := range calls {
		if now := beside(calls, c); len(now) > most {
			most, which = len(now), now
		}
	}
	return most, which
}

// announcedIn is what an answer says about the limit of its connection.
func announcedIn(c *call) []string {
	var out []string
	for name, values := range c.header { // as it was written, in any case
		if strings.EqualFold(name, rateLimitHeader) {
			out = append(out, values...)
		}
	}
	return out
}

const rateLimitHeader = "X-RateLimit-Limit"

// since are the calls that came after an answer with this limit.
func since(calls []*call, limit string) []*call {
	i := slices.IndexFunc(calls, func(c *call) bool { return c.done && slices.Contains(announcedIn(c), limit) })
	if i < 0 {
		return nil
	}
	from := calls[i].ended
	return slices.DeleteFunc(slices.Clone(calls), func(c *call) bool { return !c.came.After(from) })
}

// few says that there were not enough calls to tell.
func few(n int, of string) error {
	return conformance.Outcome(conformance.Inconclusive, "", "only %d %s came: that is not enough to tell", n, of)
}
