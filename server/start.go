package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/background"
	"github.com/destkit/destkit/server/internal/binding"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/connectors"
	"github.com/destkit/destkit/server/internal/control"
	"github.com/destkit/destkit/server/internal/descriptors"
	"github.com/destkit/destkit/server/internal/destinations"
	"github.com/destkit/destkit/server/internal/faults"
	"github.com/destkit/destkit/server/internal/inspect"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/rest"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/seed"
	"github.com/destkit/destkit/server/internal/snapshot"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/statelock"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/withheld"
)

// masterKeySize is the length of a master key in bytes (AES-256).
const masterKeySize = 32

// complete fills in the defaults. Zero values are the defaults, so that Config{}
// is a service.
func (c *Config) complete() error {
	if c.MaxBody == 0 {
		c.MaxBody = DefaultMaxBody
	}
	if c.CacheTTL == 0 {
		c.CacheTTL = DefaultCacheTTL
	}
	if c.BatchTimeout == 0 {
		c.BatchTimeout = cmp.Or(c.CallTimeout, DefaultBatchTimeout)
	}
	c.CallTimeout = cmp.Or(c.CallTimeout, DefaultCallTimeout)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, DefaultConnectTimeout)
	c.MaxRow = cmp.Or(c.MaxRow, source.DefaultRow)
	c.QueryTimeout = cmp.Or(c.QueryTimeout, source.DefaultQuery)
	c.WebhookTimeout = cmp.Or(c.WebhookTimeout, DefaultWebhookTimeout)
	if c.files == nil {
		c.files = descriptors.Process()
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Version == "" {
		c.Version = "devel"
	}
	if c.MasterKey == nil && c.Dir == "" {
		// A world in memory has its own key.
		c.MasterKey = make([]byte, masterKeySize)
		if _, err := rand.Read(c.MasterKey); err != nil {
			return fmt.Errorf("make master key: %w", err)
		}
	}
	return nil
}

