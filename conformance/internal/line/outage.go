package line

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// A process that ends or restarts in the middle of a run would break every rule that is judged at
// that moment. It is one finding, of ERR-006: the session notices it, waits a bounded while for the
// return, and repeats the interrupted checks, alone. A process that accepts connections and answers
// nothing any more would cost the time limit of every later call: it is the same finding, unless it
// answers again.

// Outage is one time in which the endpoint accepted no connections, or answered nothing.
type Outage struct {
	Call  string // what it followed, with the check
	Alone bool   // no other call was under way: that one was the last
	// Suspects are the calls that were under way, of which one may have ended it.
	Suspects []*underWay
	Back     time.Duration
	Reply    *exchange.Reply
	Ended    bool // it came back
	Chance   bool // no call that was under way ends it when it is sent again
	Silent   bool // it accepted connections, and answered nothing
	Batches  bool // other calls than sync_batch are answered
}

// err is the error of the calls that meet an endpoint which is gone.
func (o *Outage) err() error {
	if o.Silent {
		return wire.ErrSilent
	}
	return wire.ErrAway
}

// watch follows whether the endpoint is there. However many calls meet an outage, it is one.
type watch struct {
	mu      sync.Mutex
	calls   []*underWay // in the order in which they began
	most    int         // under way at once since the last time that none was
	outages []*Outage
	gone    *Outage             // it did not come back
	turn    *semaphore.Weighted // of one: who looks whether the endpoint is there
	cleared time.Time           // the end of the last outage
	off     atomic.Int32        // hooks of the author that take the endpoint down on purpose
	heard   atomic.Int64        // responses
	batched string              // the latest batch that was answered
	largest int                 // records of the largest one
	hung    *Outage             // the first batch that hangs since
}

// underWay is a call that has no answer yet.
type underWay struct {
	Name    string // with its check
	started time.Time
	Request Request
}

func (w *watch) enter(name string, req Request) (call *underWay, gone *Outage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	call = &underWay{name, time.Now(), req}
	w.calls = append(w.calls, call)
	w.most = max(w.most, len(w.calls))
	return call, w.gone
}

// hangs makes two batches that hang one after the other, none larger than one that was answered, an
// outage of all batches: the time limit of every later one would be waited for.
func (w *watch) hangs(call *underWay, r *exchange.Reply) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case r.Method != rpc.MethodSyncBatch:
	case r.Status != 0:
		w.batched, w.largest, w.hung = call.Name, max(w.largest, call.Request.Records), nil
	case !r.WaitedInVain() || call.Request.cut() || call.Request.Records > w.largest || w.gone != nil:
	case w.hung == nil:
		w.hung = &Outage{Call: w.batched + ", the last batch that is answered (other calls are); the first that hangs is " + call.Name, Reply: r, Alone: true, Silent: true, Batches: true}
	case call.started.After(w.hung.Reply.Started.Add(w.hung.Reply.Total)):
		w.hung.Back = time.Since(w.hung.Reply.Started)
		w.gone, w.outages = w.hung, append(w.outages, w.hung)
		return w.gone.err()
	}
	return nil
}

func (w *watch) leave(call *underWay) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = slices.DeleteFunc(w.calls, func(c *underWay) bool { return c == call })
	if len(w.calls) == 0 {
		w.most = 0
	}
}

// nameOf is how a finding speaks of a call. Of a body, which may be long, it reads the beginning.
func nameOf(req Request, check string) string {
	name := cmp.Or(req.Method, "a call")
	if req.Body != nil {
		const shown = 60
		name = "the body " + foreign.Clip(string(req.Body[:min(len(req.Body), utf8.UTFMax*(shown+1))]), shown)
	}
	switch {
	case check == CleanUpCheck.ID:
		name += " of the clean-up with " + quantity.Count(req.Records, "record")
	case check != "":
		name += " of " + check
	}
	return name
}

// namesOf names calls in the order in which they began, each once behind those that are named.
func namesOf(calls []*underWay, names ...string) []string {
	for _, call := range calls {
		if !slices.Contains(names, call.Name) {
			names = append(names, call.Name)
		}
	}
	return names
}

// hears notes whether a response came.
func (w *watch) hears(got *wire.Reply) (response bool) {
	if got.Status != 0 {
		w.heard.Add(1)
	}
	return got.Status != 0
}

// IsGone reports whether the endpoint went away and did not come back.
func (w *watch) IsGone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone != nil
}

// Expect switches the watch off while a hook takes the endpoint down.
func (w *watch) Expect(down bool) {
	if down {
		w.off.Add(1)
	} else {
		w.off.Add(-1)
	}
}

