package service

import (
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/destsim/rpc"
)

// twist changes how one call is answered; r begins as what the simulator
// answers by itself.
type twist func(c *endpoint.Call, r *endpoint.Reply)

// behaves adds a twist to those that the destination has already.
func (d *destination) behaves(m twist) { d.WrapScript(m) }

// methodIs limits a twist to a JSON-RPC method.
func methodIs(method string, m twist) twist {
	return func(c *endpoint.Call, r *endpoint.Reply) {
		if c.Method == method {
			m(c, r)
		}
	}
}

// counted limits a twist to the calls of a method from the first-th to the
// last-th that come from now on; 0 is no end.
func counted(method string, first, last int64, m twist) twist {
	var n atomic.Int64
	return methodIs(method, func(c *endpoint.Call, r *endpoint.Reply) {
		if i := n.Add(1); i >= first && (last == 0 || i <= last) {
			m(c, r)
		}
	})
}

// after is a channel that is closed in a while.
func after(d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(d, func() { close(done) })
	return done
}

// slowly lets every batch take that long.
func slowly(d time.Duration) twist {
	return methodIs(rpc.MethodSyncBatch, func(_ *endpoint.Call, r *endpoint.Reply) { r.Before = after(d) })
}
