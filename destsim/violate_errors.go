package destsim

import (
	"bytes"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/destkit/destkit/destsim/rpc"
)

const (
	// traceback is what ERR-003 appends to a message.
	traceback = "\nTraceback (most recent call last):\n" +
		"  File \"/srv/app/main.py\", line 7, in list_fields\n" +
		"    return FIELDS[name]\nKeyError: name"
	// goneAfter is what both ways of ERR-006 do.
	goneAfter = " every call is reset without a response for Delays.Down, that first one included"
)

// errorsViolations are faults that are hidden, harm the next call, or are
// reported in a wrong way (ERR-*).
var errorsViolations = []violation{
	breaks("ERR-001", "while the downstream is broken sync_batch acknowledges every record and writes nothing", batched(func(c *call, b *batch) {
		if c.sim.broken.Load() {
			b.acknowledge()
		}
	})),
	breaks("ERR-005", "while the downstream is broken list_objects takes Delays.Retry",
		called(func(c *call) bool { return gives(c, rpc.MethodListObjects) && c.sim.broken.Load() },
			func(c *call) { c.sleep(c.sim.delays.Retry) })),
	breaks("ERR-003", "the message of list_fields for an unknown object is followed by a traceback",
		tells(func(message string) string { return message + traceback })),
	breaks("ERR-004", "the message of list_fields for an unknown object is 1 MB long",
		tells(func(message string) string { return (message + strings.Repeat(" and so on", 1<<20/10))[:1<<20] })),
	breaks("ERR-004.2", "the message of list_fields for an unknown object is empty", tells(func(string) string { return "" })),

	keeps("ERR-002", "after a body that is no JSON text at all the next list_objects on the same connection is not answered until its caller has gone", func() seams {
		var known connections
		return seams{
			parsed: func(c *call) {
				if at := known.of(c); at.spoiled != nil && gives(c, rpc.MethodListObjects) {
					at.spoiled = nil
					c.hang()
				}
			},
			reply: known.spoil,
		}
	}),
	keeps("ERR-002.2", "after a body that is no JSON text at all the next call on the same connection is answered by the parse error of the bad one", func() seams {
		var known connections
		return seams{reply: func(c *call, reply []byte) []byte {
			if at := known.of(c); at.spoiled != nil && !c.garbled() {
				reply, at.spoiled = at.spoiled, nil
				return reply
			}
			return known.spoil(c, reply)
		}}
	}),
	counts("ERR-007", "every third supported_operations is answered by 503 without a body", func(next func() int64) seams {
		return written(giving(rpc.MethodSupportedOperations), func(_ *call, h *httpReply) {
			if next()%3 == 0 {
				h.status, h.body = http.StatusServiceUnavailable, nil
			}
		})
	}),
	keeps("ERR-006", "after a request body that is no JSON text at all"+goneAfter, func() seams {
		var p process
		return seams{http: p.refuses, parsed: called((*call).garbled, p.end).parsed}
	}),
	keeps("ERR-006.2", "after a batch with U+0000 in a string field"+goneAfter, func() seams {
		var p process
		ends := batched(func(c *call, b *batch) {
			if b.carries(rpc.TypeString, holds("\x00")) {
				p.end(c)
			}
		})
		ends.http = p.refuses
		return ends
	}),
}

// tells changes the message of list_fields for an unknown object.
func tells(change func(message string) string) seams {
	return seams{answered: func(c *call) {
		if _, problem := objectName(c.params); problem == "" && wrongParams(c, rpc.MethodListFields) {
			c.err = &rpc.Error{Code: c.err.Code, Message: change(c.err.Message)}
		}
	}}
}

// garbled reports whether the body is not even the beginning of an object or
// array, and the caller was allowed to send it.
func (c *call) garbled() bool {
	text := bytes.TrimSpace(c.body)
	return c.err != nil && c.err.Code == rpc.CodeParseError && len(text) > 0 && text[0] != '{' && text[0] != '['
}

// spoil keeps the reply to a garbled body with its connection.
func (k *connections) spoil(c *call, reply []byte) []byte {
	if c.garbled() {
		k.of(c).spoiled = bytes.Clone(reply)
	}
	return reply
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
