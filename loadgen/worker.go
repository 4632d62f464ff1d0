package loadgen

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/restload"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// caller is one connection: of this package or of net/http.
type caller interface {
	Call(r wire.Request, now int64) (wire.Reply, error)
	Interrupt() // from another goroutine: the call ends now
	Close()
}

// sample is one request that has ended, in nanoseconds of the clock.
type sample struct {
	intended, start, end int64
	records, good        int32
	failed               bool // the request as a whole
	waited               bool // the connection was free when the request was due
	connected            bool // … and was made for it
	untimed              bool // it failed before its time: that is no latency
	call                 restload.Kind
}

// written is a run of keys of one object that were acknowledged.
type written struct {
	keyspace *keyspace
	first    int64
}

// worker is one connection with its batches and measurements.
type worker struct {
	e      *engine
	number int
	end    *wire.Endpoint // that it is connected to
	line   caller
	check  records.Checker
	user   *apiUser // of a load on a service's API: what is called next; else nil
	random *rand.Rand
	wake   chan struct{}
	id     string // the first digits of its ids
	calls  int64

	plan   *plan // that the stocks are of
	stocks map[*task]*stock
	latest *task // … and its stock
	stock  *stock
	known  []written // the latest keys, to be updated, deleted or repeated
	fails  int       // connections that failed in a row
	acks   []ack     // of keys that are to be verified
	kept   uint64    // … which were chosen by this bound

	// started is when the call that is under way began, 0 while there is none and
	// -1 where the watch has broken it.
	started atomic.Int64
	breaks  sync.Mutex

	mu      sync.Mutex
	samples []sample
	tally   map[string]*tally
	scratch []byte
}

// tally counts equal errors.
type tally struct {
	Kind, Message string
	Count         int64
	Example       Example
}

// Example is one occurrence of an error, by which it can be found in a log.
type Example struct {
	RequestID  string `json:"request_id,omitempty"`
	Identifier string `json:"identifier,omitempty"`
	// Seconds from the start of the run.
	At float64 `json:"at_seconds"`
	// Detail is what was sent and what was read back, where that differs.
	Detail string `json:"detail,omitempty"`
}

func (e *engine) newWorker(number int) *worker {
	w := &worker{
		e: e, number: number, wake: make(chan struct{}, 1), stocks: map[*task]*stock{},
		random: rand.New(rand.NewPCG(e.seed, uint64(number)+1000)), tally: map[string]*tally{}, kept: allKeys,
	}
	const digits = "0123456789abcdef"
	id := make([]byte, records.IDDigits-records.IDCounter)
	for i := range id {
		id[i] = digits[w.random.IntN(16)]
	}
	w.id = string(id)
	if w.end = e.endOf(number); w.end.Transport.Standard {
		w.line = wire.NewStandard(e.ctx, w.end, w.end.Shared)
	} else {
		w.line = wire.NewLink(e.ctx, w.end)
	}
	w.check.Note = w.noteRecord
	if e.service != nil {
		w.user = newAPIUser(w, e.service)
	}
	return w
}

// prepare makes the next batch of a task with its keys; ok is false where the
// run has no more keys or records to send.
func (w *worker) prepare(t *task) (b *records.Batch, first int64, ok bool) {
	n := w.e.budget.spend(int64(t.shape.Size))
	if n == 0 {
		w.e.stopFor(stopRecords)
		return nil, 0, false
	}
	b = w.batch(t)
	cut := int(n) < b.Size()
	if cut { // the last of the run
		b = w.cut(t, int(n))
	}
	switch {
	case t.own:
	case t.creates() || t.sweeps:
		if first, ok = t.keyspace.take(n); !ok {
			w.e.stopFor(stopKeys)
			return nil, 0, false
		}
		b.Stamp(first)
		if !t.sweeps {
			first = w.repeat(t, b, first)
		}
	default:
		if first, ok = w.existing(t); !ok {
			w.e.stopFor(stopNothing)
			return nil, 0, false
		}
		b.Stamp(first)
	}
	w.calls++
	b.SetID(w.calls)
	if cut {
		first = -1 // later batches work on runs of keys of the whole size
	}
	return b, first, true
}

// choose picks the next task; a batch of an operation that has no record to
// work on yet gives way to one that makes some.
func (w *worker) choose() *task {
	p := w.e.current()
	if p != w.plan { // batches of another size
		w.plan, w.stocks, w.latest = p, map[*task]*stock{}, nil
	}
	t := p.pick(w.random)
	if t.creates() || p.primed || w.has(t.keyspace) {
		return t
	}
	for _, other := range p.tasks {
		if other.keyspace == t.keyspace && other.creates() {
			return other
		}
	}
	return t
}

func (w *worker) has(g *keyspace) bool {
	return slices.ContainsFunc(w.known, func(k written) bool { return k.keyspace == g })
}

