package server

import (
	"context"
	"fmt"
	"io"
	"reflect"

	"github.com/destkit/destkit/server/internal/binding"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/connectors"
	"github.com/destkit/destkit/server/internal/controlapi"
	"github.com/destkit/destkit/server/internal/inspect"
	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/maintenance"
	"github.com/destkit/destkit/server/internal/seed"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/audit"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// This file is what the package exports of its parts, which hold the documentation.

// Seeded is what a seed made, by the names in it. Tokens are shown once.
type Seeded = controlapi.Seeded

// CheckSeed reports whether a seed can be read at all, before there is a service to
// put it into. Only Seed checks the entries against the API.
func CheckSeed(file string, src []byte) error { return seed.Check(file, src) }

// Seed makes everything in a seed or, on an error, nothing, as who runs the service does
// at a start: its organizations are none of others (see Config.AllowFiles). file is used in
// messages only. An error names the place: file, line and column where the document cannot
// be read, the entry where the API refuses it.
func (s *Server) Seed(ctx context.Context, file string, src []byte) (*Seeded, error) {
	return s.seeds.Seed(ctx, file, src)
}

// Dialect selects whom the service resembles where its two authorities differ.
type Dialect string

// DialectSpec follows the specification to the letter, DialectLive what real
// clients were seen to depend on.
const (
	DialectSpec Dialect = "spec"
	DialectLive Dialect = "live"
)

// switched returns the switches of a dialect.
func (d Dialect) switched() (call.Switches, error) {
	switch d {
	case "", DialectSpec:
		return call.Switches{}, nil
	case DialectLive:
		return call.Live(), nil
	}
	return call.Switches{}, fmt.Errorf("choose dialect: %q is neither %s nor %s", string(d), DialectSpec, DialectLive)
}

// Stores for the records of emulated destination types (Config.Emulate): the
// service describes the objects of a type and gets a store that answers the custom
// destination protocol.
type (
	Emulator       = destination.Emulator
	Emulated       = destination.Emulated
	EmulatedObject = catalogue.EmulatedObject
)

// SMTP names the mail server that gets a copy of every e-mail. The zero value
// has none: e-mails are kept in the mailbox only.
type SMTP = lifecycle.SMTP

// The ways of SMTP.TLS to be encrypted, and the default of SMTP.Timeout.
const (
	SMTPStartTLS       = lifecycle.SMTPStartTLS // the default: STARTTLS or nothing is sent
	SMTPImplicit       = lifecycle.SMTPImplicit // TLS from the first byte, as on port 465
	SMTPPlain          = lifecycle.SMTPPlain    // for servers of tests; a password is then never sent in clear
	DefaultSMTPTimeout = lifecycle.DefaultSMTPTimeout
)

// DryRunRequest selects what to plan, and DryRun is what the next run of a sync would do.
type (
	DryRunRequest = inspect.DryRunRequest
	DryRun        = controlapi.DryRun
	DryRunRecord  = controlapi.DryRunRecord
)

// Explained is the way of one record through a run.
type (
	Explained         = controlapi.Explained
	ExplainedAttempt  = controlapi.ExplainedAttempt
	ExplainedExchange = controlapi.ExplainedExchange
)

// AuditRequest selects what to audit and how the destination is read.
type (
	AuditRequest = inspect.AuditRequest
	AuditHook    = inspect.AuditHook
)

// DryRun reports what the next run of a sync would do, using the code of a run. It
// sends and writes nothing, but fetches the cached objects of the destination again
// when they are old, as any reader does. It refuses a sync with an active run: what
// that sends is known only at its end.
func (s *Server) DryRun(ctx context.Context, id int64, q DryRunRequest) (*DryRun, error) {
	return s.inspect.DryRun(ctx, id, q)
}

// Explain reports one record's way through a run; with runID 0 through the
// latest run of the sync. identifier is JSON text or plain text.
func (s *Server) Explain(ctx context.Context, syncID, runID int64, identifier string) (*Explained, error) {
	return s.inspect.Explain(ctx, syncID, runID, identifier)
}

// Audit reads what the destination of a sync has stored and holds it against
// the ledger and the source. Nothing is changed. A sync that is not there, a
// request that is wrong, a source or a hook that cannot be read are errors;
// wrong records are in the report.
func (s *Server) Audit(ctx context.Context, q AuditRequest) (*audit.Report, error) {
	return s.inspect.Audit(ctx, q)
}

// Documents are the types of the YAML documents that a service reads, for schemas:
// "seed", and "connector", a declared type of destinations or sources.
func Documents() map[string]reflect.Type {
	return map[string]reflect.Type{"seed": reflect.TypeFor[seed.Document](), "connector": reflect.TypeFor[connectors.Declaration]()}
}

// Errors of opening a data directory, for errors.Is.
var (
	ErrWrongKey = store.ErrWrongKey
	ErrHasData  = store.ErrHasData
	ErrDamaged  = store.ErrDamaged
	// ErrLedger refuses to start on a ledger that is not that of the database.
	ErrLedger = binding.ErrLedger
	// ErrUnfit means that the directory, the backup or the file to write has to be
	// another one: a newer version made the data, or a file is not a backup.
	ErrUnfit = store.ErrUnfit
)

// InUseError means that another process works on the directory; Owner is how that
// process describes itself.
type InUseError = store.OwnedError

// SealedPrefix begins a secret that was sealed for a log.
const SealedPrefix = store.SealedPrefix

// Maintenance is a data directory whose keys and tokens can be changed while no service
// has it open.
type Maintenance = maintenance.Maintenance

// TokenRequest selects the owner of a token, MissingError means that there is no such owner.
type (
	TokenRequest = maintenance.TokenRequest
	MissingError = maintenance.MissingError
)

// HoldsData reports whether a service has kept data in a directory: then it has a master
// key.
func HoldsData(dir string) bool { return dir != "" && store.HoldsData(dir) }

// Backup copies the database of a data directory into the file to, which appears whole or
// not at all. The service may run meanwhile, and no key is needed. ErrUnfit: the file is
// in the directory, or the directory cannot be used.
func Backup(ctx context.Context, dir, to string) error { return store.Backup(ctx, dir, to) }

// Maintain opens a directory that holds data. MasterKey is its key of 32 bytes; owner
// is shown to a process that finds it in use.
func Maintain(ctx context.Context, dir string, masterKey []byte, owner string) (*Maintenance, error) {
	return maintenance.Maintain(ctx, dir, masterKey, owner)
}

// Snapshot writes the whole state. Runs stop between two batches and go on afterwards;
// calls wait while the state is copied. Settle first for a state in which nothing runs.
func (s *Server) Snapshot(ctx context.Context, w io.Writer) error { return s.snapshots.Write(ctx, w) }

// Restore replaces the whole state by that of a snapshot: all of it or, on an
// error, nothing. Calls wait meanwhile. Journals are emptied and faults taken
// away. Runs that were under way in the snapshot go on from where
// they stood. A snapshot under another master key is refused with ErrWrongKey.
func (s *Server) Restore(ctx context.Context, r io.Reader) error { return s.snapshots.Restore(ctx, r) }
