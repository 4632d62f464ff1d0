package destsim

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// touch is what armed faults do to one call.
type touch struct {
	firings []*firing
	cut     *Fault // the connection ends instead of an answer
}

// all are the faults that fire on a call, none where it is not touched.
func (t *touch) all() []*firing {
	if t == nil {
		return nil
	}
	return t.firings
}

// firing is one fault that fires on one call.
type firing struct {
	*Fault
	kind  FaultKind
	id    string
	turn  int64         // from 0: how often the fault has fired before
	hits  []bool        // by record of the batch, where records are chosen
	delay time.Duration // of the kind delay
}

// before and after report where the fault acts; before is the default.
func (f *firing) before() bool { return f.At == "" || f.At == "before" }

func (f *firing) hit(record int) bool { return record < len(f.hits) && f.hits[record] }

// seams are where faults act. With nothing armed each costs one nil check.
func (b *faultBoard) seams() seams {
	return seams{
		parsed: b.begin, batch: faultBatch, apply: faultApply, results: faultResults,
		plan: faultPlan, answered: faultAnswered, write: faultWrite,
	}
}

// begin decides which faults fire, and does the work before the call is
// executed.
func (b *faultBoard) begin(c *call) {
	// A call of the fast path started before whatever is armed now.
	if b.live.Load() == 0 || c.w == nil {
		return
	}
	c.touch = b.decide(c)
	for _, f := range c.touch.all() {
		c.marks = append(c.marks, f.id)
		switch {
		case f.Kind == "schema":
			if e := f.Drift.refuse(c.object, c.batchOperation()); e != nil {
				c.fail(e.Code, e.Message)
			}
		case f.At == "between":
			c.touch.cut = f.Fault
		case len(f.kind.at) > 0 && f.before():
			f.interfere(c)
		}
	}
}

// batchOperation is the operation of a batch, "" for other calls.
func (c *call) batchOperation() string {
	if !c.isBatch() {
		return ""
	}
	return c.batch.Plan.Operation
}

// interfere does what a fault of the kinds with a place does there: before the
// call is executed it is not executed, after that only its answer is lost.
func (f *firing) interfere(c *call) {
	message := cmp.Or(f.Message, "simulated fault")
	switch f.Kind {
	case "delay":
		c.sleep(f.delay)
	case "hang":
		c.fail(rpc.CodeInternalError, message)
		c.sleep(c.sim.delays.Hang)
		c.touch.cut = f.Fault
	case "reset", "close":
		c.fail(rpc.CodeInternalError, message)
		c.touch.cut = f.Fault
	case "rpc_error":
		c.fail(cmp.Or(f.Code, codeSimulated), message)
		c.err.Data = f.Data
	case "http_status":
		c.refuse(f.Status, codeSimulated, message)
	case "throttle":
		c.refuse(http.StatusTooManyRequests, codeTooFast, "slow down: "+message)
	}
}

// codeSimulated is the code of an error object that a fault made up.
const codeSimulated = -32099

// faultBatch shortens a batch that ends between two records, and shows it a
// changed schema.
func faultBatch(c *call, b *batch) {
	for _, f := range c.touch.all() {
		switch {
		case f.At == "between":
			b.to = min(cmp.Or(f.Records, b.Len()/2), b.to)
		case f.Kind == "schema":
			f.Drift.batch(b)
		}
	}
}

// faultApply fails single records or reports false results for them.
func faultApply(c *call, r *record, next next) result {
	// Faults that fire on the same record wrap one another in the order
	// of arming; one that stores nothing ends the row.
	apply := next
	for _, f := range c.touch.all() {
		if !f.hit(r.index) {
			continue
		}
		message := cmp.Or(f.Message, "simulated failure")
		switch f.Kind {
		case "record_failure":
			return r.fail("%s", message)
		case "acknowledge_unstored":
			return r.ok()
		case "refuse_stored":
			inner := apply
			apply = func(r *record) result {
				inner(r)
				return r.fail("%s", message)
			}
		}
	}
	return apply(r)
}