// Expected reports whether an author's hook takes the endpoint down on purpose.
func (w *watch) Expected() bool { return w.off.Load() > 0 }

// lost reports whether a call ended as one to a process that is gone does.
func lost(got *wire.Reply, req *Request) bool {
	return (got.Status == 0 || got.Kind == wire.KindTruncated) && !req.cut() && !req.Plain && req.URL == "" &&
		slices.Contains([]wire.Kind{wire.KindRefused, wire.KindReset, wire.KindClosed, wire.KindTruncated, wire.KindTimeout}, got.Kind)
}

// away decides whether a lost call is part of an outage, and waits for its end.
func (s *Session) away(ctx context.Context, to *wire.Client, call *underWay, r *exchange.Reply) error {
	w := &s.Watch
	if w.Expected() || !s.Known {
		return nil
	}
	if err := w.hangs(call, r); err != nil || !lost(r.Reply, &call.Request) {
		return err
	}
	o := &Outage{Call: call.Name, Silent: r.Kind == wire.KindTimeout, Reply: r}
	w.mu.Lock()
	o.Alone, o.Suspects = w.most <= 1, slices.Clone(w.calls)
	w.mu.Unlock()
	if o.Silent { // the hanging call started earlier, perhaps with a longer timeout
		o.Call = quantity.List(namesOf(o.Suspects))
	}
	return s.OutageAt(ctx, to, call.started, o)
}

// BrokenOff reports whether a connection ended before the answer, as when a process ends.
func BrokenOff(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// OutageAt makes a call that got no answer part of an outage if the endpoint answers
// nothing now, or was away since the call began, and waits for its end.
func (s *Session) OutageAt(ctx context.Context, to *wire.Client, started time.Time, o *Outage) error {
	w := &s.Watch
	if w.turn.Acquire(ctx, 1) != nil {
		return Overtime(ctx)
	}
	defer w.turn.Release(1)
	w.mu.Lock()
	gone, cleared := w.gone, w.cleared
	if o.Suspects == nil { // a hook has met it
		o.Suspects = slices.Clone(w.calls)
	}
	w.mu.Unlock()
	if gone != nil {
		return gone.err()
	}
	if started.Before(cleared) {
		return wire.ErrAway // another call has found the same outage
	}
	heard := w.heard.Load()
	for range 2 { // two calls in vain make it an outage
		answered, silent := s.answers(ctx, to, o.Silent)
		if answered {
			return nil // the loss of one call is judged by the checks
		}
		if o.Silent = silent; silent {
			break
		}
	}
	from := time.Now()
	for time.Since(from) < s.Opts.ReturnWait && !o.Ended {
		if err := Elapse(ctx, min(100*time.Millisecond, s.Opts.ReturnWait)); err != nil {
			return err
		}
		o.Ended, _ = s.answers(ctx, to, o.Silent)
	}
	o.Back = time.Since(from)
	if o.Silent && (o.Ended || w.heard.Load() > heard) {
		return nil // it was slow, which the checks judge
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outages = append(w.outages, o)
	w.cleared = time.Now()
	if !o.Ended {
		w.gone = o
		return o.err()
	}
	return wire.ErrAway
}

// answers reports whether a fresh connection brings any response, and if not, whether one was
// accepted. A silent endpoint gets more calls: where one method hangs, another may be answered.
func (s *Session) answers(ctx context.Context, to *wire.Client, more bool) (answered, silent bool) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	methods := []string{rpc.MethodTestConnection}
	if more {
		methods = append(methods, rpc.MethodListObjects)
	}
	got := make(chan *wire.Reply, len(methods))
	for _, method := range methods {
		body := rpc.EncodeRequest(nil, method, []byte("{}"), s.NewID())
		go func() {
			got <- to.Do(ctx, wire.Call{Check: "ERR-006", RPC: method, Body: body, Timeout: s.Opts.PlanningTimeout, FreshConn: true})
		}()
	}
	for range methods {
		r := <-got
		if s.Watch.hears(r) {
			return true, false
		}
		silent = silent || r.Kind == wire.KindTimeout
	}
	return false, silent
}

func (w *watch) All() []*Outage {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.outages)
}

// Names are the calls that were under way when the endpoint went away.
func (o *Outage) Names() string {
	if o.Silent {
		return o.Call
	}
	return quantity.List(namesOf(o.Suspects, o.Call))
}

// Forget takes back an outage that was called for.
func (w *watch) Forget(o *Outage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outages = slices.DeleteFunc(w.outages, func(other *Outage) bool { return other == o })
}
