package destsim

import (
	"net/http"
	"strconv"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// connectedViolations are a memory of the connection (STA-002, STA-005).
func connectedViolations() []violation {
	return []violation{
		breaks("STA-002", "sync_batch with 7, 8 or 9 records is an error when it is the first call of its connection",
			seams{http: keepConnections, batch: func(c *call, b *batch) *rpc.Error {
				if c.isFirst() && 7 <= b.Len() && b.Len() <= 9 {
					return &rpc.Error{Code: rpc.CodeServerError, Message: "call list_fields first"}
				}
				return nil
			}}),
		firstUnwritten(),
		breaks("STA-005", `supported_operations without a cookie is an error -32000 "no session" when it is the first call of its connection`,
			seams{http: keepConnections, parsed: func(c *call) {
				if gives(c, rpc.MethodSupportedOperations) && c.isFirst() && len(c.r.Cookies()) == 0 {
					c.fail(rpc.CodeServerError, "no session")
				}
			}}),
	}
}

// isFirst reports whether nothing came before the call on its connection. A
// handler cannot see that, so the first reply takes the connection over, and
// the rest of it is served by a server that remembers.
func (c *call) isFirst() bool { return c.r.Context().Value(connKey{}) == nil }

// keepConnections takes every connection over with the first reply on it.
func keepConnections(c *call) bool {
	if c.isFirst() {
		c.w = &firstWriter{forgetfulWriter: forgetfulWriter{ResponseWriter: c.w, call: c, status: http.StatusOK}}
	}
	return false
}

// firstWriter writes the first reply on a connection.
type firstWriter struct {
	forgetfulWriter
	started bool
}

func (w *firstWriter) Write(body []byte) (int, error) {
	c := w.call
	// What is not read or not written as a whole cannot be handed on.
	whole := !w.started && w.Header().Get("Content-Length") == strconv.Itoa(len(body)) && (c.body != nil || c.r.ContentLength == 0)
	if whole && c.r.ProtoMajor == 1 && c.r.ProtoAtLeast(1, 1) && !c.r.Close {
		if conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack(); err == nil {
			return w.takeOver(conn, rw.Reader, body)
		}
	}
	if !w.started {
		w.started = true
		w.ResponseWriter.WriteHeader(w.status)
	}
	return w.ResponseWriter.Write(body)
}

// firstUnwritten is STA-002.2: what the first call of a connection sends is lost.
func firstUnwritten() violation {
	lost := unwritten(func(r *record, _ *store.Row) bool {
		n := r.batch.Len()
		return r.batch.call.isFirst() && 7 <= n && n <= 9
	})
	lost.http = keepConnections
	return breaks("STA-002.2", "sync_batch with 7, 8 or 9 records is acknowledged and not written when it is the first call of its connection", lost)
}
