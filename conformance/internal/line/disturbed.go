package line

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// A single 502, 503, 504 or 429, or a lost connection, shows nothing about the rule that is judged
// at that moment: the call is repeated, and the disturbance is one finding of ERR-007. The response
// to every repeat is the answer to that call.

// disturbances are the calls of a run that were answered when they were made again.
type disturbances struct {
	Mu      sync.Mutex
	Replies []*exchange.Reply
	lasting sync.Map // kinds of replies that no repeat has changed
}

const (
	MostRepeats   = 3
	firstPause    = 50 * time.Millisecond
	longestRetry  = 2 * time.Second // of a Retry-After
	FewLostAnswer = 2               // lost connections below that are none
)

// IsDisturbance reports whether a reply, or its loss, may be one of a disturbance that passes.
func IsDisturbance(r *exchange.Reply) bool {
	return r.Passing() || r.Status == 0 && (r.Kind == wire.KindReset || r.Kind == wire.KindClosed || r.Kind == wire.KindTruncated && len(r.Interim) > 0)
}

// Send makes a call, and makes it again where a disturbance kept it from its answer.
func (s *Session) Send(ctx context.Context, check string, req Request) (*exchange.Reply, error) {
	first, err := s.sendOnce(ctx, check, req)
	if err != nil || !IsDisturbance(first) || !req.repeatable() || s.Watch.Expected() {
		return s.saw(req, first), err
	}
	kind, times := first.Symptom(), MostRepeats
	if _, lasts := s.Disturbed.lasting.Load(kind); lasts {
		times = 1
	}
	for n := range times {
		if s.Reserve(req.Records) != nil {
			break
		}
		if err := Elapse(ctx, PauseAfter(first, n)); err != nil {
			return nil, err
		}
		again, err := s.sendOnce(ctx, check, req)
		if unsent, is := errors.AsType[UnsentError](err); is {
			err = unsent.error // the first call was sent
		}
		if err != nil {
			return nil, err
		}
		if IsDisturbance(again) {
			continue
		}
		if req.Once && !acceptedAll(again) {
			// The first call may have had its effect, which the second one has met.
			if !s.JudgesAlone.Load() {
				return nil, wire.ErrAway
			}
			break
		}
		if first.Status != 0 || !first.Reused { // a kept connection may be closed while nothing is on it
			s.Disturbed.Add(first)
		}
		return s.saw(req, again), nil
	}
	s.Disturbed.lasting.Store(kind, true)
	return s.saw(req, first), nil
}

// Add keeps a reply that a repeat has changed.
func (d *disturbances) Add(r *exchange.Reply) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	d.Replies = append(d.Replies, r)
}

// repeatable reports whether a call is an ordinary one, which can be made again.
func (r *Request) repeatable() bool {
	return !r.Unrepeated && r.HTTPMethod == "" && r.URL == "" && !r.Plain && r.Conn == nil && !r.cut()
}

// cut reports whether the judge itself breaks the call off.
func (r *Request) cut() bool { return r.CutAtOnce || r.CutReply > 0 || r.CutRequest > 0 }

// PauseAfter is how long the n-th repeat waits.
func PauseAfter(r *exchange.Reply, n int) time.Duration {
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		return min(time.Duration(seconds)*time.Second, longestRetry)
	}
	return firstPause << n
}

// acceptedAll reports whether a batch was taken as a whole.
func acceptedAll(r *exchange.Reply) bool {
	results := r.RecordResults()
	return results.IsArray && !slices.ContainsFunc(results.List, func(one exchange.Result) bool { return one.Success == nil || !*one.Success })
}

// TakesEffectOnce reports whether a second batch may be answered in another way than the first.
func TakesEffectOnce(operation string) bool {
	return operation == rpc.OperationInsert || operation == rpc.OperationDelete
}

const SymptomDisturbed = "a disturbance that passes"

// ListBeside requests the objects over a second connection, while that of an earlier call is open.
// Where no answer comes, and comes at once when nothing else is open, the endpoint serves one
// connection at a time, as one with a single worker that keeps its connection. That is one finding,
// and not one of every call that hangs: the run goes on with one.
func (s *Session) ListBeside(ctx context.Context, earlier *exchange.Reply) (*exchange.Reply, error) {
	kept, beside := Request{Method: rpc.MethodListObjects}, Request{Method: rpc.MethodListObjects, Fresh: true}
	if !earlier.Ended() || earlier.ConnClosed || len(s.Replicas.Lines) > 1 {
		return s.Send(ctx, "", kept)
	}
	hung, err := s.Send(ctx, "", beside)
	if err != nil || !hung.WaitedInVain() {
		return hung, err
	}
	soon := min(s.Opts.PlanningTimeout, max(time.Second, 4*earlier.Total))
	kept.timeout, beside.timeout = soon, soon
	listed, err := s.answeredAlone(ctx, kept, 2)
	if listed == nil {
		return hung, err
	}
	// One late reply is no proof, and neither are calls that hang in turn: the second time,
	// more of them must be answered.
	again, err := s.Send(ctx, "", beside)
	if err != nil || !again.WaitedInVain() {
		return listed, err
	}
	last, err := s.answeredAlone(ctx, kept, 3)
	if last == nil {
		return listed, err
	}
	s.Client.OneAtATime()
	s.Queued = hung
	return last, nil
}

// answeredAlone closes open connections and makes n calls over one connection, which stays open. It
// gives the last reply, nil when not all were answered over that connection.
func (s *Session) answeredAlone(ctx context.Context, req Request, n int) (last *exchange.Reply, err error) {
	s.Client.CloseIdle()
	for range n {
		if last, err = s.Send(ctx, "", req); err != nil || !last.Ended() || last.ConnClosed {
			return nil, err
		}
	}
	return last, nil
}

const (
	SymptomOneConnection = "one connection at a time"
	OneConnection        = "no second connection is served while another is open"
	OneConnectionFix     = "serve each connection in its own thread or task (Python: ThreadingHTTPServer instead of HTTPServer), run more workers, or answer Connection: close and close after each reply."
)

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialInTurn opens connections for the calls to hooks, which many authors serve from the
// process that is judged: where that serves one connection at a time, they wait for it.
func (s *Session) dialInTurn(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		done, err := s.Client.Turn(ctx)
		if err != nil {
			return nil, err
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			done()
			return nil, err
		}
		return &turnConn{Conn: conn, done: sync.OnceFunc(done)}, nil
	}
}

type turnConn struct {
	net.Conn
	done func()
}

// Close ends the turn.
func (c *turnConn) Close() error {
	defer c.done()
	return c.Conn.Close()
}
