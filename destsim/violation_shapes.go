package destsim

import (
	"sync"
	"sync/atomic"

	"github.com/destkit/destkit/destsim/rpc"
)

// The shapes that violations have in common.

// breaks is a violation that keeps no state, so that its seams can be written
// down at once.
func breaks(id, changes string, s seams, also ...Also) violation {
	return keeps(id, changes, func() seams { return s }, also...)
}

// keeps is a violation with state.
func keeps(id, changes string, arm func() seams, also ...Also) violation {
	return violation{Violation{ID: id, Changes: changes, Also: append([]Also{}, also...)}, arm} // never null in JSON
}

// counts is one that counts, from 1 since it was armed.
func counts(id, changes string, arm func(next func() int64) seams) violation {
	return keeps(id, changes, func() seams {
		var n atomic.Int64
		return arm(func() int64 { return n.Add(1) })
	})
}

// gives reports whether a call of that method has a result. Refusals and errors
// stay clean, so that a violation of one reply does not reach another rule.
func gives(c *call, method string) bool { return c.method == method && c.err == nil }

// giving is gives for the shapes below.
func giving(method string) func(c *call) bool {
	return func(c *call) bool { return gives(c, method) }
}

// The calls that most violations of a reply are about.
var (
	speedReply   = giving(rpc.MethodGetSyncSpeed)
	objectsReply = giving(rpc.MethodListObjects)
)

// unknownMethod reports whether a call is answered by "method not found".
func unknownMethod(c *call) bool { return c.err != nil && c.err.Code == rpc.CodeMethodNotFound }

// called does something with the calls that are meant before they are executed.
func called(meant func(c *call) bool, do func(c *call)) seams {
	return seams{parsed: func(c *call) {
		if meant(c) {
			do(c)
		}
	}}
}

// answered does something with the calls that are meant after they were executed.
func answered(meant func(c *call) bool, do func(c *call)) seams {
	return seams{answered: called(meant, do).parsed}
}

// planned changes the answer of the planning method that answers a T; its content is the
// call's own.
func planned[T any](change func(c *call, v T) any) seams {
	return seams{plan: func(c *call, value any) any {
		if v, ok := value.(T); ok {
			return change(c, v)
		}
		return value
	}}
}

// enveloped changes the envelope of the replies that are meant.
func enveloped(meant func(c *call) bool, change func(e *envelope)) seams {
	return seams{envelope: func(c *call, e *envelope) {
		if meant(c) {
			change(e)
		}
	}}
}

// replied changes the encoded replies that are meant.
func replied(meant func(c *call) bool, change func(reply []byte) []byte) seams {
	return seams{reply: func(c *call, reply []byte) []byte {
		if meant(c) {
			return change(reply)
		}
		return reply
	}}
}

// written changes the HTTP responses that are meant.
func written(meant func(c *call) bool, change func(c *call, h *httpReply)) seams {
	return seams{write: func(c *call, h *httpReply) {
		if meant(c) {
			change(c, h)
		}
	}}
}

// page makes a response one of another status and body; without a type it keeps its own.
func page(status int, contentType, body string) func(*call, *httpReply) {
	return func(_ *call, h *httpReply) {
		if h.status, h.body = status, []byte(body); contentType != "" {
			h.set("Content-Type", contentType)
		}
	}
}

// batched does something with every batch before its records; it may answer at once.
func batched(do func(c *call, b *batch)) seams { return seams{batch: do} }

// refused turns the batches that are meant down as a whole.
func refused(code int64, message string, meant func(b *batch) bool) seams {
	return batched(func(c *call, b *batch) {
		if meant(b) {
			c.fail(code, message)
		}
	})
}

// paged answers the batches that are meant with a page in place of a JSON-RPC error.
func paged(status int, contentType, body string, meant func(b *batch) bool) seams {
	return seams{
		batch: func(c *call, b *batch) {
			if meant(b) {
				c.refuse(status, rpc.CodeInternalError, body)
			}
		},
		// The message is how it knows its own refusal again.
		write: written(func(c *call) bool { return c.err != nil && c.err.Message == body }, page(status, contentType, body)).write,
	}
}

// shared is a map for parallel calls. The zero value is ready for use.
type shared[K comparable, V any] struct {
	mu   sync.Mutex
	kept map[K]V
}

type (
	byRun[V any]   = shared[int64, V] // a value for each sync run, or sync
	perCall[V any] = shared[*call, V] // one from a seam of a call to a later one
)

// change replaces a value and gives the new one.
func (m *shared[K, V]) change(key K, fn func(V) V) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[K]V{}
	}
	m.kept[key] = fn(m.kept[key])
	return m.kept[key]
}

func (m *shared[K, V]) set(key K, v V) { m.change(key, func(V) V { return v }) }

func (m *shared[K, V]) get(key K) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept[key]
}

// take gives a value and forgets it.
func (m *shared[K, V]) take(key K) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer delete(m.kept, key)
	return m.kept[key]
}

func (m *shared[K, V]) forget(key K) { m.take(key) }

func (m *shared[K, V]) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.kept)
}

// oneMore counts up.
func oneMore(n int) int { return n + 1 }
