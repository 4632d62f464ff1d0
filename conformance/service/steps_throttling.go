package service

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/internal/quantity"
)

// throttlingSteps are for THR: 429 and Retry-After.
func throttlingSteps() []engine.Step {
	return []engine.Step{
		step(`^the destination notes the time of every call$`, func(sc *scenario) any { return sc.timesCalls }),
		step(`^calls? (\d+)(?: to (\d+))? of ([a-z_]+) (?:is|are) answered with status (\d{3})$`, func(sc *scenario) any {
			return func(first int64, last, method string, status int) error {
				return sc.refusesCalls(first, last, method, status, "", "")
			}
		}),
		step(`^calls? (\d+)(?: to (\d+))? of ([a-z_]+) (?:is|are) answered with status (\d{3}) and ([A-Za-z-]+) "([^"]*)"$`,
			func(sc *scenario) any { return sc.refusesCalls }),
		step(`^each sync starts when status (\d{3}) was answered to the first$`, func(sc *scenario) any { return sc.startsAfter }),

		step(`^no call of the( latest)? sync comes within (\d+) (seconds|ms) after status (\d{3})$`, func(sc *scenario) any { return sc.restsAfter }),
		step(`^a call of the( latest)? sync comes within (\d+) (seconds|ms) after status (\d{3})$`, func(sc *scenario) any { return sc.goesOnAfter }),
		step(`^every batch has (\d+) records$`, func(sc *scenario) any { return sc.batchesAreWhole }),
	}
}

// timeline is when the calls of a destination came, by the service's clock.
type timeline struct {
	mu sync.Mutex
	at map[int]time.Time
}

// timesCalls asks the service's clock at every call: where time is moved, only
// the service knows how long it has waited.
func (sc *scenario) timesCalls() {
	line := &timeline{at: map[int]time.Time{}}
	sc.dest.times = line
	sc.dest.behaves(func(c *endpoint.Call, _ *endpoint.Reply) {
		now, err := sc.clockOf()
		if err != nil {
			return // no time, no verdict
		}
		line.mu.Lock()
		defer line.mu.Unlock()
		line.at[c.Number] = now
	})
}

// timeOf is when a call came.
func (sc *scenario) timeOf(d *destination, c *endpoint.Call) (time.Time, bool) {
	line := d.times
	if line == nil {
		return time.Time{}, false
	}
	line.mu.Lock()
	defer line.mu.Unlock()
	at, ok := line.at[c.Number]
	return at, ok
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

// startsAfter begins with the first sync, and with the others once a call of it
// was answered with this status.
func (sc *scenario) startsAfter(status int) error {
	first := sc.syncs[0]
	ids := make([]int64, len(sc.syncs))
	var err error
	if ids[0], err = sc.trigger(first, false); err != nil {
		return err
	}
	if err := sc.waits(func() bool { return sc.answeredWith(first.dest, status) != nil }, "no call came within %s", runLimit); err != nil {
		return err
	}
	if err := sc.settles(); err != nil {
		return err
	}
	for i, s := range sc.syncs[1:] {
		if ids[i+1], err = sc.trigger(s, false); err != nil {
			return err
		}
	}
	for i, s := range slices.Backward(sc.syncs) { // those that need not wait end first
		if _, err := sc.ends(s, ids[i]); err != nil {
			return err
		}
	}
	return nil
}

// settles lets the service read what it was answered.
func (sc *scenario) settles() error {
	if sc.target.ControlURL != "" {
		return sc.advance("1ms") // it answers when nothing is left to run
	}
	return sc.sleep(50 * time.Millisecond)
}

// answeredWith is the first call that has got this status; nil: none yet.
func (sc *scenario) answeredWith(d *destination, status int) *endpoint.Call {
	calls := d.Seen("")
	if i := slices.IndexFunc(calls, func(c *endpoint.Call) bool { return c.Done && c.Status == status }); i >= 0 {
		return calls[i]
	}
	return nil
}

// following are the calls to a destination after the first answer with a status
// anywhere in the scenario, and how long after it they came.
func (sc *scenario) following(latest string, status int) (refused *endpoint.Call, later []*endpoint.Call, waits []time.Duration, err error) {
	var began time.Time
	for _, s := range sc.syncs {
		if refused = sc.answeredWith(s.dest, status); refused != nil {
			began, _ = sc.timeOf(s.dest, refused)
			break
		}
	}
	if began.IsZero() {
		return nil, nil, nil, engine.Outcome(conformance.Inconclusive, "", "status %d was never answered", status)
	}
	d := sc.syncs[0].dest
	if latest != "" {
		d = sc.latest().dest
	}
	for _, c := range d.Seen("") {
		if at, ok := sc.timeOf(d, c); ok && c.Came.After(refused.Ended) {
			later, waits = append(later, c), append(waits, at.Sub(began))
		}
	}
	return refused, later, waits, nil
}

func (sc *scenario) restsAfter(latest string, n int, unit string, status int) error {
	refused, later, waits, err := sc.following(latest, status)
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

func (sc *scenario) goesOnAfter(latest string, n int, unit string, status int) error {
	refused, later, waits, err := sc.following(latest, status)
	if err != nil {
		return err
	}
	most := length(n, unit)
	if len(later) == 0 {
		sc.brokenCall(fmt.Sprintf("a call within %s after status %d", most, status), "none came any more", refused)
		return sc.Held()
	}
	if waits[0] > most {
		sc.brokenCall(fmt.Sprintf("a call within %s after status %d", most, status),
			"the first after "+waits[0].Round(time.Millisecond).String(), refused, later[0])
	}
	return sc.HeldBy("the first call after status %d came %s later", status, waits[0].Round(time.Millisecond))
}

func length(n int, unit string) time.Duration {
	if unit == "ms" {
		return time.Duration(n) * time.Millisecond
	}
	return time.Duration(n) * time.Second
}

func (sc *scenario) batchesAreWhole(n int) error {
	batches, err := sc.sentBatches()
	if err != nil {
		return err
	}
	for _, c := range batches {
		if got := endpoint.CountRecords(c); got != n {
			sc.brokenCall(fmt.Sprintf("%s in each batch", quantity.Count(n, "record")), quantity.Count(got, "record"), c)
		}
	}
	return sc.heldBy(len(batches), "batch")
}
