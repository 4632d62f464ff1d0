// Package console owns the pages of the service for a browser: an overview, one sync,
// one run, one record, the traffic, faults, mail, webhooks, the clock, seeds and
// snapshots.
//
// It knows neither the store nor the engine. Each page is made from what the routes of
// the control API and the operations of the API answer, so that a program can find out
// whatever a page shows.
package console

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/api"
)

//go:embed pages/*.html
var files embed.FS

// Service is what the pages use of the service.
type Service struct {
	// Control makes calls of the control API, past its guard.
	Control console.Caller
	// Perform runs an operation of the API as a workspace, past journal and faults, and
	// gives the body of its reply.
	Perform func(ctx context.Context, workspaceID int64, operation string, path map[string]int64, query url.Values, body any) (json.RawMessage, error)
	// Send makes a request of the API as a client with the key of the workspace would. It
	// gives the status (0: the connection was dropped) and the id in the journal.
	Send func(ctx context.Context, workspaceID int64, method, target string, body []byte) (status int, id string, err error)
	// NextStart is when the schedule of a sync starts a run next; zero: never.
	NextStart func(*api.SyncConfig) time.Time
	// Stamp changes with all that pages show; "" is unknown.
	Stamp      func() string
	Token      string // the control token; "" is none
	SecretEnv  string // the variable that snippets take the key from
	Operations []string
	Log        *slog.Logger
}

// site is the console with what its pages use.
type site struct{ Service }

// New makes the console of a service.
func New(s Service) *console.Console {
	pages, err := fs.Sub(files, "pages")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	c := console.New(console.Options{
		Name: "service", Pages: pages, Token: s.Token, Stamp: s.Stamp, Log: s.Log,
		Nav: []console.Link{
			{Path: "/", Text: "Overview", Key: "o"}, {Path: "/requests", Text: "Requests", Key: "r"}, {Path: "/calls", Text: "Calls", Key: "c"},
			{Path: "/faults", Text: "Faults", Key: "f"}, {Path: "/mailbox", Text: "Mailbox", Key: "m"}, {Path: "/webhooks", Text: "Webhooks", Key: "w"},
			{Path: "/clock", Text: "Clock", Key: "t"}, {Path: "/world", Text: "Seed and snapshots", Key: "s"},
		},
	})
	at := &site{s}
	c.Page("/{$}", "overview", at.overview)
	c.Action("/organizations", "/", at.newOrganization)
	c.Action("/users/{user}/token", "/", at.newToken)
	c.Action("/workspaces/{workspace}/key", "/", at.newKey)
	c.Action("/clock", "/", at.moveClock)
	c.Page("/workspaces/{workspace}", "workspace", at.workspace)
	c.Page("/workspaces/{workspace}/sources/new", "connection", at.connection(true))
	c.Page("/workspaces/{workspace}/destinations/new", "connection", at.connection(false))
	c.Action("/workspaces/{workspace}/sources/new/{type}", "/workspaces/{workspace}/sources/new?type={type}", at.newConnection(true))
	c.Action("/workspaces/{workspace}/destinations/new/{type}", "/workspaces/{workspace}/destinations/new?type={type}", at.newConnection(false))
	c.Page("/workspaces/{workspace}/syncs/new", "newsync", at.newSync)
	c.Action("/workspaces/{workspace}/syncs/new", "/workspaces/{workspace}/syncs/new", at.makeSync)
	const sync, run = "/workspaces/{workspace}/syncs/{sync}", "/workspaces/{workspace}/runs/{run}"
	c.Page(sync, "sync", at.sync)
	c.Page(sync+"/plan", "plan", at.plan)
	c.Action(sync+"/trigger", sync, at.trigger)
	c.Action(sync+"/pause", sync, at.pause)
	c.Action(sync+"/delete", sync, at.deleteSync)
	c.Page(run, "run", at.run)
	c.Action(run+"/cancel", run, at.cancelRun)
	c.Page(run+"/record", "record", at.record)
	c.Handle(http.MethodGet, "/runs/{run}", at.findRun)
	c.Page("/send", "send", at.sendForm)
	c.Action("/send", "/send", at.send)
	c.Page("/requests", "requests", at.requests)
	c.Page("/requests/{id}", "exchange", at.request)
	c.Page("/calls", "requests", at.calls)
	c.Page("/calls/{id}", "exchange", at.call)
	c.Page("/faults", "faults", at.faults)
	c.Action("/faults", "/faults", at.armFault)
	c.Action("/faults/disarm", "/faults", at.disarm)
	c.Page("/mailbox", "mailbox", at.mailbox)
	c.Action("/mailbox/empty", "/mailbox", at.emptyMailbox)
	c.Page("/webhooks", "webhooks", at.webhooks)
	c.Page("/clock", "clock", at.clock)
	c.Page("/world", "world", at.world)
	c.Handle(http.MethodGet, "/seed.yaml", at.seedFile)
	c.Action("/seed", "/world", at.loadSeed)
	c.Handle(http.MethodGet, "/snapshot.tar", at.snapshot)
	c.Action("/restore", "/world", at.restore)
	return c
}

// list is a reply of the API with one page of many.
type list[T any] struct {
	Pagination api.Pagination `json:"pagination"`
	Data       []T            `json:"data"`
}

// one is a reply of the API with one resource.
type one[T any] struct {
	Data T `json:"data"`
}

// perform runs an operation and decodes its reply.
func perform[T any](ctx context.Context, s *site, workspace int64, operation string, path map[string]int64, query url.Values, body any) (reply T, err error) {
	text, err := s.Perform(ctx, workspace, operation, path, query, body)
	if err != nil {
		return reply, err
	}
	return reply, json.Unmarshal(text, &reply)
}

// get reads a route of the control API.
func get[T any](ctx context.Context, s *site, path string, query url.Values) (reply T, err error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	err = s.Control.Do(ctx, http.MethodGet, "/_control"+path, nil, &reply)
	return reply, err
}

// post calls a route of the control API that changes something.
func post[T any](ctx context.Context, s *site, path string, body any) (reply T, err error) {
	err = s.Control.Do(ctx, http.MethodPost, "/_control"+path, body, &reply)
	return reply, err
}
