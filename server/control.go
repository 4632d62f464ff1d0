package server

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/loopback"
	"github.com/destkit/destkit/server/internal/dialect"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/strictjson"
)

// controlPath is where everything stands that an emulation needs beside the API.
const controlPath = "/_control"

// controlRoute is one route of the control API with the line that GET /_control
// shows for it.
type controlRoute struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Does   string `json:"does"`
	handle controlHandler
}

// controlHandler answers a control call. The answer is a 200 with the value as
// JSON, a controlReply for another status, or nil when the handler has written
// everything itself.
type controlHandler func(*controlCall) (any, error)

// controlReply is an answer with a status of its own.
type controlReply struct {
	code int
	body any
}

// controlCall is one call of the control API.
type controlCall struct {
	s *Server
	w http.ResponseWriter
	r *http.Request
}

// controlRoutes are the routes of the control API but those that concern the
// world as a whole.
func (s *Server) controlRoutes() []controlRoute {
	return slices.Concat(
		[]controlRoute{{"GET", "", "lists these routes", s.controlIndex}},
		s.organizationRoutes(), s.userRoutes(), s.connectorRoutes(), s.clockRoutes(), s.fleetRoutes(), s.journalRoutes(), s.faultRoutes(),
		s.mailboxRoutes(), s.deliveryRoutes(), s.topicRoutes(), s.triggerRoutes(), s.dataRoutes(), s.explainRoutes(), s.dryRunRoutes(), s.auditRoutes(),
		[]controlRoute{
			{"POST", "/trust", "body: certificates as PEM; destinations may be signed by them from now on", s.controlTrust},
			{"GET", "/fidelity", "?state=&section= lists the rules of the specification with their proofs", s.controlFidelity},
		},
	)
}

// routeControl puts the control API and the forks onto the mux.
func (s *Server) routeControl(mux *http.ServeMux) {
	// A mux of its own: the guard stands before all of it, also before its 404
	// and 405.
	inner := http.NewServeMux()
	register := func(routes []controlRoute, serve func(http.ResponseWriter, *http.Request, controlHandler)) {
		for _, route := range routes {
			path := controlPath + route.Path
			handle := func(w http.ResponseWriter, r *http.Request) { serve(w, r, route.handle) }
			if !takesBody[route.Method+" "+route.Path] {
				handle = withoutBody(handle)
			}
			inner.HandleFunc(route.Method+" "+path, handle)
			inner.HandleFunc(route.Method+" "+path+"/{$}", handle)
		}
	}
	register(s.controlRoutes(), s.controlWorld)
	// These take the world for themselves.
	register(s.worldRoutes(), s.control)
	inner.Handle("GET "+controlPath+"/metrics", s.figures.scrape)
	if s.config.Profile != nil {
		// Not through controlWorld: a profile takes seconds, and holds nothing up.
		inner.Handle("GET "+controlPath+"/pprof", s.config.Profile)
		inner.Handle("GET "+controlPath+"/pprof/", s.config.Profile)
	}
	inner.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		f := problem.Refuse(http.StatusNotFound, "there is nothing at this path; GET %s lists the routes", controlPath)
		if allowed := allowedMethods(inner, r); allowed != "" {
			f = wrongMethod(r, allowed)
			w.Header().Set("Allow", allowed)
		}
		writeControl(w, 0, nil, f)
	})
	guarded := s.guard(inner)
	mux.Handle(controlPath, guarded)
	mux.Handle(controlPath+"/", guarded)
	mux.HandleFunc(forksPath, s.serveFork)
}

// controlWorld runs one handler with the world held. As with calls of the API,
// the body is read before, and the answer written after that.
func (s *Server) controlWorld(w http.ResponseWriter, r *http.Request, handle controlHandler) {
	var text []byte
	var err error
	patiently(w, r, func() { text, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxControlBody)) })
	if err != nil {
		writeControl(w, 0, nil, unreadable(err))
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	s.control(w, r, func(c *controlCall) (any, error) {
		s.world.RLock()
		defer s.world.RUnlock()
		c.r = c.r.WithContext(holding(c.r.Context()))
		return handle(c)
	})
}

