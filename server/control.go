package server

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/loopback"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/cluster/chronicle"
	"github.com/destkit/destkit/server/internal/connectors"
	"github.com/destkit/destkit/server/internal/destinations"
	"github.com/destkit/destkit/server/internal/faults"
	"github.com/destkit/destkit/server/internal/fidelity"
	"github.com/destkit/destkit/server/internal/forks"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/latch"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/settings"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/trust"
)

// controlRoutes are the routes of the control API but those that concern the
// world as a whole.
func (s *Server) controlRoutes() []call.ControlRoute {
	return slices.Concat(
		[]call.ControlRoute{call.Route("GET", "", "lists these routes", s.controlIndex)},
		s.controls.Organizations(),
		s.controls.People(), s.declared.Routes(), s.timing.Routes(), s.member.Routes(), s.journal.Routes(), s.faults.Routes(),
		s.lifecycle.Routes(), s.controls.Data(), s.inspect.Routes(),
		[]call.ControlRoute{
			call.Route("GET", "/seed", "what is here as a seed, without secrets", s.seeds.Export),
		},
		s.trust.Routes(),
		fidelity.Routes(),
	)
}

// worldRoutes are those that take the world for themselves, and so must not
// hold it already.
func (s *Server) worldRoutes() []call.ControlRoute {
	return slices.Concat(
		[]call.ControlRoute{
			call.Route("POST", "/reset", "takes the service back to its first organization; journals, faults and mailbox are emptied, the clock runs on", s.controlReset),
			call.Route("POST", "/seed", "body: a seed as YAML; makes all of it or nothing", s.seeds.Post),
		},
		s.snapshots.Routes(), s.forks.Routes(),
	)
}

// takesBody are the routes of the control API that read a body. All others refuse
// one: what is sent there was meant for something else.
var takesBody = map[string]bool{
	"POST /audit": true, "POST /clock": true, "POST /connectors": true, "POST /faults": true, "POST /fork": true,
	"POST /invitations/{id}/claim": true, "POST /journal": true, "POST /organizations": true, "POST /restore": true,
	"POST /seed": true, "POST /sources/{id}/execute": true, "POST /syncs/{id}/plan": true, "POST /topics/{id}/messages": true,
	"PATCH /topics/{id}": true, "POST /triggers/dbt_cloud": true, "POST /triggers/fivetran": true, "POST /trust": true,
	"PATCH /users/{id}": true, "POST /workspace_invitations/{id}/claim": true,
}

// routeControl puts the control API and the forks onto the mux.
func (s *Server) routeControl(mux *http.ServeMux) {
	// A mux of its own: the guard stands before all of it, also before its 404
	// and 405.
	inner := http.NewServeMux()
	register := func(routes []call.ControlRoute, serve func(http.ResponseWriter, *http.Request, call.ControlHandler)) {
		for _, route := range routes {
			path := call.ControlPath + route.Path
			handle := func(w http.ResponseWriter, r *http.Request) { serve(w, r, route.Handle) }
			if !takesBody[route.Method+" "+route.Path] {
				handle = call.WithoutBody(handle)
			}
			inner.HandleFunc(route.Method+" "+path, handle)
			inner.HandleFunc(route.Method+" "+path+"/{$}", handle)
		}
	}
	register(s.controlRoutes(), s.controlWorld)
	// These take the world for themselves.
	register(s.worldRoutes(), s.control)
	inner.Handle("GET "+call.ControlPath+"/metrics", s.metrics.Handler())
	if s.config.Profile != nil {
		// Not through controlWorld: a profile takes seconds, and holds nothing up.
		inner.Handle("GET "+call.ControlPath+"/pprof", s.config.Profile)
		inner.Handle("GET "+call.ControlPath+"/pprof/", s.config.Profile)
	}
	inner.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		f := problem.Refuse(http.StatusNotFound, "there is nothing at this path; GET %s lists the routes", call.ControlPath)
		if allowed := call.AllowedMethods(inner, r); allowed != "" {
			f = call.WrongMethod(r, allowed)
			w.Header().Set("Allow", allowed)
		}
		call.WriteControl(w, 0, nil, f)
	})
	guarded := s.guard(inner)
	s.routeConsole(mux, inner)
	mux.Handle(call.ControlPath, guarded)
	mux.Handle(call.ControlPath+"/", guarded)
	mux.Handle(forks.Path, s.forks)
}

