// Package serve is `destkit serve` and its subcommands: its flags, its data directory,
// its master key, its start and its end. The service itself is package server.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server"
)

// heapLimit makes the collector work earlier where much is held at once. It is a soft
// limit of the Go heap alone.
const heapLimit = 288 << 20

// Flags holds the flags of `destkit serve`. Most of them bind onto
// server.Config.
type Flags struct {
	Config server.Config
	key    keySource
	mail   mailFlags
	Reach  reachFlags

	addr, dialect, seed, restore string
	destinationCA, control       string
	level, format                string // of the log
	explainDialect               bool
	parent                       command.Parent
	profiling                    command.Profiling
}

// New opens the one port of the service: API, control and health share it.
func New() *cobra.Command {
	var s Flags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the reference service: the REST API, stored and validated",
		Long: `Run a service that behaves like the real one: what is created can be read back,
rules are enforced, secrets are kept sealed. The API stands under /api/v1, its
description under /openapi.yaml, and what tests need (seeds, clock, faults,
mailbox) under /_control, for this machine or with a control token.

The first line says where it listens; then come ids and tokens, at the first
start of a data directory and at every start without one. Tokens in
` + command.AccessTokenVariable + ` and ` + command.WorkspaceKeyVariable + ` are
taken over and not printed. Secrets in --data are sealed under a master key:
` + command.MasterKeyVariable + ` (64 hex digits, or base64 of 32 bytes),
--key-file, or one that the first start makes in your configuration folder. Keep
it: nothing else opens them. Who may use the API chooses which files are opened
and which hosts are called, within --allow-files, --allow-hosts and
--deny-loopback. Details: docs/service.md; all limits: docs/limits.md.`,
		Example: `  destkit serve --addr 127.0.0.1:0 --data ./data
  destkit serve --seed seed.yaml --dialect live
  destkit serve --smtp mail.example.com:587 --smtp-from alerts@example.com \
      --smtp-user alerts --smtp-password-env SMTP_PASSWORD
  destkit serve --data ./restored --restore backup.db`,
		Args: command.NoSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.explainDialect {
				return explainDialect(cmd.OutOrStdout(), s.parent.AsJSON)
			}
			s.parent.Watch(cmd)
			err := s.run(cmd)
			if cmd.Context().Err() != nil && errors.Is(err, context.Canceled) {
				return nil // it was stopped while it started
			}
			return err
		},
	}
	// The other commands judge, and have statuses for their findings.
	command.EndHelp(cmd, command.ServeExitTable)
	f := cmd.Flags()
	// In the order in which a person needs them.
	f.SortFlags = false
	f.StringVarP(&s.addr, "addr", "a", "127.0.0.1:8080", "`HOST:PORT`: where to listen; port 0: any")
	f.StringVar(&s.Config.Dir, "data", "", "keep everything in `DIR` (default: memory, then gone)")
	f.StringVar(&s.seed, "seed", "", "YAML `FILE` to fill it with; once for a data directory")
	f.StringVar(&s.restore, "restore", "", "`FILE`: start from this snapshot or backup; --data new")
	f.StringVar(&s.dialect, "dialect", string(server.DialectSpec), "`spec|live`: the specification, or what clients need")
	f.BoolVar(&s.explainDialect, "explain-dialect", false, "list where the two dialects differ, with the source")
	s.parent.Register(f, "--explain-dialect")
	f.StringVar(&s.destinationCA, "destination-ca", "", "PEM `FILE` of more authorities of destinations")
	f.BoolVar(&s.Config.AllowPlainHTTP, "allow-plain-http", false, "allow destinations over http beyond loopback")
	s.Reach.register(f, &s.Config)
	s.key.register(f)
	f.StringVar(&s.control, "control-token-env", "", "variable `NAME` with the token of /_control")
	f.BoolVar(&s.Config.Development, "development", false, "answer 500 where a reply breaks the API's description")
	s.mail.register(f, &s.Config.SMTP)
	f.DurationVar(&s.Config.CallTimeout, "request-timeout", server.DefaultCallTimeout, "deadline of a call, except a batch")
	f.DurationVar(&s.Config.BatchTimeout, "batch-timeout", server.DefaultBatchTimeout, "deadline of one batch of records")
	f.DurationVar(&s.Config.ConnectTimeout, "connect-timeout", server.DefaultConnectTimeout, "deadline of connecting, with TLS")
	f.DurationVar(&s.Config.WebhookTimeout, "webhook-timeout", server.DefaultWebhookTimeout, "deadline of a webhook's call")
	f.IntVar(&s.Config.MaxRow, "max-row", server.DefaultMaxRow, "longest row of a source in `BYTES`")
	f.DurationVar(&s.Config.QueryTimeout, "query-timeout", server.DefaultQueryTimeout, "of a source, from row to row")
	f.StringVar(&s.level, "log-level", "info", "`debug|info|warn|error|off`: on standard error")
	f.StringVar(&s.format, "log-format", "text", "`text|json`: a line each")
	s.profiling.Register(cmd)
	cmd.AddCommand(newReady(), newBackup(), newRotateKey(), newToken(), newUnseal())
	return cmd
}

