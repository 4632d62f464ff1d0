package destination

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

	"golang.org/x/sync/semaphore"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/quantity"
)

// A process that ends or restarts in the middle of a run would break every rule
// that is judged at that moment. It is one finding, of ERR-006: the session notices
// that the endpoint stopped accepting connections, waits a bounded while for its
// return, and what was under way is judged once more, alone. A process that accepts
// connections and answers nothing any more, as one whose only worker is stuck, would cost
// the time limit of every later call: it is the same finding, unless it answers again.

// outage is one time in which the endpoint accepted no connections, or answered nothing.
type outage struct {
	call  string // what it followed, with the check
	alone bool   // no other call was under way: that one was the last
	// suspects are the calls that were under way, of which one may have ended it.
	suspects []*underWay
	back     time.Duration
	reply    *reply
	ended    bool // it came back
	chance   bool // no call that was under way ends it when it is sent again
	// silent: it accepted connections, and answered nothing.
	silent bool
}

// err is what the calls end with that meet an endpoint which is gone.
func (o *outage) err() error {
	if o.silent {
		return wire.ErrSilent
	}
	return wire.ErrAway
}

// watch follows whether the endpoint is there. One outage is found and waited for
// once, however many calls run into it.
type watch struct {
	mu      sync.Mutex
	calls   []*underWay // in the order in which they began
	most    int         // under way at once since the last time that none was
	outages []*outage
	gone    *outage             // it did not come back
	off     int                 // an author's hook takes the endpoint down on purpose
	turn    *semaphore.Weighted // of one: who looks whether the endpoint is there
	cleared time.Time           // the end of the last outage
	heard   time.Time           // of the last response
}

// probes is how often an endpoint that has lost a call is asked whether it is
// still there, before that is called an outage.
const probes = 2

// underWay is a call that has no answer yet.
type underWay struct {
	name    string // with its check
	started time.Time
	request request
}

func (w *watch) enter(name string, req request) (call *underWay, gone *outage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	call = &underWay{name, time.Now(), req}
	w.calls = append(w.calls, call)
	w.most = max(w.most, len(w.calls))
	return call, w.gone
}

func (w *watch) leave(call *underWay) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = slices.DeleteFunc(w.calls, func(c *underWay) bool { return c == call })
	if len(w.calls) == 0 {
		w.most = 0
	}
}

// nameOf is how a finding speaks of a call of a check. Each call is named: of a body, which
// may be long, the beginning alone is looked at.
func nameOf(req request, check string) string {
	name := cmp.Or(req.method, "a call")
	if req.body != nil {
		const shown = 60
		name = "the body " + foreign.Clip(string(req.body[:min(len(req.body), utf8.UTFMax*(shown+1))]), shown)
	}
	switch {
	case check == cleanUpCheck.ID:
		name += " of the clean-up with " + quantity.Count(req.records, "record")
	case check != "":
		name += " of " + check
	}
	return name
}

// waiting names the calls under way in the order in which they began; w.mu is held.
func (w *watch) waiting() string {
	var names []string
	for _, call := range w.calls {
		if !slices.Contains(names, call.name) {
			names = append(names, call.name)
		}
	}
	return quantity.List(names)
}

// hears notes that a response came.
func (w *watch) hears(got *wire.Reply) {
	if got.Status == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = time.Now()
}

// heardSince reports whether any response came after a moment.
func (w *watch) heardSince(at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard.After(at)
}

// isGone reports whether the endpoint went away and did not come back.
func (w *watch) isGone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone != nil
}

// count is how often the endpoint was away.
func (w *watch) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.outages)
}

// expect switches the watch off while a hook takes the endpoint down.
func (w *watch) expect(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if down {
		w.off++
	} else {
		w.off--
	}
}

// lost reports whether a call ended as one to a process that is gone does.
func lost(got *wire.Reply, req request) bool {
	if got.Status != 0 || req.cutAtOnce || req.cutReply > 0 || req.cutRequest > 0 || req.plain || req.url != "" {
		return false
	}
	return got.Kind == wire.KindRefused || got.Kind == wire.KindReset || got.Kind == wire.KindClosed || got.Kind == wire.KindTimeout
}

