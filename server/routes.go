package server

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/front"
	"github.com/destkit/destkit/server/internal/problem"
)

// handlers maps the operations of the OpenAPI document to their code. The
// contract test holds the two together in both directions.
func (s *Server) handlers() map[string]call.Handler {
	all := map[string]call.Handler{
		"fetchRoot": s.fetchRoot,
	}
	maps.Copy(all, s.rest.Operations())
	maps.Copy(all, s.syncs.Operations())
	maps.Copy(all, s.links.LinkHandlers())
	return all
}

// route builds the mux. Operations of the document without a handler are a
// mistake of the program: the contract test finds them.
func (s *Server) route() {
	mux, byID := http.NewServeMux(), s.handlers()
	s.links.RouteLinks(mux)
	for _, described := range openapi.Operations() {
		handle, ok := byID[described.ID]
		if !ok {
			continue
		}
		op := &call.Operation{Operation: described, Handle: handle}
		pattern := BasePath + strings.TrimSuffix(described.Path, "/")
		serve := func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, op) }
		if described.ID == "fetchRoot" {
			serve = func(w http.ResponseWriter, r *http.Request) {
				if front.WantsPage(r) { // a person in a browser
					s.front.Show(w, r)
					return
				}
				s.answer(w, r, op)
			}
		}
		mux.HandleFunc(described.Method+" "+pattern, serve)
		// One real client asks for /workspace/; a slash at the end is
		// forgiven everywhere.
		mux.HandleFunc(described.Method+" "+pattern+"/{$}", serve)
		s.ready[described.ID] = op
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		// Asked only when nothing fits, since it tries every method.
		if allowed := call.AllowedMethods(mux, r); allowed != "" {
			s.refuseCall(w, r, call.WrongMethod(r, allowed))
			return
		}
		s.refuseCall(w, r, problem.Refuse(http.StatusNotFound, "%s", front.NothingAt(r.URL.Path)))
	})
	s.routeControl(mux)
	s.front = front.New(front.Parts{
		Log: s.log, BaseURL: s.config.BaseURL, Version: s.config.Version, Dialect: string(cmp.Or(s.config.Dialect, DialectSpec)),
		Ready: s.Ready, Console: s.console, Metrics: s.guard(s.metrics.Handler()),
	})
	s.front.Route(mux)
	s.mux = mux
}

// operations are the ids of the operations that are served, sorted.
func (s *Server) operations() []string { return slices.Sorted(maps.Keys(s.ready)) }
