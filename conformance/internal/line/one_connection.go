package line

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/destsim/rpc"
)

// An endpoint with one worker that keeps its connection serves no other until that
// one closes: each connection at rest makes a call over another one hang. Discovery
// finds that out, so that it is one finding and not one of every call that hangs, and
// the run goes on with one connection at a time.

// ListBeside asks for the objects over a second connection, while that of an earlier
// call is open. Where no answer comes, and comes at once when nothing else is open, the
// endpoint serves one connection at a time.
func (s *Session) ListBeside(ctx context.Context, earlier *exchange.Reply) (*exchange.Reply, error) {
	kept := Request{Method: rpc.MethodListObjects}
	if !earlier.Ended() || earlier.ConnClosed || len(s.Replicas.Lines) > 1 {
		return s.Send(ctx, "", kept)
	}
	beside := kept
	beside.Fresh = true
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
	// A connection is open again. One late reply is no proof, and neither are calls that
	// hang in turn: the second time, more of them must be answered.
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

// answeredAlone closes what is open and makes n calls over one connection, which stays
// open. It gives the last reply, nil when not all were answered over that connection.
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
	OneConnectionFix     = "serve each connection in a thread or task of its own (Python: ThreadingHTTPServer instead of HTTPServer), run more workers, or answer Connection: close and close after each reply."
)

// dialInTurn opens connections for the calls to hooks, which many authors serve from the
// process that is judged: where that serves one connection at a time, they wait for it.
func (s *Session) dialInTurn(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(ctx context.Context, network, addr string) (net.Conn, error) {
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
