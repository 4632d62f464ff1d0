package endpoint

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/lists"
)

// CountCall counts calls.
func CountCall(*Call) int { return 1 }

// CountRecords counts the records of a batch.
func CountRecords(c *Call) int { return len(c.Records()) + c.records }

// Densest is the window that begins with a call and brings most.
func Densest(all []*Call, weight func(*Call) int, window time.Duration) (most int, within []*Call) {
	calls := slices.SortedFunc(slices.Values(all), func(a, b *Call) int { return a.Came.Compare(b.Came) })
	sum, first := 0, 0
	for i, c := range calls {
		sum += weight(c)
		for c.Came.Sub(calls[first].Came) >= window {
			sum -= weight(calls[first])
			first++
		}
		if sum > most {
			most, within = sum, calls[first:i+1]
		}
	}
	return most, within
}

// leaving is how much later the end of a connection can be seen than a call that its
// caller makes next, on another connection.
const leaving = time.Second

// Beside are the calls that were under way when c came, itself included.
func Beside(calls []*Call, c *Call) []*Call {
	return lists.Where(calls, func(o *Call) bool { return o == c || !o.Came.After(c.Came) && o.underWay(c.Came) })
}

// underWay reports whether a call that came before that moment surely had not ended.
func (c *Call) underWay(at time.Time) bool {
	if c.Left {
		at = at.Add(leaving)
	}
	return !c.Done || c.Ended.After(at)
}

// MostAtOnce is how many of the calls were under way at once, and which.
func MostAtOnce(calls []*Call) (most int, which []*Call) {
	for _, c := range calls {
		if now := Beside(calls, c); len(now) > most {
			most, which = len(now), now
		}
	}
	return most, which
}

// Connections is how many connections the recorded calls need, where each is taken from
// when it was opened until so long after its call.
func Connections(calls []*Call, after time.Duration) int {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, c := range calls {
		changes = append(changes, change{c.opened, 1}, change{c.Ended.Add(after), -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), a.by-b.by) })
	now, most := 0, 0
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return most
}

// announcedIn is what an answer says about the limit of its connection.
func announcedIn(c *Call) []string {
	var out []string
	for name, values := range c.header { // as it was written, in any case
		if strings.EqualFold(name, RateLimitHeader) {
			out = append(out, values...)
		}
	}
	return out
}

// RateLimitHeader names the limit of a connection.
const RateLimitHeader = "X-RateLimit-Limit"

// Since are the calls that came after an answer with this limit.
func Since(calls []*Call, limit string) []*Call {
	i := slices.IndexFunc(calls, func(c *Call) bool { return c.Done && slices.Contains(announcedIn(c), limit) })
	if i < 0 {
		return nil
	}
	from := calls[i].Ended
	return slices.DeleteFunc(slices.Clone(calls), func(c *Call) bool { return !c.Came.After(from) })
}