// send sends one batch of a task, checks the reply and records it. intended is
// when it was due; 0: now. false ends the connection's work.
func (w *worker) send(t *task, intended int64, waited bool) bool {
	b, first, ok := w.prepare(t)
	if !ok {
		return false
	}
	s := w.due(intended, waited)
	s.records = int32(b.Size())
	v, rep, err := w.deliver(b, s.start)
	if !w.finish(&s, rep, err) {
		if w.e.acks != nil {
			w.acknowledge(t, b, s.start, s.end, true)
		}
		return false
	}
	s.good = int32(v.Acknowledged)
	switch {
	case err != nil:
		w.fail(err, exampleOf(b, s.end))
	case v.Failed == 0:
		w.remember(t, first)
	}
	if w.e.acks != nil {
		w.acknowledge(t, b, s.start, s.end, err != nil)
	}
	w.keep(s)
	w.pause(err)
	return true
}

// broken reports whether the end of the run breaks calls.
func (w *worker) broken() bool {
	return w.e.cutting.Load() || errors.Is(w.e.ctx.Err(), context.Canceled)
}

// untimed reports failures whose time is meaningless: a refusal in no time must
// not make a target look fast. A call that took all its time is what its user
// waited for.
func untimed(err error) bool {
	if err == nil {
		return false
	}
	var f *wire.Failure
	return errors.As(err, &f) && f.Kind != wire.KindTimeout
}

// deliver sends one batch and judges its reply.
func (w *worker) deliver(b *records.Batch, start int64) (v records.Verdict, rep wire.Reply, err error) {
	if rep, err = w.exchange(wire.Request{Wire: b.Wire(), Body: b.Body()}, start); err == nil {
		v, err = w.judge(b, rep)
	}
	return v, rep, err
}

// judge looks at status and body.
func (w *worker) judge(b *records.Batch, rep wire.Reply) (records.Verdict, error) {
	if rep.Limit > 0 && w.e.follow {
		w.e.limited(rep.Limit)
	}
	if rep.Status == http.StatusOK {
		return w.check.Check(b, rep.Body)
	}
	_, rpcErr, err := rpc.DecodeResponse(rep.Body, "")
	enveloped := err == nil && rpcErr != nil
	if w.e.follow && rep.Throttled(enveloped) {
		w.e.rest(rep)
	}
	switch {
	case rep.Throttled(enveloped) && enveloped:
		return records.Verdict{}, wire.Newf(wire.KindThrottled, "%s: error %d: %s", rep.ThrottleText(), rpcErr.Code, rpcErr.Message)
	case rep.Throttled(enveloped):
		return records.Verdict{}, wire.Newf(wire.KindThrottled, "%s", rep.ThrottleText())
	case enveloped: // it decides, regardless of any other status
		return records.Verdict{}, wire.Newf(wire.KindRPC, "error %d: %s", rpcErr.Code, rpcErr.Message)
	}
	return records.Verdict{}, wire.Newf(wire.KindStatus, "%s", wire.StatusText(rep.Status, rep.Body))
}

// pause slows a connection down that cannot be made: a closed loop against a
// port without a listener would only burn the processor.
func (w *worker) pause(err error) {
	f, _ := err.(*wire.Failure)
	if f == nil {
		w.fails = 0
		return
	}
	switch f.Kind {
	case wire.KindRefused, wire.KindConnect, wire.KindDNS, wire.KindTLS, wire.KindDescriptors, wire.KindPorts:
		w.fails++
		wait := time.NewTimer(min(time.Duration(w.fails)*10*time.Millisecond, time.Second))
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-w.e.quit:
		}
	}
}

// exampleOf is an example of an error of a whole batch.
func exampleOf(b *records.Batch, at int64) Example {
	return Example{RequestID: string(bytes.Trim(b.ID(), `"`)), At: float64(at) / 1e9}
}

// due is the sample of a request that is sent now. intended is when it was due; 0: now.
func (w *worker) due(intended int64, waited bool) sample {
	start := w.e.clock.Now()
	intended = cmp.Or(intended, start)
	return sample{intended: intended, start: start, waited: waited}
}

// exchange sends one request and has its reply. Meanwhile the watch may break the call.
func (w *worker) exchange(r wire.Request, start int64) (rep wire.Reply, err error) {
	w.started.Store(max(start, 1))
	rep, err = w.line.Call(r, start)
	if w.started.Swap(0) < 0 {
		w.breaks.Lock() // the watch is at work on this connection
		w.line.Close()
		w.breaks.Unlock()
	}
	return rep, err
}

// finish closes a sample; false: the end of the run has broken the call, and what the reply
// would have been is not known.
func (w *worker) finish(s *sample, rep wire.Reply, err error) bool {
	s.connected = rep.Dialled > 0
	s.end = w.e.clock.Now()
	if err != nil && w.broken() {
		w.e.cut.Add(1)
		return false
	}
	s.failed, s.untimed = err != nil, untimed(err)
	return true
}

// keep hands a sample to whoever collects them.
func (w *worker) keep(s sample) {
	w.mu.Lock()
	w.samples = append(w.samples, s)
	w.mu.Unlock()
}
