package control

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/statelock"
)

// APIParts are what an API is made of.
type APIParts struct {
	Log   *slog.Logger
	Lock  *statelock.Lock
	Token string // "": open on loopback alone
	// Held are the routes whose handlers hold the lock of the state; Free those that take
	// it themselves.
	Held, Free []call.ControlRoute
	Metrics    http.Handler
	Profile    http.Handler // nil: no profiles
}

// API is the control API of a service.
type API struct {
	APIParts
	routes  []call.ControlRoute // all, below the path of the API
	handler *http.ServeMux      // behind the guard
}

// TakesBody are the routes of the control API that read a body. All others refuse
// one: a body there was meant for something else.
var TakesBody = map[string]bool{
	"POST /audit": true, "POST /clock": true, "POST /connectors": true, "POST /faults": true,
	"POST /invitations/{id}/claim": true, "POST /journal": true, "POST /organizations": true, "POST /restore": true,
	"POST /seed": true, "POST /sources/{id}/execute": true, "POST /syncs/{id}/plan": true, "POST /topics/{id}/messages": true,
	"PATCH /topics/{id}": true, "POST /triggers/dbt_cloud": true, "POST /triggers/fivetran": true, "POST /trust": true,
	"PATCH /users/{id}": true, "POST /workspace_invitations/{id}/claim": true,
}

// NewAPI assembles the API.
func NewAPI(p APIParts) *API {
	// A separate mux: the guard is before all of it, also before its 404 and
	// 405.
	a := &API{APIParts: p, handler: http.NewServeMux()}
	a.register([]call.ControlRoute{call.Route("GET", "", "lists these routes", a.index)}, a.hold)
	a.register(p.Held, a.hold)
	a.register(p.Free, a.serve)
	a.handler.Handle("GET "+call.ControlPath+"/metrics", p.Metrics)
	a.routes = append(a.routes, call.ControlRoute{Method: "GET", Path: "/metrics", Does: "figures for Prometheus, also at /metrics"})
	if p.Profile != nil {
		// Past hold: a profile takes seconds, and holds nothing up.
		a.handler.Handle("GET "+call.ControlPath+"/pprof", p.Profile)
		a.handler.Handle("GET "+call.ControlPath+"/pprof/", p.Profile)
		a.routes = append(a.routes, call.ControlRoute{Method: "GET", Path: "/pprof/", Does: "profiles of this process for go tool pprof, also below it: profile, heap, goroutine, trace …"})
	}
	a.handler.HandleFunc("/", a.refuse)
	return a
}

// register puts routes onto the mux and into the index.
func (a *API) register(routes []call.ControlRoute, serve func(http.ResponseWriter, *http.Request, call.ControlHandler)) {
	for _, route := range routes {
		path := call.ControlPath + route.Path
		handle := func(w http.ResponseWriter, r *http.Request) { serve(w, r, route.Handle) }
		if !TakesBody[route.Method+" "+route.Path] {
			handle = call.WithoutBody(handle)
		}
		a.handler.HandleFunc(route.Method+" "+path, handle)
		a.handler.HandleFunc(route.Method+" "+path+"/{$}", handle)
		a.routes = append(a.routes, route)
	}
}

// Routes are all routes that take a handler, by their paths below that of the API.
func (a *API) Routes() []call.ControlRoute {
	return slices.DeleteFunc(slices.Clone(a.routes), func(r call.ControlRoute) bool { return r.Handle == nil })
}

// Handler is the API without its guard, for calls within the process.
func (a *API) Handler() http.Handler { return a.handler }

// Route puts the guarded API onto a mux.
func (a *API) Route(mux *http.ServeMux) {
	guarded := a.Guard(a.handler)
	mux.Handle(call.ControlPath, guarded)
	mux.Handle(call.ControlPath+"/", guarded)
}

// refuse answers where there is no route.
func (a *API) refuse(w http.ResponseWriter, r *http.Request) {
	f := problem.Refuse(http.StatusNotFound, "there is nothing at this path; GET %s lists the routes", call.ControlPath)
	if allowed := call.AllowedMethods(a.handler, r); allowed != "" {
		f = call.WrongMethod(r, allowed)
		w.Header().Set("Allow", allowed)
	}
	call.WriteControl(w, 0, nil, f)
}

// index shows every route with its line, so that curl alone is enough to find one's way.
func (a *API) index(*call.Control) (any, error) {
	shown := slices.Clone(a.routes)
	for i := range shown {
		shown[i].Path = call.ControlPath + shown[i].Path
	}
	return map[string]any{"routes": shown}, nil
}

// hold runs one handler with the lock of the state. As with calls of the API,
// the body is read before, and the answer written after that.
func (a *API) hold(w http.ResponseWriter, r *http.Request, handle call.ControlHandler) {
	var text []byte
	var err error
	call.Patiently(w, r, func() { text, err = io.ReadAll(http.MaxBytesReader(w, r.Body, call.MaxControlBody)) })
	if err != nil {
		call.WriteControl(w, 0, nil, call.Unreadable(err))
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	a.serve(w, r, func(c *call.Control) (any, error) {
		hold := a.Lock.Enter(c.R.Context())
		defer hold.Leave()
		c.R = c.R.WithContext(hold.Ctx)
		value, err := handle(c)
		return value, hold.Failure(err)
	})
}

// serve runs one handler and writes its answer.
func (a *API) serve(w http.ResponseWriter, r *http.Request, handle call.ControlHandler) {
	value, err := call.Survive(handle, &call.Control{W: w, R: r})
	if err == nil && value == nil {
		return
	}
	code := http.StatusOK
	if other, ok := value.(call.ControlReply); ok {
		code, value = other.Code, other.Body
	}
	if err != nil && problem.Of(err).Code >= http.StatusInternalServerError {
		a.Log.Error("control call failed", "path", r.URL.Path, "error", err)
	}
	call.WriteControl(w, code, value, err)
}

// Guard lets in who has the control token, and who calls from this machine and
// is no page in a browser.
func (a *API) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.admit(r); err != nil {
			call.WriteControl(w, 0, nil, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admit returns why a call may not use the control API. The service's own calls
// never may, whatever token they carry: who may use the API has chosen their
// address. A service with a control token requires it of every caller. Without
// one the caller must be on loopback, must not come through a proxy, must have
// used a name of loopback (a page of another site that resolves its own name to
// 127.0.0.1 has not), and must not be a page of another origin.
func (a *API) admit(r *http.Request) error {
	if reach.OwnOrigin(r) {
		return problem.Refuse(http.StatusForbidden, "%v", reach.ErrOutbound)
	}
	if token := a.Token; token != "" {
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case r.Header.Get("Authorization") == "":
			return problem.Refuse(http.StatusUnauthorized, "this service has a control token; send it as Authorization: Bearer")
		case subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1:
			return problem.Refuse(http.StatusUnauthorized, "the control token is wrong")
		}
		return nil
	}
	err := reach.AdmitLoopback(r)
	if errors.Is(err, reach.ErrPeer) {
		return problem.Refuse(http.StatusForbidden, "the control API is open on loopback only; start the service with a control token and send it as Authorization: Bearer")
	} else if err != nil {
		return problem.Refuse(http.StatusForbidden, "%v; or use a control token", err)
	}
	return nil
}
