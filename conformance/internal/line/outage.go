package line

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"golang.org/x/sync/semaphore"
)

// A process that ends or restarts in the middle of a run would break every rule
// that is judged at that moment. It is one finding, of ERR-006: the session notices
// that the endpoint stopped accepting connections, waits a bounded while for its
// return, and what was under way is judged once more, alone. A process that accepts
// connections and answers nothing any more, as one whose only worker is stuck, would cost
// the time limit of every later call: it is the same finding, unless it answers again.

// Outage is one time in which the endpoint accepted no connections, or answered nothing.
type Outage struct {
	Call  string // what it followed, with the check
	Alone bool   // no other call was under way: that one was the last
	// suspects are the calls that were under way, of which one may have ended it.
	Suspects []*underWay
	Back     time.Duration
	Reply    *exchange.Reply
	Ended    bool // it came back
	Chance   bool // no call that was under way ends it when it is sent again
	// silent: it accepted connections, and answered nothing.
	Silent bool
}

// err is what the calls end with that meet an endpoint which is gone.
func (o *Outage) err() error {
	if o.Silent {
		return wire.ErrSilent
	}
	return wire.ErrAway
}

// watch follows whether the endpoint is there. One outage is found and waited for
// once, however many calls run into it.
type watch struct {
	Mu      sync.Mutex
	calls   []*underWay // in the order in which they began
	most    int         // under way at once since the last time that none was
	Outages []*Outage
	gone    *Outage             // it did not come back
	Off     int                 // an author's hook takes the endpoint down on purpose
	turn    *semaphore.Weighted // of one: who looks whether the endpoint is there
	cleared time.Time           // the end of the last outage
	heard   time.Time           // of the last response
}

// probes is how often an endpoint that has lost a call is asked whether it is
// still there, before that is called an outage.
const probes = 2

// underWay is a call that has no answer yet.
type underWay struct {
	Name    string // with its check
	started time.Time
	Request Request
}

func (w *watch) enter(name string, req Request) (call *underWay, gone *Outage) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	call = &underWay{name, time.Now(), req}
	w.calls = append(w.calls, call)
	w.most = max(w.most, len(w.calls))
	return call, w.gone
}

func (w *watch) leave(call *underWay) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.calls = slices.DeleteFunc(w.calls, func(c *underWay) bool { return c == call })
	if len(w.calls) == 0 {
		w.most = 0
	}
}

// nameOf is how a finding speaks of a call of a check. Each call is named: of a body, which
// may be long, the beginning alone is looked at.
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

// waiting names the calls under way in the order in which they began; w.mu is held.
func (w *watch) waiting() string {
	var names []string
	for _, call := range w.calls {
		if !slices.Contains(names, call.Name) {
			names = append(names, call.Name)
		}
	}
	return quantity.List(names)
}

// hears notes that a response came.
func (w *watch) hears(got *wire.Reply) {
	if got.Status == 0 {
		return
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.heard = time.Now()
}

// heardSince reports whether any response came after a moment.
func (w *watch) heardSince(at time.Time) bool {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.heard.After(at)
}

// IsGone reports whether the endpoint went away and did not come back.
func (w *watch) IsGone() bool {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.gone != nil
}

// Count is how often the endpoint was away.
func (w *watch) Count() int {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return len(w.Outages)
}

// Expect switches the watch off while a hook takes the endpoint down.
func (w *watch) Expect(down bool) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if down {
		w.Off++
	} else {
		w.Off--
	}
}

// lost reports whether a call ended as one to a process that is gone does.
func lost(got *wire.Reply, req Request) bool {
	if got.Status != 0 && got.Kind != wire.KindTruncated || req.CutAtOnce || req.CutReply > 0 || req.CutRequest > 0 || req.Plain || req.URL != "" {
		return false
	}
	return slices.Contains([]wire.Kind{wire.KindRefused, wire.KindReset, wire.KindClosed, wire.KindTruncated, wire.KindTimeout}, got.Kind)
}

// away decides whether a lost call is part of an outage, and waits for its end.
func (s *Session) away(ctx context.Context, to *wire.Client, call *underWay, req Request, got *wire.Reply) error {
	w := &s.Watch
	w.Mu.Lock()
	alone, off, waiting, suspects := w.most <= 1, w.Off > 0, w.waiting(), slices.Clone(w.calls)
	w.Mu.Unlock()
	if off || !s.Known || !lost(got, req) {
		return nil
	}
	silent, name := got.Kind == wire.KindTimeout, call.Name
	if silent {
		name = waiting // the one that hangs has begun before, and may have been given more time
	}
	return s.OutageAt(ctx, to, call.started, &Outage{Call: name, Alone: alone, Suspects: suspects, Silent: silent, Reply: &exchange.Reply{Reply: got, ID: req.ID, Method: req.Method, Object: req.Object}})
}

// BrokenOff reports whether a connection ended before the answer, as it does where the
// process behind it ends.
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
	w.Mu.Lock()
	gone, cleared := w.gone, w.cleared
	w.Mu.Unlock()
	if gone != nil {
		return gone.err()
	}
	if started.Before(cleared) {
		return wire.ErrAway // another call has found the same outage
	}
	began := time.Now()
	for range probes {
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
	if o.Silent && (o.Ended || w.heardSince(began)) {
		return nil // it was slow, which the checks judge
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Outages = append(w.Outages, o)
	w.cleared = time.Now()
	if !o.Ended {
		w.gone = o
		return o.err()
	}
	return wire.ErrAway
}

// answers reports whether a fresh connection brings any response, and if not, whether one
// was accepted. An endpoint that is silent is asked for more: where one method hangs,
// another may be answered.
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
		if s.Watch.hears(r); r.Status != 0 {
			return true, false
		}
		silent = silent || r.Kind == wire.KindTimeout
	}
	return false, silent
}

func (w *watch) All() []*Outage {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return slices.Clone(w.Outages)
}

// Names are the calls that were under way when the endpoint went away.
func (o *Outage) Names() string {
	names := []string{o.Call}
	for _, call := range o.Suspects {
		if !o.Silent && !slices.Contains(names, call.Name) {
			names = append(names, call.Name)
		}
	}
	return quantity.List(names)
}

// Forget takes back an outage that was called for.
func (w *watch) Forget(o *Outage) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Outages = slices.DeleteFunc(w.Outages, func(other *Outage) bool { return other == o })
}