// assemble builds the parts that need nothing but the configuration.
func assemble(config Config) (*Server, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	dialect, err := config.Dialect.switched()
	if err != nil {
		return nil, err
	}
	s := &Server{config: config}
	s.lock, s.dialect, s.log = statelock.New(), dialect, config.Log
	s.ready = map[string]*call.Operation{}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.seams = s.seamed()
	config = s.config // a test may have changed it
	s.shared = &call.Shared{Dialect: s.dialect, BaseURL: config.BaseURL, MaxBody: config.MaxBody, Before: config.before}
	s.clock = clock.New(config.SystemClock)
	// Work on the clock has no caller who would see it fail.
	s.clock.OnPanic(func(name string, value any, stack []byte) {
		s.log.Error("work on the clock failed", "name", name, "panic", value, "stack", string(stack))
	})
	s.background = background.NewWork(s.clock)
	s.metrics = rest.NewMetrics(rest.MetricsParts{Shared: s.shared, Files: config.files})
	s.journal = journal.New(func(ctx context.Context, id int64) (map[int64]bool, error) {
		return s.organizations.DestinationsOf(ctx, id)
	})
	s.faults = faults.New(faults.Options{Clock: s.clock, Fired: s.metrics.Fault, Operations: s.operations})
	s.performer = &call.Performer{Shared: s.shared, Now: s.clock.Now, Operation: func(id string) *call.Operation { return s.ready[id] }}
	position := func(syncID int64) (int64, error) { return runs.Position(s.ledger, syncID) }
	plans := runs.Planning{
		Shared: s.shared, Log: s.log, Clock: s.clock, Work: s.background,
		Ledger: func() *ledger.Ledger { return s.ledger }, Position: position,
	}
	s.engine = runs.NewEngine(plans)
	plans.Runs = s.engine
	s.live, s.retries, s.retention = runs.NewLive(plans), runs.NewRetries(plans), &runs.Retention{Planning: plans}
	s.schedule = runs.NewSchedule(plans, s.live, s.retries)
	limits, err := s.config.limits(s.shared, s.background)
	if err != nil {
		s.clock.Close()
		return nil, err
	}
	s.sources = sources.New(sources.Parts{
		Shared: s.shared, Log: s.log, Clock: s.clock, Work: s.background,
		Files: limits.Files, Network: limits.Network, Limits: source.Limits{Row: config.MaxRow, Query: config.QueryTimeout},
		Folder: s.config.below("warehouses"),
	})
	s.gate = destination.New(destination.Options{
		Network:        limits.Network,
		Files:          limits.Files,
		Now:            s.clock.Now,
		Roots:          config.Roots,
		AllowPlainHTTP: config.AllowPlainHTTP,
		UserAgent:      "destkit/" + config.Version,
		ConnectTimeout: config.ConnectTimeout,
		CallTimeout:    config.CallTimeout,
		BatchTimeout:   config.BatchTimeout,
		Connections:    config.files.Connections,
		Observe: func(x destination.Exchange) {
			s.metrics.Call(x.Method, x.Outcome)
			s.journal.Observe(x)
		},
		Emulate:   config.Emulate,
		FilesRoot: s.config.below(withheld.FilesFolder),
		Sending:   config.sent,
		Carry:     s.seams.Calls,
		TLS:       s.seams.TLS,
	})
	s.trust = control.NewTrust(s.gate)
	if len(config.Trusted) > 0 {
		if _, err := s.gate.Trust(config.Trusted); err != nil {
			return nil, fmt.Errorf("trust certificates: %w", err)
		}
	}
	s.destinations = &destinations.Destinations{
		Shared: s.shared, Log: s.log, Clock: s.clock, Work: s.background, Lock: s.lock, Gate: s.gate,
		TTL: config.CacheTTL,
	}
	s.planning = &runs.Planner{
		Shared: s.shared, Log: s.log, Sources: s.sources, Destinations: s.destinations, Gate: s.gate,
		Deviations: s.seams.Deviations, Ask: func(ctx context.Context, connection int64, fn func(context.Context) error) error {
			return s.executor.Ask(ctx, connection, fn)
		},
	}
	s.inspect = &inspect.Inspector{
		Shared: s.shared, Clock: s.clock, Journal: s.journal, Gate: s.gate,
		Planning: s.planning, Timeout: config.CallTimeout,
		Ledger: func() *ledger.Ledger { return s.ledger }, Executor: func() *executor.Executor { return s.executor },
	}
	s.organizations = &organizations.Organizations{
		Shared: s.shared, Work: s.background, Sources: s.sources, Gate: s.gate, Syncs: syncEnds{s},
	}
	s.declared = connectors.New(s.shared, s.gate, s.sources)
	s.seeds = &seed.Seeds{
		Shared: s.shared, Clock: s.clock, Lock: s.lock, Sources: s.sources,
		Organizations: s.organizations, Connectors: s.declared, Perform: s.performer.Perform,
	}
	s.controls = &control.Handlers{
		Shared: s.shared, Clock: s.clock, Organizations: s.organizations, Sources: s.sources, Gate: s.gate, Live: s.live,
		Runs: s.engine, Position: position,
	}
	parts := lifecycle.Sending{Shared: s.shared, Log: s.log, Clock: s.clock}
	if s.mail, err = lifecycle.NewMailer(parts, s.gate, config.SMTP, s.seams.Mail); err != nil {
		s.clock.Close()
		return nil, err
	}
	s.lifecycle = lifecycle.New(lifecycle.Parts{Sending: parts, Gate: s.gate, Mail: s.mail, Timeout: config.WebhookTimeout, Called: s.journal.Webhook})
	s.engine.Assemble(runs.EngineParts{
		Plans: s.planning, Executor: func() *executor.Executor { return s.executor }, Lifecycle: s.lifecycle,
		Schedule: s.schedule, Live: s.live, Retries: s.retries, Retention: s.retention,
		Gate: s.gate, Lock: s.lock,
		Files: config.files.Runs,
	})
	s.rest = rest.New(rest.Parts{
		Shared: s.shared, Log: s.log, Clock: s.clock, Lock: s.lock, Work: s.background, Sources: s.sources,
		Destinations: s.destinations, Gate: s.gate, Schedule: s.schedule, Runs: s.engine,
		Ledger: func() *ledger.Ledger { return s.ledger }, Mail: s.mail, Random: config.Random, Ends: syncEnds{s},
		Perform: func(ctx context.Context, who call.Principal, id string, path map[string]int64, body any) (json.RawMessage, error) {
			return s.performer.Perform(ctx, who, id, path, nil, body)
		},
	})
	s.binding = &binding.Binding{Shared: s.shared, Log: s.log, Dir: config.Dir, Ledger: func() *ledger.Ledger { return s.ledger }}
	s.timing = &control.Clock{
		Clock: s.clock, Lock: s.lock, Schedule: s.schedule,
	}
	s.snapshots = &snapshot.Snapshots{
		Shared: s.shared, Log: s.log, Clock: s.clock, Lock: s.lock, Journal: s.journal, Faults: s.faults,
		Gate: s.gate, Sources: s.sources, Ledger: func() *ledger.Ledger { return s.ledger },
		Organizations: s.organizations, Connectors: s.declared, Rest: s.rest, Engine: s.engine, Schedule: s.schedule,
		Retention: s.retention, Lifecycle: s.lifecycle, Mail: s.mail, Binding: s.binding, Dir: config.Dir,
		Version: config.Version, Dialect: string(config.Dialect),
	}
	// Last, as it collects what the other parts serve.
	s.route()
	return s, nil
}

