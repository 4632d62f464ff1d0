package server

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/internal/call"
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
				if wantsPage(r) { // a person in a browser
					s.showFront(w, r)
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
		s.refuseCall(w, r, problem.Refuse(http.StatusNotFound, "%s", nothingAt(r.URL.Path)))
	})
	s.routeOutside(mux)
	s.routeControl(mux)
	s.mux = mux
}

// routeOutside serves what stands beside the API.
func (s *Server) routeOutside(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", s.showFront)
	// It asks nothing of the store: whoever starts the service only wants to
	// know that it listens.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{\"status\":\"ok\"}\n"))
	})
	mux.HandleFunc("GET /readyz", s.readyz)
	document := func(kind string, text []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(text)
		}
	}
	mux.HandleFunc("GET /openapi.yaml", document("application/yaml", openapi.REST()))
	mux.HandleFunc("GET /openapi.json", document("application/json", openapi.RESTJSON()))
	mux.Handle("GET /metrics", s.guard(s.metrics.Handler()))
}

// operations are the ids of the operations that are served, sorted.
func (s *Server) operations() []string { return slices.Sorted(maps.Keys(s.ready)) }