// away decides whether a lost call is part of an outage, and waits for its end.
func (s *session) away(ctx context.Context, to *wire.Client, call *underWay, req request, got *wire.Reply) error {
	w := &s.watch
	w.mu.Lock()
	alone, off, waiting, suspects := w.most <= 1, w.off > 0, w.waiting(), slices.Clone(w.calls)
	w.mu.Unlock()
	if off || !s.known || !lost(got, req) {
		return nil
	}
	silent, name := got.Kind == wire.KindTimeout, call.name
	if silent {
		name = waiting // the one that hangs has begun before, and may have been given more time
	}
	return s.outageAt(ctx, to, call.started, &outage{call: name, alone: alone, suspects: suspects, silent: silent, reply: &reply{Reply: got, ID: req.id, Method: req.method, Object: req.object}})
}

// hookAway decides whether a hook that got no answer ran into an outage: authors serve
// read-back from the process that is judged.
func (sc *scenario) hookAway(err error, started time.Time) error {
	if k := hook.KindOf(err); k != hook.KindUnreachable && k != hook.KindTimeout {
		return nil
	}
	sc.watch.mu.Lock()
	off := sc.watch.off > 0
	sc.watch.mu.Unlock()
	if off {
		return nil
	}
	if away := sc.outageAt(sc.ctx, sc.client, started, &outage{call: "the read-back of " + sc.Check().ID}); away != nil {
		return away
	}
	if brokenOff(err) && !sc.judgesAlone.Load() {
		return wire.ErrAway // a restart may be over already: judged once more, alone
	}
	return nil
}

// brokenOff reports whether a connection ended before the answer, as it does where the
// process behind it ends.
func brokenOff(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// outageAt makes a call that got no answer part of an outage if the endpoint answers
// nothing now, or was away since the call began, and waits for its end.
func (s *session) outageAt(ctx context.Context, to *wire.Client, started time.Time, o *outage) error {
	w := &s.watch
	if w.turn.Acquire(ctx, 1) != nil {
		return overtime(ctx)
	}
	defer w.turn.Release(1)
	w.mu.Lock()
	gone, cleared := w.gone, w.cleared
	w.mu.Unlock()
	if gone != nil {
		return gone.err()
	}
	if started.Before(cleared) {
		return wire.ErrAway // another call has found the same outage
	}
	began := time.Now()
	for range probes {
		answered, silent := s.answers(ctx, to, o.silent)
		if answered {
			return nil // the loss of one call is judged by the checks
		}
		if o.silent = silent; silent {
			break
		}
	}
	from := time.Now()
	for time.Since(from) < s.opts.ReturnWait && !o.ended {
		if err := elapse(ctx, min(100*time.Millisecond, s.opts.ReturnWait)); err != nil {
			return err
		}
		o.ended, _ = s.answers(ctx, to, o.silent)
	}
	o.back = time.Since(from)
	if o.silent && (o.ended || w.heardSince(began)) {
		return nil // it was slow, which the checks judge
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outages = append(w.outages, o)
	w.cleared = time.Now()
	if !o.ended {
		w.gone = o
		return o.err()
	}
	return wire.ErrAway
}

// answers reports whether a fresh connection brings any response, and if not, whether one
// was accepted. An endpoint that is silent is asked for more: where one method hangs,
// another may be answered.
func (s *session) answers(ctx context.Context, to *wire.Client, more bool) (answered, silent bool) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	methods := []string{rpc.MethodTestConnection}
	if more {
		methods = append(methods, rpc.MethodListObjects)
	}
	got := make(chan *wire.Reply, len(methods))
	for _, method := range methods {
		body := rpc.EncodeRequest(nil, method, []byte("{}"), s.newID())
		go func() {
			got <- to.Do(ctx, wire.Call{Check: "ERR-006", RPC: method, Body: body, Timeout: s.opts.PlanningTimeout, FreshConn: true})
		}()
	}
	for range methods {
		r := <-got
		if s.watch.hears(r); r.Status != 0 {
			return true, false
		}
		silent = silent || r.Kind == wire.KindTimeout
	}
	return false, silent
}
