package destsim

import (
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/destkit/destkit/destsim/rpc"
)

// httpViolations are broken HTTP exchanges (HTTP-*).
func httpViolations() []violation {
	all := httpStatusViolations()
	all = append(all, redirectViolations()...)
	all = append(all, framingViolations()...)
	all = append(all, requestFormViolations()...)
	return append(all, cacheViolation(), silentCloseViolation())
}

// written is a violation of the HTTP response that carries a result.
func written(id, changes, method string, change func(c *call, h *httpReply)) violation {
	return breaks(id, changes, seams{write: func(c *call, h *httpReply) {
		if gives(c, method) {
			change(c, h)
		}
	}})
}

// httpStatusViolations lie in the status or the label of a reply, or do not wait
// for the answer.
func httpStatusViolations() []violation {
	const speed = rpc.MethodGetSyncSpeed
	return []violation{
		written("HTTP-001", "get_sync_speed answers its result with status 404", speed, func(_ *call, h *httpReply) {
			h.status = http.StatusNotFound
		}),
		written("HTTP-002", "get_sync_speed is labelled text/html", speed, func(_ *call, h *httpReply) {
			h.set("Content-Type", "text/html; charset=utf-8")
		}),
		written("HTTP-002.2", "get_sync_speed has no Content-Type", speed, func(_ *call, h *httpReply) {
			h.header["Content-Type"] = nil // absent, net/http would guess one
		}),
		written("HTTP-003", "get_sync_speed answers 202 with an empty body", speed, func(_ *call, h *httpReply) {
			h.status, h.body = http.StatusAccepted, nil
		}),
		written("HTTP-003.2", `get_sync_speed answers 202 {"status":"accepted"} without an envelope`, speed, func(_ *call, h *httpReply) {
			h.status, h.body = http.StatusAccepted, []byte(`{"status":"accepted"}`)
		}),
		breaks("HTTP-010", `list_fields with missing or wrong params answers status 500 with the text "Internal Server Error"`,
			seams{write: func(c *call, h *httpReply) {
				if !wrongParams(c, rpc.MethodListFields) {
					return
				}
				if _, problem := objectName(c.params); problem != "" { // an object that is unknown is answered cleanly
					h.status, h.body = http.StatusInternalServerError, []byte("Internal Server Error\n")
					h.set("Content-Type", "text/plain; charset=utf-8")
				}
			}}),
	}
}

// redirectViolations send get_sync_speed to another path.
func redirectViolations() []violation {
	const suffix = "/redirected"
	redirect := func(id string, status int, changes string) violation {
		return written(id, changes, rpc.MethodGetSyncSpeed, func(c *call, h *httpReply) {
			path := c.r.URL.EscapedPath()
			if strings.HasSuffix(path, suffix) {
				return
			}
			at := strings.TrimSuffix(path, "/") + suffix
			if query := c.r.URL.RawQuery; query != "" {
				at += "?" + query
			}
			h.status, h.body = status, []byte("<html><body>Moved</body></html>\n")
			h.set("Location", at)
			h.set("Content-Type", "text/html; charset=utf-8")
		})
	}
	return []violation{
		redirect("HTTP-004", http.StatusMovedPermanently, `get_sync_speed answers 301 to its path with "/redirected" appended`),
		redirect("HTTP-004.2", http.StatusFound, `get_sync_speed answers 302 to its path with "/redirected" appended`),
		redirect("HTTP-004.3", http.StatusPermanentRedirect, `get_sync_speed answers 308 to its path with "/redirected" appended`),
	}
}

// framingViolations lie about the length or the coding of the body.
func framingViolations() []violation {
	label := func(coding string) func(*call, *httpReply) {
		return func(_ *call, h *httpReply) {
			h.coding = ""
			h.set("Content-Encoding", coding)
		}
	}
	return []violation{
		written("HTTP-006", "get_sync_speed announces a Content-Length that is 16 too long and closes the connection after the body",
			rpc.MethodGetSyncSpeed, func(_ *call, h *httpReply) { h.length = onWire(h) + 16 }),
		written("HTTP-006.2", "get_sync_speed sends half of the body with the right Content-Length and closes the connection",
			rpc.MethodGetSyncSpeed, func(_ *call, h *httpReply) { h.cut = onWire(h) / 2 }),
		written("HTTP-007", "list_objects is labelled gzip but plain", rpc.MethodListObjects, label("gzip")),
		written("HTTP-007.2", "list_objects is labelled br, which was not offered, and plain", rpc.MethodListObjects, label("br")),
	}
}

// onWire is the length of the body after content coding.
func onWire(h *httpReply) int {
	if h.coding == "" {
		return len(h.body)
	}
	return len(compress(h.coding, h.body))
}

// requestFormViolations run what is no POST, or refuse usual forms of one.
func requestFormViolations() []violation {
	refuse := func(id, changes string, status int, when func(r *http.Request) bool) violation {
		return breaks(id, changes, seams{http: func(c *call) bool {
			if !when(c.r) {
				return false
			}
			http.Error(c.w, http.StatusText(status), status)
			return true
		}})
	}
	return []violation{
		breaks("HTTP-005", "GET with ?method=NAME runs the method",
			seams{http: func(c *call) bool {
				q := c.r.URL.Query()
				if c.verb == http.MethodGet && q.Get("method") != "" {
					c.verb = http.MethodPost
					c.body = rpc.EncodeRequest(nil, q.Get("method"), []byte(q.Get("params")), q.Get("id"))
				}
				return false
			}}),
		refuse("HTTP-009", "a chunked request body is answered 411", http.StatusLengthRequired, func(r *http.Request) bool {
			return r.Method == http.MethodPost && slices.Contains(r.TransferEncoding, "chunked")
		}),
		refuse("HTTP-009.2", "a Content-Type with a charset is answered 415", http.StatusUnsupportedMediaType, func(r *http.Request) bool {
			_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
			return r.Method == http.MethodPost && err == nil && params["charset"] != ""
		}),
	}
}

// cacheViolation is HTTP-011.
func cacheViolation() violation {
	return keeps("HTTP-011", "from the second list_objects on the reply says Age: 31 and X-Cache: HIT", func(*Sim) seams {
		var calls atomic.Int64
		return seams{write: func(c *call, h *httpReply) {
			if gives(c, rpc.MethodListObjects) && calls.Add(1) > 1 {
				h.set("Age", "31")
				h.set("X-Cache", "HIT")
			}
		}}
	})
}
