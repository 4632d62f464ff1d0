package server

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	pages "github.com/destkit/destkit/server/internal/console"
	"github.com/destkit/destkit/server/internal/control"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/rest"
	"github.com/destkit/destkit/server/internal/runs"
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

// routeControl puts the control API and the console onto the mux.
func (s *Server) routeControl(mux *http.ServeMux) {
	s.door = control.NewAPI(control.APIParts{
		Log: s.log, Lock: s.lock, Token: s.config.ControlToken,
		Held: slices.Concat(
			s.controls.OrganizationRoutes(),
			s.controls.People(), s.declared.Routes(), s.journal.Routes(), s.faults.Routes(),
			s.lifecycle.Routes(), s.controls.Data(), s.inspect.Routes(),
			[]call.ControlRoute{
				call.Route("GET", "/seed", "what is here as a seed, without secrets", s.seeds.Export),
			},
			s.trust.Routes(),
		),
		Free: slices.Concat(
			[]call.ControlRoute{
				call.Route("POST", "/seed", "body: a seed as YAML; makes all of it or nothing", s.seeds.Post),
			},
			s.timing.Routes(), s.snapshots.Routes(),
		),
		Metrics: s.metrics.Handler(), Profile: s.config.Profile,
	})
	s.door.Route(mux)
	// The pages for browsers are made from the replies of the control API and of the
	// API's operations, by calls within the process.
	inside := &insider{performer: s.performer, lock: s.lock, serve: s.serve}
	s.console = pages.New(pages.Service{
		Control: console.Caller{Handler: s.door.Handler()}, Token: s.config.ControlToken, Log: s.log,
		Perform: inside.perform, Send: inside.send,
		// It changes with all that pages show.
		Stamp: func() string {
			return fmt.Sprint(s.store.Generation(), s.journal.Stamp(), s.faults.Stamp(), s.clock.State(), s.lock.Number())
		},
		NextStart: func(config *api.SyncConfig) time.Time { return runs.NextRun(config, s.clock.Now()) },
		SecretEnv: "DESTKIT_WORKSPACE_API_KEY", Operations: s.operations(),
	})
	mux.Handle(console.Path, s.console)
	mux.Handle(console.Path+"/", s.console)
}
