package server

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/rest"
)

// handlers maps the operations of the OpenAPI document to their code. The
// contract test holds the two together in both directions.
func (r *resources) handlers() map[string]call.Handler {
	all := map[string]call.Handler{"fetchRoot": fetchRoot}
	maps.Copy(all, r.rest.Operations())
	return all
}

// route builds the mux. Operations of the document without a handler are a
// mistake of the program: the contract test finds them.
func (s *Server) route() {
	mux := http.NewServeMux()
	byID := s.handlers()
	s.answering = &rest.Answerer{
		Shared: s.shared, Log: s.log, Clock: s.clock, Lock: s.lock, Faults: s.faults, Journal: s.journal, Metrics: s.metrics,
		Verify: s.config.Development,
	}
	s.rest.RouteLinks(mux)
	for _, described := range openapi.Operations() {
		handle, ok := byID[described.ID]
		if !ok {
			continue
		}
		op := &call.Operation{Operation: described, Handle: handle}
		pattern := api.BasePath + strings.TrimSuffix(described.Path, "/")
		serve := func(w http.ResponseWriter, r *http.Request) { s.answering.Answer(w, r, op) }
		if described.ID == "fetchRoot" {
			serve = func(w http.ResponseWriter, r *http.Request) {
				if rest.WantsPage(r) { // a person in a browser
					s.front.Show(w, r)
					return
				}
				s.answering.Answer(w, r, op)
			}
		}
		mux.HandleFunc(described.Method+" "+pattern, serve)
		// One real client requests /workspace/; a slash at the end is
		// forgiven everywhere.
		mux.HandleFunc(described.Method+" "+pattern+"/{$}", serve)
		s.ready[described.ID] = op
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		// Only when nothing fits, since it tries every method.
		if allowed := call.AllowedMethods(mux, r); allowed != "" {
			s.answering.Refuse(w, r, call.WrongMethod(r, allowed))
			return
		}
		s.answering.Refuse(w, r, problem.Refuse(http.StatusNotFound, "%s", rest.NothingAt(r.URL.Path)))
	})
	s.routeControl(mux)
	s.front = &rest.Front{
		Log: s.log, BaseURL: s.config.BaseURL, Version: s.config.Version, Dialect: string(cmp.Or(s.config.Dialect, DialectSpec)),
		Ready: s.Ready, Console: s.console, Metrics: s.door.Guard(s.metrics.Handler()),
	}
	s.front.Route(mux)
	s.mux = mux
}

// operations are the ids of the operations that are served, sorted.
func (d *doors) operations() []string { return slices.Sorted(maps.Keys(d.ready)) }