// control runs one handler and writes its answer.
func (s *Server) control(w http.ResponseWriter, r *http.Request, handle controlHandler) {
	value, err := survive(handle, &controlCall{s: s, w: w, r: r})
	if err == nil && value == nil {
		return
	}
	code := http.StatusOK
	if other, ok := value.(controlReply); ok {
		code, value = other.code, other.body
	}
	if err != nil && problem.Of(err).Code >= http.StatusInternalServerError {
		s.log.Error("control call failed", "path", r.URL.Path, "error", err)
	}
	writeControl(w, code, value, err)
}

// survive turns a panic of a handler into an error: a test gets an answer that
// points to the log.
func survive(handle controlHandler, c *controlCall) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return handle(c)
}

// writeControl writes a value, or an error in the one shape of all control
// errors, which is that of the API's spec dialect.
func writeControl(w http.ResponseWriter, code int, value any, err error) {
	if err != nil {
		f := problem.Of(err)
		code, value = f.Code, dialect.Switches{}.Failure(f)
		if f.Retry != "" {
			w.Header().Set("Retry-After", f.Retry)
		}
	}
	text, err := strictjson.Encode(value)
	if err != nil {
		code, text = http.StatusInternalServerError, []byte(`{"status":"error","message":"the answer cannot be written","errors":[]}`+"\n")
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store") // answers hold tokens
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

// guard lets in who has the control token, and who calls from this machine and
// is no page in a browser.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.admit(r); err != nil {
			writeControl(w, 0, nil, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admit says why a call may not use the control API. The service's own calls
// never may, whatever token they carry: who may use the API has chosen their
// address. A service with a control token wants it from everybody. Without one
// the caller must be on loopback, must not come through a proxy, must have used a
// name of loopback (a page of another site that resolves its own name to
// 127.0.0.1 has not), and must not be a page of another origin.
func (s *Server) admit(r *http.Request) error {
	if loopback.Own(r) {
		return problem.Refuse(http.StatusForbidden, "%v", loopback.ErrOutbound)
	}
	if token := s.config.ControlToken; token != "" {
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case r.Header.Get("Authorization") == "":
			return problem.Refuse(http.StatusUnauthorized, "this service has a control token; send it as Authorization: Bearer")
		case subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1:
			return problem.Refuse(http.StatusUnauthorized, "the control token is wrong")
		}
		return nil
	}
	err := loopback.Admit(r)
	if errors.Is(err, loopback.ErrPeer) {
		return problem.Refuse(http.StatusForbidden, "the control API is open on loopback only; start the service with a control token and send it as Authorization: Bearer")
	} else if err != nil {
		return problem.Refuse(http.StatusForbidden, "%v; or use a control token", err)
	}
	return nil
}

// controlIndex shows every route with its line, so that curl alone is enough to
// find one's way.
func (s *Server) controlIndex(*controlCall) (any, error) {
	routes := append(s.controlRoutes(), s.worldRoutes()...)
	for i := range routes {
		routes[i].Path = controlPath + routes[i].Path
	}
	routes = append(routes, controlRoute{Method: "GET", Path: controlPath + "/metrics", Does: "figures for Prometheus, also at /metrics"})
	if s.config.Profile != nil {
		routes = append(routes, controlRoute{Method: "GET", Path: controlPath + "/pprof/", Does: "profiles of this process for go tool pprof, also below it: profile, heap, goroutine, trace …"})
	}
	return map[string]any{"routes": routes}, nil
}

// controlFidelity lists rules by their state, for those who decide how far to
// rely on the emulation.
func (s *Server) controlFidelity(c *controlCall) (any, error) {
	query, err := c.query("state", "section")
	if err != nil {
		return nil, err
	}
	rows, err := chooseFidelity(query)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, state := range fidelityStates {
		counts[state] = 0
	}
	for _, row := range rows {
		counts[row.State]++
	}
	return map[string]any{"rows": rows, "total": len(rows), "states": counts}, nil
}

// id is the id of the path; ids that are no number do not exist.
func (c *controlCall) id() int64 { return (&call{r: c.r}).id("id") }

// done is what a handler answers that has nothing to tell.
var done = map[string]string{"status": "success"}

// gone says that a thing of the path does not exist.
func gone(kind string, id any) error {
	return problem.Refuse(http.StatusNotFound, "there is no %s %v", kind, fmt.Sprint(id))
}