// limits are what those who use the API may reach through this service.
func (c *Config) limits(shared *call.Shared, work *background.Work) (withheld.Limits, error) {
	return withheld.New(withheld.Parts{
		Shared: shared, Work: work,
		AllowHosts: c.AllowHosts, DenyLoopback: c.DenyLoopback, Listeners: c.Listeners,
		Private: c.Private, AllowFiles: c.AllowFiles, Dir: c.Dir, WorkFolder: c.WorkFolder,
		Secrets:   []string{c.SMTP.Password, c.ControlToken, c.PersonalAccessToken, c.WorkspaceAPIKey},
		MasterKey: c.MasterKey,
	})
}

// CheckHosts returns what is wrong with an entry of AllowHosts.
func (c *Config) CheckHosts() error {
	for _, host := range c.AllowHosts {
		if err := withheld.CheckHost(host); err != nil {
			return err
		}
	}
	return nil
}

// below is a path in the data directory; "" in memory.
func (c *Config) below(name string) string {
	if c.Dir == "" {
		return ""
	}
	return filepath.Join(c.Dir, name)
}

// open opens the store, from a snapshot when there is one to restore.
func (s *Server) open(ctx context.Context) error {
	options := store.Options{
		Dir:       s.config.Dir,
		Clock:     s.clock.Now,
		MasterKey: s.config.MasterKey,
		Random:    s.config.Random,
		Owner:     s.config.Owner,
		Plan:      s.schedule.Plan,
	}
	// Before anything is made: a snapshot needs a store that holds nothing.
	if err := s.binding.Unoccupied(s.config.Restore != nil); err != nil {
		return err
	}
	var from *archive.Archive
	if s.config.Restore != nil {
		a, err := archive.Read(s.config.Restore, s.config.Dir)
		if err != nil {
			return err
		}
		defer a.Close()
		from = a
	}
	if from != nil {
		options.From = from.Part(archive.PartStore)
	}
	opened, err := store.Open(ctx, options)
	if err != nil {
		return err
	}
	s.store, s.shared.Store = opened, opened
	declared := func() error { return s.declared.Load(ctx) }
	if from != nil {
		// The store holds the directory's lock from here on.
		fill := func() error { return s.snapshots.Fill(ctx, from) }
		bind := func() error { return s.binding.BindRestored(ctx) }
		if err := inOrder(s.openLedger, declared, fill, bind); err != nil {
			return errors.Join(fmt.Errorf("restore: %w", err), s.Close())
		}
		return nil
	}
	// Before the ledger is opened, which tidies it.
	next, err := s.binding.Fits(ctx)
	if err == nil {
		err = inOrder(s.openLedger, func() error { return s.binding.Bind(ctx, next) }, declared)
	}
	if err != nil {
		return errors.Join(err, s.store.Close())
	}
	return nil
}

// inOrder takes steps until one fails.
func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// fetchRoot reports the version (spec 9).
func fetchRoot(*call.Call) (*call.Reply, error) {
	return call.OK(map[string]string{"version": "v1"})
}

var _ io.Closer = (*Server)(nil)