// run serves until a signal comes. The data directory and the key are touched
// last: a slip in a flag leaves nothing behind.
func (s *Flags) run(cmd *cobra.Command) error {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapLimit)
	}
	if err := s.resolve(cmd); err != nil {
		return err
	}
	if err := s.mail.resolve(cmd, &s.Config.SMTP); err != nil {
		return err
	}
	if err := s.Reach.resolve(&s.Config); err != nil {
		return err
	}
	seed, err := s.readSeed()
	if err != nil {
		return err
	}
	// Before the port is taken: a folder that cannot be written is a slip in a
	// flag, too.
	stopProfile, err := s.profiling.Start()
	if err != nil {
		return err
	}
	defer stopProfile()
	port := &command.Port{Addr: s.addr}
	// Before the directory is opened, so that its owner is known by an address.
	ln, url, err := port.Open()
	if err != nil {
		return err
	}
	defer ln.Close()
	if err := s.Reach.ListensAt(&s.Config, ln.Addr()); err != nil {
		return err
	}
	key, err := s.key.open(s.Config.Dir, s.restore != "")
	if err != nil {
		return err
	}
	s.Config.MasterKey = key.Bytes
	// A second process on the directory names this one.
	s.Config.Owner = fmt.Sprintf("pid %d, %s", os.Getpid(), url)
	s.Config.Profile = http.HandlerFunc(command.ServeProfiles)
	world, err := s.Open(cmd.Context(), key)
	if err != nil {
		// A key that has sealed nothing must not lie about unannounced.
		if key.made != "" && !server.HoldsData(s.Config.Dir) {
			err = errors.Join(err, os.Remove(key.made))
		}
		return err
	}
	port.Handler = world
	// First of all, by which whoever started it finds the port.
	first := world.FirstTokens()
	err = s.parent.Listening(cmd.OutOrStdout(), url, command.FirstLine{API: url + "/api/v1", Organization: s.notGiven(first)})
	if err != nil {
		return errors.Join(err, world.Close())
	}
	out := s.parent.Notices(cmd)
	if key.made != "" {
		foreign.Printf(out, "made the master key %s; keep it: the secrets in %s cannot be read without it\n", key.made, s.Config.Dir)
	}
	if !s.parent.AsJSON {
		s.printFirst(out, first)
	}
	if err = s.plant(cmd.Context(), out, world, seed); err == nil {
		err = port.Serve(cmd.Context(), ln) // Close waits for the runs
	}
	// A fault that no call met means that a test did not test what it meant to.
	for _, f := range world.Faults().Unfired() {
		foreign.Printf(out, "fault %s (%s) never fired; its filters let %d through\n", f.ID, f.Fault.Kind, f.Matched)
	}
	// The first error is the one that explains the others.
	if failed := world.Close(); err == nil && failed != nil {
		err = exit.Untested(failed)
	}
	return err
}

// notGiven is first without the tokens that the environment gave.
func (s *Flags) notGiven(first *server.Tokens) *server.Tokens {
	if first == nil {
		return nil
	}
	shown := *first
	if s.Config.PersonalAccessToken != "" {
		shown.PersonalAccessToken = ""
	}
	if s.Config.WorkspaceAPIKey != "" {
		shown.WorkspaceAPIKey = ""
	}
	return &shown
}

// printFirst shows what the first start has made, once.
func (s *Flags) printFirst(out io.Writer, first *server.Tokens) {
	if first == nil {
		return
	}
	foreign.Printf(out, "organization: %d\nuser: %d %s\nworkspace: %d\n", first.OrganizationID, first.UserID, first.Email, first.WorkspaceID)
	show := func(what, token, given, variable string) {
		// Who has set a token knows it; output ends up in logs.
		if given != "" {
			token = "the one in " + variable
		}
		foreign.Printf(out, "%s: %s\n", what, token)
	}
	show("personal access token", first.PersonalAccessToken, s.Config.PersonalAccessToken, command.AccessTokenVariable)
	show("workspace API key", first.WorkspaceAPIKey, s.Config.WorkspaceAPIKey, command.WorkspaceKeyVariable)
	if s.Config.Dir != "" {
		foreign.Printf(out, "shown once; for others: destkit serve new-token --data %s\n", s.Config.Dir)
	}
}

// logger writes entries of at least this level to standard error; nil for none.
func logger(w io.Writer, level, format string) (*slog.Logger, error) {
	if format != "text" && format != "json" {
		return nil, exit.Usagef("--log-format %q is neither text nor json", format)
	}
	if level == "off" {
		return nil, nil
	}
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, exit.Usagef("--log-level %q is none of debug, info, warn, error, off", level)
	}
	options := &slog.HandlerOptions{Level: least}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if format == "json" {
		handler = slog.NewJSONHandler(w, options)
	}
	return slog.New(handler), nil
}
