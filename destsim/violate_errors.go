package destsim

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/destkit/destkit/destsim/rpc"
)

// errorsViolations are faults that are hidden, harm the next call, or are told
// in a wrong way (ERR-*).
func errorsViolations() []violation {
	return slices.Concat(downstreamViolations(), spoiledViolations(), messageViolations(), downViolations())
}

// downstreamViolations misbehave while the downstream is broken (ERR-001,
// ERR-005).
func downstreamViolations() []violation {
	return []violation{
		breaks("ERR-001", "while the downstream is broken sync_batch acknowledges every record and writes nothing",
			seams{batch: func(c *call, b *batch) *rpc.Error {
				if c.sim.broken.Load() {
					c.answer(json.RawMessage(appendResults(nil, b.acknowledged())))
				}
				return nil
			}}),
		breaks("ERR-005", "while the downstream is broken list_objects takes Delays.Retry",
			seams{parsed: func(c *call) {
				if gives(c, rpc.MethodListObjects) && c.sim.broken.Load() {
					c.sleep(c.sim.delays.Retry)
				}
			}}),
	}
}

// messageViolations tell an unknown object in a wrong way (ERR-003, ERR-004).
func messageViolations() []violation {
	const traceback = "\nTraceback (most recent call last):\n" +
		"  File \"/srv/app/main.py\", line 7, in list_fields\n" +
		"    return FIELDS[name]\nKeyError: name"
	tells := func(id, changes string, change func(message string) string) violation {
		return breaks(id, changes, seams{answered: func(c *call) {
			if _, problem := objectName(c.params); problem == "" && wrongParams(c, rpc.MethodListFields) {
				c.err = &rpc.Error{Code: c.err.Code, Message: change(c.err.Message)}
			}
		}})
	}
	return []violation{
		tells("ERR-003", "the message of list_fields for an unknown object is followed by a traceback",
			func(message string) string { return message + traceback }),
		tells("ERR-004", "the message of list_fields for an unknown object is 1 MB long",
			func(message string) string { return (message + strings.Repeat(" and so on", 1<<20/10))[:1<<20] }),
		tells("ERR-004.2", "the message of list_fields for an unknown object is empty",
			func(string) string { return "" }),
	}
}

// spoiledViolations remember a body that is no JSON text at all on its
// connection (ERR-002). As for HTTP-008, the connection is taken over with the
// reply to such a body, because a handler cannot tell connections apart.
func spoiledViolations() []violation {
	take := func(c *call) bool {
		c.w = &spoiledWriter{forgetfulWriter{ResponseWriter: c.w, call: c, status: http.StatusOK}}
		return false
	}
	return []violation{
		breaks("ERR-002", "after a body that is no JSON text at all the next list_objects on the same connection is not answered until its caller has gone",
			seams{http: take, parsed: func(c *call) {
				if state := c.connection(); state != nil && state.spoiled != nil && gives(c, rpc.MethodListObjects) {
					state.spoiled = nil
					c.hang()
				}
			}}),
		breaks("ERR-002.2", "after a body that is no JSON text at all the next call on the same connection is answered by the parse error of the bad one",
			seams{http: take, reply: func(c *call, reply []byte) []byte {
				if state := c.connection(); state != nil && state.spoiled != nil && !c.garbled() {
					reply, state.spoiled = state.spoiled, nil
				}
				return reply
			}}),
	}
}

// connection is what is known of a connection that was taken over.
func (c *call) connection() *connState {
	state, _ := c.r.Context().Value(connKey{}).(*connState)
	return state
}

// garbled reports whether the body is not even the beginning of an object or
// array, and the caller was allowed to send it.
func (c *call) garbled() bool {
	text := bytes.TrimSpace(c.body)
	return c.err != nil && c.err.Code == rpc.CodeParseError && len(text) > 0 && text[0] != '{' && text[0] != '['
}

// spoiledWriter keeps the reply to a garbled body with its connection.
type spoiledWriter struct{ forgetfulWriter }

// Write gets the whole body in one piece.
func (w *spoiledWriter) Write(body []byte) (int, error) {
	c := w.call
	switch state := c.connection(); {
	case !c.garbled():
	case state != nil:
		state.spoiled = bytes.Clone(body)
	case c.r.ProtoAtLeast(1, 1) && !c.r.Close:
		if conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack(); err == nil {
			w.spoils = bytes.Clone(body)
			return w.takeOver(conn, rw.Reader, body)
		}
	}
	w.ResponseWriter.WriteHeader(w.status)
	return w.ResponseWriter.Write(body)
}

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
