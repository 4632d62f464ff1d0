package destsim

import (
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
)

// httpViolations are broken HTTP exchanges (HTTP-*).
var httpViolations = []violation{
	breaks("HTTP-001", "get_sync_speed answers its result with status 404", written(speedReply, func(_ *call, h *httpReply) { h.status = http.StatusNotFound })),
	breaks("HTTP-002", "get_sync_speed is labelled text/html",
		written(speedReply, func(_ *call, h *httpReply) { h.set("Content-Type", "text/html; charset=utf-8") })),
	breaks("HTTP-002.2", "get_sync_speed has no Content-Type", written(speedReply, func(_ *call, h *httpReply) {
		h.header["Content-Type"] = nil // absent, net/http would guess one
	})),
	breaks("HTTP-003", "get_sync_speed answers 202 with an empty body", written(speedReply, page(http.StatusAccepted, "", ""))),
	breaks("HTTP-003.2", `get_sync_speed answers 202 {"status":"accepted"} without an envelope`,
		written(speedReply, page(http.StatusAccepted, "", `{"status":"accepted"}`))),
	breaks("HTTP-010", `list_fields with missing or wrong params answers status 500 with the text "Internal Server Error"`,
		written(func(c *call) bool {
			_, problem := objectName(c.params)
			return wrongParams(c, rpc.MethodListFields) && problem != "" // an object that is unknown is answered cleanly
		}, page(http.StatusInternalServerError, "text/plain; charset=utf-8", "Internal Server Error\n"))),

	redirects("HTTP-004", http.StatusMovedPermanently, `get_sync_speed answers 301 to its path with "/redirected" appended`),
	redirects("HTTP-004.2", http.StatusFound, `get_sync_speed answers 302 to its path with "/redirected" appended`),
	redirects("HTTP-004.3", http.StatusPermanentRedirect, `get_sync_speed answers 308 to its path with "/redirected" appended`),

	breaks("HTTP-006", "get_sync_speed announces a Content-Length that is 16 too long and closes the connection after the body",
		written(speedReply, func(_ *call, h *httpReply) { h.length = onWire(h) + 16 })),
	breaks("HTTP-006.2", "get_sync_speed sends half of the body with the right Content-Length and closes the connection",
		written(speedReply, func(_ *call, h *httpReply) { h.cut = onWire(h) / 2 })),
	breaks("HTTP-007", "list_objects is labelled gzip but plain", labelled("gzip")),
	breaks("HTTP-007.2", "list_objects is labelled br, which was not offered, and plain", labelled("br")),

	breaks("HTTP-005", "GET with ?method=NAME runs the method", seams{http: func(c *call) bool {
		q := c.r.URL.Query()
		if c.verb == http.MethodGet && q.Get("method") != "" {
			c.verb = http.MethodPost
			c.body = rpc.EncodeRequest(nil, q.Get("method"), []byte(q.Get("params")), q.Get("id"))
		}
		return false
	}}),
	breaks("HTTP-009", "a chunked request body is answered 411",
		unread(http.StatusLengthRequired, func(r *http.Request) bool { return slices.Contains(r.TransferEncoding, "chunked") })),
	breaks("HTTP-009.2", "a Content-Type with a charset is answered 415", unread(http.StatusUnsupportedMediaType, func(r *http.Request) bool {
		_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		return err == nil && params["charset"] != ""
	})),
	counts("HTTP-011", "from the second list_objects on the reply says Age: 31 and X-Cache: HIT", func(next func() int64) seams {
		return written(objectsReply, func(_ *call, h *httpReply) {
			if next() > 1 {
				h.set("Age", "31")
				h.set("X-Cache", "HIT")
			}
		})
	}),
	keeps("HTTP-008", "a list_objects that follows a list_objects on the same connection is cut off without a response", func() seams {
		var known connections
		return seams{write: func(c *call, h *httpReply) {
			at, listing := known.of(c), gives(c, rpc.MethodListObjects) && ordinary(c.r)
			if at.listed && listing {
				unanswered(c, h)
			}
			at.listed = listing
		}}
	}),
}

// redirects sends get_sync_speed to another path.
func redirects(id string, status int, changes string) violation {
	const suffix = "/redirected"
	return breaks(id, changes, written(speedReply, func(c *call, h *httpReply) {
		path := c.r.URL.EscapedPath()
		if strings.HasSuffix(path, suffix) {
			return
		}
		at := strings.TrimSuffix(path, "/") + suffix
		if query := c.r.URL.RawQuery; query != "" {
			at += "?" + query
		}
		page(status, "text/html; charset=utf-8", "<html><body>Moved</body></html>\n")(c, h)
		h.set("Location", at)
	}))
}