// faultResults changes which results there are and for whom.
func faultResults(c *call, rs []result) []result {
	// A violation may have cut records off at the front: results are numbered
	// from there, hits by the record that was sent.
	from := c.batch.from
	var dropped []int
	var more []result
	for _, f := range c.touch.all() {
		if f.Kind == "extra_results" {
			more = append(more, f.invented(c.batch)...)
		}
		for at := range rs {
			if !f.hit(from + at) {
				continue
			}
			switch f.Kind {
			case "missing_results":
				dropped = append(dropped, at)
			case "wrong_identifiers":
				rs[at].identifier = store.Quote(fmt.Sprintf("zz-wrong-%d-%d", f.turn, from+at))
			case "repeated_results":
				more = append(more, rs[at])
			case "contradictory_results":
				opposite := rs[at]
				opposite.success, opposite.message = !opposite.success, "simulated contradiction"
				if opposite.success {
					opposite.message = ""
				}
				more = append(more, opposite)
			}
		}
	}
	// Results are dropped last, so that every fault finds each at its record.
	slices.Sort(dropped)
	for _, at := range slices.Backward(slices.Compact(dropped)) {
		rs = slices.Delete(rs, at, at+1)
	}
	return append(rs, more...)
}

// invented are results for records that were not sent.
func (f *firing) invented(b *batch) []result {
	list := make([]result, max(f.Records, 1))
	for i := range list {
		id := store.Quote(fmt.Sprintf("zz-unasked-%d-%d", f.turn, i))
		if b.identifier.Type == rpc.TypeInteger {
			id = strconv.AppendInt(nil, 9100000000000000+1000*f.turn+int64(i), 10)
		}
		list[i] = result{identifier: id, success: true}
	}
	return list
}

// faultPlan changes the answers of the planning calls.
func faultPlan(c *call, value any) any {
	for _, f := range c.touch.all() {
		switch f.Kind {
		case "schema":
			value = f.Drift.plan(c, value)
		case "speed":
			value = f.Speeds[f.turn%int64(len(f.Speeds))]
		}
	}
	return value
}

// faultAnswered does the work after the call was executed.
func faultAnswered(c *call) {
	for _, f := range c.touch.all() {
		switch {
		case f.Kind == "wrong_id":
			if c.id = []byte(f.ID); f.ID == nil {
				c.id = []byte(`"wrong-id"`)
			}
		case f.At == "after":
			f.interfere(c)
		}
	}
}

// faultWrite changes the reply on the wire.
func faultWrite(c *call, h *httpReply) {
	for _, f := range c.touch.all() {
		f.write(c, h)
	}
	if c.touch != nil && c.touch.cut != nil {
		// No byte at all: neither a status line nor a body.
		h.raw, h.reset = []byte{}, c.touch.cut.Kind == "reset"
	}
}

// write applies one fault to the reply; one that breaks the framing makes
// the reply go out by hand, and the connection ends with it.
func (f *firing) write(c *call, h *httpReply) {
	pause := milliseconds(cmp.Or(f.PauseMS, 100))
	switch f.Kind {
	case "http_status":
		for name, value := range f.Headers {
			h.header.Set(name, value)
		}
		if f.Body != "" {
			h.body, h.coding = []byte(f.Body), ""
		}
		if f.Status == http.StatusNoContent || f.Status == http.StatusNotModified {
			h.body, h.coding = nil, ""
		}
	case "throttle":
		h.setRetryAfter(f.Fault, c.sim.clock())
	case "rate_limit":
		if value := f.Limits[f.turn%int64(len(f.Limits))]; value != "" {
			h.header.Set("X-RateLimit-Limit", value) // spec 8
		} else {
			h.header.Del("X-RateLimit-Limit")
		}
	case "truncate":
		h.coding = "" // so that the length is known
		h.cut = cmp.Or(f.Bytes, max(len(h.body)/2, 1))
	case "stall":
		// Compression would end the body before the place of the pause.
		h.coding = ""
		h.stall, h.stallAt = pause, cmp.Or(f.Bytes, len(h.body)/2)
	case "slow_body":
		h.drip, h.dripBy = pause, cmp.Or(f.Bytes, 16)
	}
}

// setRetryAfter writes the header in one of its two forms, or as no client can
// read it (a service honours it on 429).
func (h *httpReply) setRetryAfter(f *Fault, now time.Time) {
	seconds := max(f.Seconds, 1)
	switch f.RetryAfter {
	case "", "seconds":
		h.header.Set("Retry-After", strconv.Itoa(seconds))
	case "date":
		h.header.Set("Retry-After", now.Add(time.Duration(seconds)*time.Second).UTC().Format(http.TimeFormat))
	case "absent":
		h.header.Del("Retry-After")
	case "garbage":
		h.header.Set("Retry-After", "in a while")
	}
}
