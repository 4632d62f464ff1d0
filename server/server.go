// Package server owns the reference service: the REST API of spec sections 2 to
// 9 as an http.Handler that really stores, checks and enforces, and, under
// /_control, what an emulation needs: seeding, reset, snapshots, a virtual
// clock, journals, faults, a mailbox.
//
// It refuses to know the simulator, the judge and the program: emulated
// destination types are kept by a store that is handed in, and it never
// listens, prints, reads the environment or exits.
package server

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/descriptors"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/rest"
	"github.com/destkit/destkit/server/internal/seam"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// Defaults of Config.
const (
	DefaultMaxBody  = 4 << 20
	DefaultMaxRow   = source.DefaultRow
	DefaultCacheTTL = 15 * time.Minute
	// DefaultCallTimeout is Config.CallTimeout where it is zero, and so on.
	DefaultCallTimeout    = 30 * time.Second
	DefaultQueryTimeout   = source.DefaultQuery
	DefaultBatchTimeout   = time.Minute
	DefaultConnectTimeout = 10 * time.Second
	DefaultWebhookTimeout = 10 * time.Second
)

// Config describes a service. The zero value is a service in memory, in the
// spec dialect, on the system clock.
type Config struct {
	// Dir keeps everything below it; "" keeps everything in memory.
	Dir string
	// MasterKey is the key of 32 bytes that seals all secrets; needed with Dir.
	MasterKey []byte
	// Restore starts from a snapshot or backup; Dir must hold no data then.
	Restore io.Reader
	// Dialect is DialectSpec (default) or DialectLive.
	Dialect Dialect
	// SystemClock is what the virtual clock adds its offset to; nil: time.Now.
	SystemClock func() time.Time
	// Random makes tokens and keys; nil: crypto/rand.
	Random io.Reader
	// Owner is shown to a second process on Dir, for example the address.
	Owner string
	// BaseURL is the address of clients, as https://host/api/v1; it is in the
	// legacy "next" URLs. "": taken from each request.
	BaseURL string
	// Development checks every reply against the OpenAPI document; a breach
	// becomes a 500 that names the place.
	Development bool
	// ControlToken opens /_control from everywhere, and is needed on loopback, too.
	ControlToken string
	// Profile answers GET /_control/pprof and below, to whom the control API is
	// open, with profiles of the process; nil: there is nothing.
	Profile http.Handler
	// PersonalAccessToken and WorkspaceAPIKey are taken over at every start as
	// tokens of the first user and the first workspace.
	PersonalAccessToken, WorkspaceAPIKey string
	// MaxBody bounds a request body in bytes; DefaultMaxBody when zero.
	MaxBody int64
	// CacheTTL is how long objects and fields of a destination are kept before
	// they are fetched again; DefaultCacheTTL when zero.
	CacheTTL time.Duration
	// Roots are the authorities that destinations are checked against; nil:
	// those of the system. Trusted PEM certificates are added.
	Roots   *x509.CertPool
	Trusted []byte
	// AllowPlainHTTP permits destinations over http beyond loopback.
	AllowPlainHTTP bool
	// The deadlines of calls, in real time; none is published (spec 8). CallTimeout
	// bounds one call of a destination but sync_batch, DefaultCallTimeout when
	// zero; BatchTimeout one sync_batch, CallTimeout where that is set and
	// DefaultBatchTimeout otherwise; ConnectTimeout looking up, connecting and
	// shaking hands, DefaultConnectTimeout when zero; WebhookTimeout one call of a
	// webhook, DefaultWebhookTimeout when zero.
	CallTimeout, BatchTimeout, ConnectTimeout, WebhookTimeout time.Duration
	// MaxRow bounds one row of a source in bytes, QueryTimeout how long a source may
	// take from one row to the next; source.DefaultRow and source.DefaultQuery when zero.
	MaxRow       int
	QueryTimeout time.Duration
	// Private are files that sources may not read, with their older versions, besides
	// Dir (all of it but its folder "files"), /proc and /sys: for example the key file.
	Private []string
	// AllowFiles are the folders that sources and local_files destinations may open,
	// with all below them. Nil: the folder "files" of Dir, and WorkFolder, without
	// what is hidden in it, as long as all organizations are those of the first start
	// and of Seed.
	AllowFiles []string
	WorkFolder string
	// AllowHosts are what sources, destinations, webhooks and hooks may connect to:
	// names, *.NAME, addresses or ranges, each with or without :PORT (CheckHost); none:
	// everything. DenyLoopback refuses loopback and Unix sockets, whatever names lead
	// there. Listeners is where this service is served, which they never connect to.
	AllowHosts   []string
	DenyLoopback bool
	Listeners    []netip.AddrPort
	// Emulate keeps the records of emulated destination types; nil: they can
	// not be created.
	Emulate Emulator
	// SMTP is the mail server that gets a copy of every e-mail; the zero value
	// has none. The password never leaves the process but for that server.
	SMTP SMTP
	// Log gets what happens; nil drops it. It never holds a secret. Requests also logs
	// a line for each request: of the API at level info, of everything else at level
	// debug.
	Log      *slog.Logger
	Requests bool
	// Version of the program, for the user agent and the root of the API.
	Version string

	files  *descriptors.Shares // tests: of open files; nil: those of the process
	before func()              // tests: runs before each change that a call makes
	sent   func()              // tests: runs before the first byte of each call of a destination
	grace  time.Duration       // tests: how long the calls of a stopped run may go on; 0: the default
	seams  func(*seam.Service) seam.Seams
}