// labelled gives list_objects a coding that its body does not have.
func labelled(coding string) seams {
	return written(objectsReply, func(_ *call, h *httpReply) {
		h.coding = ""
		h.set("Content-Encoding", coding)
	})
}

// onWire is the length of the body after content coding.
func onWire(h *httpReply) int {
	if h.coding == "" {
		return len(h.body)
	}
	return len(compress(h.coding, h.body))
}

// unread refuses a usual form of a POST before its body is read.
func unread(status int, when func(r *http.Request) bool) seams {
	return seams{http: func(c *call) bool {
		if c.r.Method != http.MethodPost || !when(c.r) {
			return false
		}
		http.Error(c.w, http.StatusText(status), status)
		return true
	}}
}

// ordinary reports whether a request has the form that the service sends. Chunked
// bodies, charsets and Expect are a separate rule.
func ordinary(r *http.Request) bool {
	return r.ContentLength >= 0 && r.Header.Get("Expect") == "" && !strings.Contains(r.Header.Get("Content-Type"), ";")
}

// connection is what a violation remembers of a connection. Calls on one HTTP/1.1
// connection follow one another, so it needs no lock.
type connection struct {
	calls   int
	listed  bool   // the last call was a list_objects (HTTP-008)
	spoiled []byte // the reply to a body that was no JSON text (ERR-002)
}

// connections identifies connections, which a handler does not know: the address of
// the peer need not be unique, but net/http passes on each connection's own address
// value. The zero value is ready for use.
type connections struct {
	mu    sync.Mutex
	known map[any]*connection
}

// connectionsKept bounds the memory of ended connections.
const connectionsKept = 10_000

