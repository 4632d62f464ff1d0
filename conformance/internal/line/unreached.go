package line

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/internal/unreached"
)

// NoResponse tells a reply that never began from one that never ended.
func NoResponse(r *exchange.Reply) string {
	if r.Received > 0 {
		return "no complete HTTP response"
	}
	return "no HTTP response"
}

// WhyUnreached says in plain words why a reply did not come to its end, and what to do.
func (s *Session) WhyUnreached(r *exchange.Reply, name, host string) (what, fix string) {
	cause := unreached.Of(r.Err, name, host)
	switch {
	case r.Kind == wire.KindTimeout && r.Framing == wire.FramingClose && len(r.Body) > 0:
		then := ""
		if json.Valid(r.Body) {
			then = ", then nothing"
		}
		return fmt.Sprintf("HTTP %d and %s came%s: the response has neither Content-Length nor chunked encoding, and the connection stays open",
			r.Status, quantity.Count(len(r.Body), "byte"), then), "send Content-Length, or close the connection"
	case r.Kind == wire.KindTimeout && r.Received > 0:
		return r.Failure(), "look whether the " + name + " hangs in the middle of a response, or announces a longer one than it sends"
	case cause == unreached.Cause{} || r.Received > 0:
		return r.Failure(), "check the URL, that the " + name + " runs, and that this machine may reach it"
	case cause.Late:
		return r.Failure(), cause.Fix // with the time
	}
	return cause.What, cause.Fix
}

// noticed notes when the hook gives no count.
func (s *Session) noticed(readback hook.Readback) hook.Readback {
	return func(ctx context.Context, q hook.ReadbackRequest) (hook.ReadbackReply, error) {
		reply, err := readback(ctx, q)
		for _, r := range reply.Records {
			if r.Uncounted {
				s.Uncounted.Store(true)
			}
		}
		return reply, err
	}
}