// Server is the service. It is safe for parallel use.
type Server struct {
	config Config
	base
	state
	work
	resources
	doors
}

// Tokens open an organization with one admin and one workspace (spec 5.1). They
// are known only to whoever made it: the store keeps hashes and seals.
type Tokens = organizations.Tokens

// New opens the store, makes the first organization where there is none, and
// returns the service. Errors are those of store.Open, of a restored file and
// of a certificate that cannot be read.
func New(ctx context.Context, config Config) (*Server, error) {
	s, err := assemble(config)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		s.clock.Close()
		return nil, err
	}
	for _, step := range []func(context.Context) error{s.begin, s.run} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Close waits for work in flight, then lets go of the store.
func (s *Server) Close() error {
	s.CloseConsole()
	s.background.Stop(executor.ErrStop)
	s.background.Wait()
	s.clock.Close()
	s.gate.Close()
	var books error
	if s.ledger != nil {
		books = s.ledger.Close()
	}
	if err := errors.Join(books, s.store.Close()); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// Settle waits until nothing runs that could end by itself, and nothing is due on the
// service's clock. While time runs, a run that waits for its rate, for another attempt
// or for a destination could; on a frozen clock only the last one could.
func (s *Server) Settle(ctx context.Context) error { return s.clock.Settle(ctx) }

// Ready returns why the service should get no calls, nil when it should: the store
// answers and the data directory takes a file.
func (s *Server) Ready(ctx context.Context) error {
	if err := s.store.View(ctx, func(*store.Tx) error { return nil }); err != nil {
		return fmt.Errorf("the store does not answer: %w", err)
	}
	return rest.Writable(s.config.Dir)
}

// FirstTokens are those of the first organization when this start made it;
// otherwise nil.
func (s *Server) FirstTokens() *Tokens { return s.first }

// ServeHTTP answers the API under api.BasePath, the control API under /_control, and
// /healthz, /metrics, /openapi.yaml and /openapi.json; / lists them.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.config.Requests {
		logged := journal.LogRequest(w, r, s.log)
		defer logged.End()
		w = logged
	}
	s.serve(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	// The mux answers // and /../ with a page that redirects; clients of an API
	// get JSON.
	if at := r.URL.EscapedPath(); at != "" && strings.TrimSuffix(path.Clean(at), "/") != strings.TrimSuffix(at, "/") {
		s.answering.Refuse(w, r, problem.Refuse(http.StatusNotFound, "there is nothing at this path; write it without //, /./ and /../"))
		return
	}
	if s.seams.API != nil && strings.HasPrefix(r.URL.Path, path.Dir(api.BasePath)) {
		s.seams.API(s.mux).ServeHTTP(w, r)
		return
	}
	// A client waits: what its call changes comes before what runs record.
	s.mux.ServeHTTP(w, r.WithContext(store.WithUrgency(r.Context(), store.Urgent)))
}

// NewOrganization makes an organization with one admin and one workspace, apart
// from all others: one for each test. It takes milliseconds.
func (s *Server) NewOrganization(ctx context.Context, name string) (made *Tokens, err error) {
	if problems := organizations.CheckName("name", name); len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	err = s.store.Update(ctx, func(tx *store.Tx) error {
		made, err = organizations.Begin(tx, name, "owner@example.com", "Main")
		return err
	})
	return made, err
}