// of gives the connection of a call; where none is known, the call is alone on one.
func (k *connections) of(c *call) *connection {
	key := c.r.Context().Value(http.LocalAddrContextKey)
	if key == nil {
		return &connection{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || len(k.known) >= connectionsKept {
		k.known = map[any]*connection{}
	}
	if k.known[key] == nil {
		k.known[key] = &connection{}
	}
	return k.known[key]
}

// atFirst lets the seams know whether nothing came before a call on its connection.
func atFirst(s func(first func(c *call) bool) seams) func() seams {
	return func() seams {
		var known connections
		armed := s(func(c *call) bool { return known.of(c).calls < 2 })
		armed.http = func(c *call) bool {
			known.of(c).calls++
			return false
		}
		return armed
	}
}

// authViolations are broken checks of the token and the URL secret (AUTH-*): they let
// the wrong callers in, keep the right one out, or refuse in the wrong way.
var authViolations = []violation{
	breaks("AUTH-001", "list_fields with the right credentials answers 401 with an error envelope",
		seams{auth: func(c *call, allowed bool) bool { return allowed && c.method != rpc.MethodListFields }}),
	breaks("AUTH-002", "a missing Authorization header is refused on test_connection only", admits(func(c *call) bool {
		return c.method != rpc.MethodTestConnection && lacksToken(c) && secretRight(c)
	}), Also{"AUTH-008", "a batch without a token is executed"}),
	breaks("AUTH-003", "a token that begins with the right token is accepted",
		admits(func(c *call) bool { return strings.HasPrefix(bearer(c), *c.sim.token.Load()) && secretRight(c) })),
	breaks("AUTH-003.2", "the token is compared without case",
		admits(func(c *call) bool { return strings.EqualFold(bearer(c), *c.sim.token.Load()) && secretRight(c) })),
	breaks("AUTH-004", "the secret in the query of the URL is ignored",
		admits(func(c *call) bool { return c.sim.config.URLSecret.Query != "" && tokenRight(c) })),
	breaks("AUTH-004.2", "the secret in the path of the URL is ignored",
		admits(func(c *call) bool { return c.sim.config.URLSecret.Path != nil && tokenRight(c) })),
	breaks("AUTH-005", "of a repeated secret parameter in the URL the last value counts", admits(func(c *call) bool {
		secret := c.sim.config.URLSecret
		values := c.r.URL.Query()[secret.Query]
		return secret.Query != "" && len(values) > 1 && same(values[len(values)-1], secret.Value) && tokenRight(c)
	})),
	breaks("AUTH-009", "after a rotation the old token is still accepted",
		admits(func(c *call) bool {
			return tokenMatches(c.sim.config.Token, c.r.Header["Authorization"]) && secretRight(c)
		})),
	breaks("AUTH-006", `every method without credentials answers status 200 and "result":{"success":false}`,
		answered(func(c *call) bool { return c.denied && lacksToken(c) }, func(c *call) {
			c.answer(connectionResult{})
			c.status = 200
			c.reply.header.Del("WWW-Authenticate")
		})),
	breaks("AUTH-007", "the message of a refusal because of a wrong token contains the Authorization header that was sent",
		answered(func(c *call) bool { return c.denied && c.err != nil && !tokenRight(c) }, func(c *call) {
			if sent := c.r.Header["Authorization"]; len(sent) > 0 {
				c.err.Message = "authentication failed: bad header: Authorization: " + strings.Join(sent, ", ")
			}
		})),
	breaks("AUTH-008", "a sync_batch without or with wrong credentials is executed and then answered 401", seams{
		auth:     func(c *call, allowed bool) bool { return allowed || c.method == rpc.MethodSyncBatch },
		answered: called(func(c *call) bool { return c.denied && c.method == rpc.MethodSyncBatch }, (*call).refuseAccess).parsed,
	}),
}

// admits lets a call in that the clean destination refuses, when more returns true.
func admits(more func(c *call) bool) seams {
	return seams{auth: func(c *call, allowed bool) bool { return allowed || more(c) }}
}

// lacksToken reports whether a token is required and no header came.
func lacksToken(c *call) bool {
	return *c.sim.token.Load() != "" && len(c.r.Header["Authorization"]) == 0
}

// tokenRight and secretRight are the two halves of the clean decision: a
// violation of one of them keeps the other.
func tokenRight(c *call) bool {
	return tokenMatches(*c.sim.token.Load(), c.r.Header["Authorization"])
}

func secretRight(c *call) bool { return c.sim.config.URLSecret.matches(c.r.URL) }

// bearer is the token of the only Authorization header, "" for anything else.
func bearer(c *call) string {
	sent := c.r.Header["Authorization"]
	if len(sent) != 1 || !strings.HasPrefix(sent[0], "Bearer ") {
		return ""
	}
	return strings.TrimPrefix(sent[0], "Bearer ")
}

// connectionViolations are test_connection and list_objects answered wrongly (CON-*).
var connectionViolations = []violation{
	breaks("CON-001", "test_connection answers {}", healthy(struct{}{})),
	breaks("CON-001.2", `test_connection answers "success":"true"`, healthy(map[string]string{"success": "true"})),
	breaks("CON-001.3", `test_connection answers "success":1`, healthy(map[string]int{"success": 1})),
	breaks("CON-002", "test_connection answers success while the downstream is broken",
		planned(func(*call, connectionResult) any { return connectionResult{Success: true} })),
	counts("CON-003", "every third test_connection fails as already connected", func(next func() int64) seams {
		return planned(func(_ *call, v connectionResult) any {
			if next()%3 == 0 {
				return connectionResult{ErrorMessage: "already connected"}
			}
			return v
		})
	}),
	breaks("CON-004", "test_connection with params {} answers an error -32602", refusesEmpty(rpc.MethodTestConnection)),
	breaks("CON-005", "list_objects with params {} answers an error -32602", refusesEmpty(rpc.MethodListObjects)),
}

// healthy gives test_connection another result where it is a success: a fault of the
// downstream is still reported.
func healthy(result any) seams {
	return planned(func(_ *call, v connectionResult) any {
		if v.Success {
			return result
		}
		return v
	})
}

// refusesEmpty refuses a method with params {}.
func refusesEmpty(method string) seams {
	return called(func(c *call) bool { return gives(c, method) && len(membersOf(c.params)) == 0 },
		func(c *call) { c.fail(rpc.CodeInvalidParams, "invalid params: a parameter is missing") })
}

// tlsViolations are broken certificates, old TLS versions and plain http
// (TLS-*). A handler sees nothing of TLS: they only name what the listener of
// the program shall do, see Sim.TLSViolation.
var tlsViolations = []violation{
	breaks("TLS-001", "the endpoint is served over plain http although TLS was asked for", seams{tls: "TLS-001"}),
	breaks("TLS-002", "the certificate is self-signed", seams{tls: "TLS-002"}),
	breaks("TLS-003", "the certificate names another host", seams{tls: "TLS-003"}),
	breaks("TLS-003.2", "the certificate of a default virtual host is served, whatever name the client asks for", seams{tls: "TLS-003.2"}),
	breaks("TLS-004", "the certificate expired yesterday", seams{tls: "TLS-004"}),
	breaks("TLS-004.2", "the certificate becomes valid tomorrow", seams{tls: "TLS-004.2"}),
	breaks("TLS-005", "only the leaf is sent, without the intermediate certificate", seams{tls: "TLS-005"}),
	breaks("TLS-006", "only TLS 1.0 is offered", seams{tls: "TLS-006"}),
	breaks("TLS-006.2", "the certificate has an RSA key of 1024 bits", seams{tls: "TLS-006.2"}),
	breaks("TLS-007", "plain http on the same port executes calls", seams{tls: "TLS-007"}),
	breaks("TLS-009", "the certificate has 3 days left", seams{tls: "TLS-009"}),
}
