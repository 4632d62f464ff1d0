package service

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
)

// throttlingSteps are for THR: 429 and Retry-After.
func throttlingSteps() []engine.Step {
	return []engine.Step{
		step(`^the destination notes the time of every call$`, func(sc *scenario) any { return sc.timesCalls }),
		step(`^calls? (\d+)(?: to (\d+))? of ([a-z_]+) (?:is|are) answered with status (\d{3})(?: and ([A-Za-z-]+) "([^"]*)")?$`,
			func(sc *scenario) any { return sc.refusesCalls }),

		step(`^no call of the sync comes within (\d+) (seconds|ms) after status (\d{3})$`, func(sc *scenario) any { return sc.restsAfter }),
		step(`^a call of the sync comes within (\d+) (seconds|ms) after status (\d{3})$`, func(sc *scenario) any { return sc.goesOnAfter }),
	}
}

// timesCalls asks the service's clock at every call: where time is moved, only
// the service knows how long it has waited.
func (sc *scenario) timesCalls() {
	times := &sc.dest.times
	sc.dest.behaves(func(c *endpoint.Call, _ *endpoint.Reply) {
		if now, err := sc.clockOf(); err == nil { // no time, no verdict
			times.Store(c.Number, now)
		}
	})
}

// timeOf is when a call came, by the service's clock.
func (d *destination) timeOf(c *endpoint.Call) (time.Time, bool) {
	at, known := d.times.Load(c.Number)
	if !known {
		return time.Time{}, false
	}
	return at.(time.Time), true
}

// inDate stands for a date of HTTP so much later than the answer, by the
// service's clock.
const inDate = "a date in "

// refusesCalls answers some calls of a method, counted from now on, with a
// failure of HTTP.
func (sc *scenario) refusesCalls(first int64, last, method string, status int, name, value string) error {
	var end int64
	if _, err := fmt.Sscan(last, &end); err != nil {
		end = first
	}
	text, dated := strings.CutPrefix(value, inDate)
	var ahead time.Duration
	if dated {
		var err error
		if ahead, err = time.ParseDuration(text); err != nil {
			return err
		}
	}
	sc.dest.behaves(counted(method, first, end, func(_ *endpoint.Call, r *endpoint.Reply) {
		said := value
		if dated {
			if now, err := sc.clockOf(); err == nil {
				said = now.Add(ahead).Format(http.TimeFormat)
			}
		}
		if r.Fail(status); name != "" {
			r.AddHeader(name, said)
		}
	}))
	return nil
}

// following are the calls to a destination after its first answer with a status, and how
// long after it they came.
func (sc *scenario) following(status int) (refused *endpoint.Call, later []*endpoint.Call, waits []time.Duration, err error) {
	d := sc.latest().dest
	calls := d.Seen("")
	i := slices.IndexFunc(calls, func(c *endpoint.Call) bool { return c.Done && c.Status == status })
	if i < 0 {
		return nil, nil, nil, engine.Outcome(conformance.Inconclusive, "", "status %d was never answered", status)
	}
	began, known := d.timeOf(calls[i])
	if !known {
		return nil, nil, nil, engine.Outcome(conformance.Inconclusive, "", "it is not known when status %d was answered", status)
	}
	for _, c := range calls {
		if at, ok := d.timeOf(c); ok && c.Came.After(calls[i].Ended) {
			later, waits = append(later, c), append(waits, at.Sub(began))
		}
	}
	return calls[i], later, waits, nil
}

func (sc *scenario) restsAfter(n int, unit string, status int) error {
	refused, later, waits, err := sc.following(status)
	if err != nil {
		return err
	}
	if len(later) == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "no call came after status %d at all", status)
	}
	least := length(n, unit)
	for i, c := range later {
		if waits[i] < least {
			sc.brokenCall(fmt.Sprintf("no call within %s after status %d", least, status),
				fmt.Sprintf("%s after %s", c.Method, waits[i].Round(time.Millisecond)), refused, c)
		}
	}
	return sc.HeldBy("the first call after status %d came %s later", status, waits[0].Round(time.Millisecond))
}

func (sc *scenario) goesOnAfter(n int, unit string, status int) error {
	refused, later, waits, err := sc.following(status)
	if err != nil {
		return err
	}
	most := length(n, unit)
	if len(later) == 0 || waits[0] > most {
		sc.brokenCall(fmt.Sprintf("a call within %s after status %d", most, status), fmt.Sprintf("calls after %v", waits), append(later, refused)...)
		return sc.Held()
	}
	return sc.HeldBy("the first call after status %d came %s later", status, waits[0].Round(time.Millisecond))
}

func length(n int, unit string) time.Duration {
	if unit == "ms" {
		return time.Duration(n) * time.Millisecond
	}
	return time.Duration(n) * time.Second
}