// controlWorld runs one handler with the world held. As with calls of the API,
// the body is read before, and the answer written after that.
func (s *Server) controlWorld(w http.ResponseWriter, r *http.Request, handle call.ControlHandler) {
	var text []byte
	var err error
	call.Patiently(w, r, func() { text, err = io.ReadAll(http.MaxBytesReader(w, r.Body, call.MaxControlBody)) })
	if err != nil {
		call.WriteControl(w, 0, nil, call.Unreadable(err))
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	s.control(w, r, func(c *call.Control) (any, error) {
		s.latch.State.RLock()
		defer s.latch.State.RUnlock()
		c.R = c.R.WithContext(latch.Holding(c.R.Context()))
		return handle(c)
	})
}

// control runs one handler and writes its answer.
func (s *Server) control(w http.ResponseWriter, r *http.Request, handle call.ControlHandler) {
	value, err := call.Survive(handle, &call.Control{W: w, R: r})
	if err == nil && value == nil {
		return
	}
	code := http.StatusOK
	if other, ok := value.(call.ControlReply); ok {
		code, value = other.Code, other.Body
	}
	if err != nil && problem.Of(err).Code >= http.StatusInternalServerError {
		s.log.Error("control call failed", "path", r.URL.Path, "error", err)
	}
	call.WriteControl(w, code, value, err)
}

// guard lets in who has the control token, and who calls from this machine and
// is no page in a browser.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.admit(r); err != nil {
			call.WriteControl(w, 0, nil, err)
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
func (s *Server) controlIndex(*call.Control) (any, error) {
	routes := append(s.controlRoutes(), s.worldRoutes()...)
	for i := range routes {
		routes[i].Path = call.ControlPath + routes[i].Path
	}
	routes = append(routes, call.ControlRoute{Method: "GET", Path: call.ControlPath + "/metrics", Does: "figures for Prometheus, also at /metrics"})
	if s.config.Profile != nil {
		routes = append(routes, call.ControlRoute{Method: "GET", Path: call.ControlPath + "/pprof/", Does: "profiles of this process for go tool pprof, also below it: profile, heap, goroutine, trace …"})
	}
	return map[string]any{"routes": routes}, nil
}

// controlReset goes back to the first organization, as after the first start. It takes the
// state for itself as a restore does: runs are stopped where they stand, those that wait
// for each other or for a clock that stands still among them.
func (s *Server) controlReset(c *call.Control) (any, error) {
	ctx := c.R.Context()
	together, err := s.member.Alone(ctx)
	if err != nil {
		return nil, err
	}
	defer together()
	release, err := s.engine.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release() // nothing is left to go on, or all of it where this fails
	unlock, err := s.latch.Stand(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	left, err := s.organizations.ResetAll(ctx)
	if err != nil {
		return nil, err
	}
	// What they hold is about things that are gone. So it goes, whether the caller is
	// still there or not.
	ctx = context.WithoutCancel(ctx)
	s.latch.States.Add(1)
	s.lifecycle.Forget()
	s.mail.Forget()
	s.syncs.ForgetReplies()
	if err := errors.Join(s.forgetCalls(ctx), s.organizations.Drop(left)); err != nil {
		return nil, err
	}
	return call.Done, nil
}

// leaveTimeout bounds what is said and asked when the process ends.
const leaveTimeout = 2 * time.Second

// shareControl makes the control API that of the installation, before anything is
// served, and begins to hear the other processes. In memory and on SQLite it does
// nothing.
func (s *Server) shareControl(ctx context.Context) error {
	if !s.store.Shared() {
		return nil
	}
	all := chronicle.New(s.store.Pool(), s.config.Process)
	if err := all.Enter(ctx); err != nil {
		return store.Explained(err)
	}
	s.settings = settings.New(s.store, s.log, all, map[string]func(context.Context, []byte) error{
		faults.Setting:     s.faults.Follow,
		journal.Setting:    s.journal.Follow,
		trust.Setting:      s.trust.Follow,
		connectors.Setting: s.declared.Follow,
	})
	s.faults.Share(s.settings)
	s.rest.Share(s.settings)
	s.trust.Share(s.settings)
	s.declared.Share(s.settings)
	if err := s.journal.Share(ctx, all, s.settings, s.config.Process); err != nil {
		return err
	}
	if err := s.settings.LookAll(ctx); err != nil {
		return err
	}
	if n := s.faults.Count(); n > 0 {
		s.log.Warn("faults are in force", "faults", n)
	}
	s.background.Run(func() { s.settings.Run(s.background.Ctx) })
	for _, name := range s.settings.Names() {
		s.member.OnNotice(name, func(string) { s.settings.Hear(name) })
	}
	s.member.OnNotice(destinations.Topic, s.destinations.Hear)
	// What was changed since it was read above is read again when that begins.
	s.member.Listen()
	return nil
}

// leaveControl writes what is left when the work of the process has ended.
func (s *Server) leaveControl() {
	if s.settings == nil {
		return
	}
	s.journal.Close()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	s.settings.Leave(ctx)
}
