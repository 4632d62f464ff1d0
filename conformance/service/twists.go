package service

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
)

// twist changes how one call is answered; r begins as what the simulator
// answers by itself.
type twist func(c *call, r *reply)

// behaves adds a twist to those that the destination has already.
func (d *destination) behaves(m twist) {
	d.mu.Lock()
	script := d.script
	d.mu.Unlock()
	d.setScript(func(c *call) *reply {
		var r *reply
		if script != nil {
			r = script(c)
		}
		if r == nil {
			r = asItIs()
		}
		m(c, r)
		return r
	})
}

// asItIs is the simulator's own answer.
func asItIs() *reply {
	return &reply{edit: func(body []byte, _ http.Header) []byte { return body }}
}

// sets adds a header to the answer, beside other lines of its name.
func (r *reply) sets(name, value string) {
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header[name] = append(r.header[name], value) // as it stands: the wire keeps its case
}

// fails answers with a status, and a body that says so.
func (r *reply) fails(status int) {
	r.status, r.edit, r.store = status, nil, false
	r.body = jsonvalue.Encode(map[string]any{"message": http.StatusText(status)})
}

// methodIs limits a twist to a JSON-RPC method.
func methodIs(method string, m twist) twist {
	return func(c *call, r *reply) {
		if c.method == method {
			m(c, r)
		}
	}
}

// counted limits a twist to the calls of a method from the first-th to the
// last-th that come from now on; 0 is no end.
func counted(method string, first, last int64, m twist) twist {
	var n atomic.Int64
	return methodIs(method, func(c *call, r *reply) {
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
	return methodIs(rpc.MethodSyncBatch, func(_ *call, r *reply) { r.before = after(d) })
}
