package destsim

import (
	"sync/atomic"

	"github.com/destkit/destkit/destsim/rpc"
)

// downViolations end the process by one bad call, and it comes back after
// Delays.Down (ERR-006).
func downViolations() []violation {
	const gone = " every call is reset without a response for Delays.Down, that first one included"
	return []violation{
		keeps("ERR-006", "after a request body that is no JSON text at all"+gone, func(*Sim) seams {
			var p process
			return seams{http: p.refuses, parsed: func(c *call) {
				if c.garbled() {
					p.end(c)
				}
			}}
		}),
		keeps("ERR-006.2", "after a batch with U+0000 in a string field"+gone, func(*Sim) seams {
			var p process
			return seams{http: p.refuses, batch: func(c *call, b *batch) *rpc.Error {
				if b.carries(rpc.TypeString, holds("\x00")) {
					p.end(c)
				}
				return nil
			}}
		}),
	}
}

// process is one that may be gone for a while.
type process struct {
	back atomic.Int64 // when it is there again, in nanoseconds of the clock
}

// end takes the process away from now on.
func (p *process) end(c *call) {
	p.back.Store(c.sim.clock().Add(c.sim.delays.Down).UnixNano())
	c.reset()
}

// refuses resets a call while the process is gone.
func (p *process) refuses(c *call) bool {
	if c.sim.clock().UnixNano() >= p.back.Load() {
		return false
	}
	c.reset()
	return true
}
