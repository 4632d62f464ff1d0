package server

import (
	"context"

	"github.com/destkit/destkit/server/internal/binding"
	"github.com/destkit/destkit/server/internal/maintenance"
	"github.com/destkit/destkit/server/internal/store"
)

// Errors of opening a place, for errors.Is.
var (
	ErrWrongKey = store.ErrWrongKey
	ErrHasData  = store.ErrHasData
	ErrDamaged  = store.ErrDamaged
	// ErrLedger refuses to start on a ledger that is not that of the database.
	ErrLedger = binding.ErrLedger
	// ErrUnfit says that the place, the backup or the file to write has to be
	// another one.
	ErrUnfit = store.ErrUnfit
)

// Unfit reports whether err asks for another place or file: a newer version made
// the data, a file is not a backup, or the directory belongs to another store.
func Unfit(err error) bool { return store.Unfit(err) }

// InUseError says that other processes work on the place; Owner is what they said
// of themselves.
type InUseError = store.OwnedError

// SealedPrefix begins a secret that was sealed for a log.
const SealedPrefix = store.SealedPrefix

// DefaultSchema is the schema of a store whose URL names none.
const DefaultSchema = store.DefaultSchema

// Place is where a service keeps its data: as in Config, a directory, or a schema
// in PostgreSQL where Store is set. Maintenance is one whose keys and tokens can be
// changed while no service has it open; a schema may be in use.
type (
	Place       = maintenance.Place
	Maintenance = maintenance.Maintenance
)

// TokenRequest says whose token is made, IssuedTokens are tokens with their owners, and
// MissingError says that there is no such owner.
type (
	TokenRequest = maintenance.TokenRequest
	IssuedTokens = maintenance.IssuedTokens
	MissingError = maintenance.MissingError
)

// Backup copies the database of a place into the file to, which appears whole or
// not at all. The service may run meanwhile, and no key is needed. ErrUnfit: the
// file lies in the directory, or the place cannot be used.
func Backup(ctx context.Context, p Place, to string) error { return maintenance.Backup(ctx, p, to) }

// Maintain opens a place that holds data. MasterKey is its key of 32 bytes; owner
// is what a process that finds it in use is told.
func Maintain(ctx context.Context, p Place, masterKey []byte, owner string) (*Maintenance, error) {
	return maintenance.Maintain(ctx, p, masterKey, owner)
}
