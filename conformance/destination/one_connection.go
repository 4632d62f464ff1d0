package destination

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/destsim/rpc"
)

// An endpoint with one worker that keeps its connection serves no other until that
// one closes: each connection at rest makes a call over another one hang. Discovery
// finds that out, so that it is one finding and not one of every call that hangs, and
// the run goes on with one connection at a time.

// listBeside asks for the objects over a second connection, while that of an earlier
// call is open. Where no answer comes, and comes at once when nothing else is open, the
// endpoint serves one connection at a time.
func (s *session) listBeside(ctx context.Context, earlier *reply) (*reply, error) {
	kept := request{method: rpc.MethodListObjects}
	if !earlier.Ended() || earlier.ConnClosed || len(s.replicas.lines) > 1 {
		return s.send(ctx, "", kept)
	}
	beside := kept
	beside.fresh = true
	hung, err := s.send(ctx, "", beside)
	if err != nil || !hung.WaitedInVain() {
		return hung, err
	}
	soon := min(s.opts.PlanningTimeout, max(time.Second, 4*earlier.Total))
	kept.timeout, beside.timeout = soon, soon
	listed, err := s.answeredAlone(ctx, kept, 2)
	if listed == nil {
		return hung, err
	}
	// A connection is open again. One late reply is no proof, and neither are calls that
	// hang in turn: the second time, more of them must be answered.
	again, err := s.send(ctx, "", beside)
	if err != nil || !again.WaitedInVain() {
		return listed, err
	}
	last, err := s.answeredAlone(ctx, kept, 3)
	if last == nil {
		return listed, err
	}
	s.client.OneAtATime()
	s.queued = hung
	return last, nil
}

// answeredAlone closes what is open and makes n calls over one connection, which stays
// open. It gives the last reply, nil when not all were answered over that connection.
func (s *session) answeredAlone(ctx context.Context, req request, n int) (last *reply, err error) {
	s.client.CloseIdle()
	for range n {
		if last, err = s.send(ctx, "", req); err != nil || !last.Ended() || last.ConnClosed {
			return nil, err
		}
	}
	return last, nil
}

const (
	symptomOneConnection = "one connection at a time"
	oneConnection        = "no second connection is served while another is open"
	oneConnectionFix     = "serve each connection in a thread or task of its own (Python: ThreadingHTTPServer instead of HTTPServer), run more workers, or answer Connection: close and close after each reply."
)

// servesOneConnection is the finding about an endpoint that serves one connection at a
// time.
func (sc *scenario) servesOneConnection() error {
	sc.Add(conformance.Finding{
		Expected: "calls over several connections at once are answered",
		Actual:   oneConnection + ": " + sc.queued.Method + " had no answer within " + exchange.Round(sc.queued.Total).String() + ", and was answered at once when the other connection was closed",
		Fix:      oneConnectionFix,
	}, symptomOneConnection, []conformance.Exchange{sc.queued.Exchange()})
	sc.Explain(func(s string) bool { return s == symptomOneConnection },
		"one worker serves a connection until its end: a connection that is kept for the next call keeps out all others.", true)
	return sc.Held()
}

// needsSecondConnection ends a check of what happens at the same time where nothing does.
func (sc *scenario) needsSecondConnection() error {
	if sc.queued == nil {
		return nil
	}
	return notRun("", "%s (PAR-001)", oneConnection)
}

// dialInTurn opens connections for the calls to hooks, which many authors serve from the
// process that is judged: where that serves one connection at a time, they wait for it.
func (s *session) dialInTurn(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		done, err := s.client.Turn(ctx)
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
