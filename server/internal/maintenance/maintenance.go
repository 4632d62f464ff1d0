// Package maintenance owns what is done with the data of a service while the service does
// not run, or beside it: backups, other keys, new tokens. It opens the store alone, and
// refuses to know what else a service has.
package maintenance

import (
	"context"

	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/store/postgres"
)

// Place is where a service keeps its data: a directory, or a schema
// in PostgreSQL where Store is set.
type Place struct{ Dir, Store, StorePassword string }

func (p Place) options() store.Options {
	return store.Options{Dir: p.Dir, URL: p.Store, Password: p.StorePassword}
}

// Schema returns the schema that the URL of the store names. Its errors are
// store.ErrUnfit, and never show the URL.
func (p Place) Schema() (string, error) {
	at, err := postgres.Parse(p.Store, p.StorePassword)
	return at.Schema, err
}

// Holds reports whether a service has kept data there: then it has a master key.
func (p Place) Holds(ctx context.Context) (bool, error) {
	if p.Store == "" {
		return p.Dir != "" && store.HoldsData(p.Dir), nil
	}
	return store.Holds(ctx, p.options())
}

// Backup copies the database of a place into the file to, which appears whole or
// not at all. The service may run meanwhile, and no key is needed. store.ErrUnfit: the
// file lies in the directory, or the place cannot be used.
func Backup(ctx context.Context, p Place, to string) error {
	if p.Store != "" {
		return store.BackupPostgres(ctx, p.options(), to)
	}
	return store.Backup(ctx, p.Dir, to)
}

// Maintenance is a place whose keys and tokens can be changed while no service has
// it open. A schema may be in use.
type Maintenance struct{ store *store.Store }

// Maintain opens a place that holds data. MasterKey is its key of 32 bytes; owner
// is what a process that finds it in use is told.
func Maintain(ctx context.Context, p Place, masterKey []byte, owner string) (*Maintenance, error) {
	options := p.options()
	options.MasterKey, options.Owner, options.Visit = masterKey, owner, true
	opened, err := store.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	return &Maintenance{opened}, nil
}

// Close gives the place back.
func (m *Maintenance) Close() error { return m.store.Close() }

// RotateKey puts another master key into force, in one transaction.
func (m *Maintenance) RotateKey(ctx context.Context, newKey []byte) error {
	return m.store.RotateMasterKey(ctx, newKey)
}

// RotateDataKeys seals every secret anew, under the master key in force.
func (m *Maintenance) RotateDataKeys(ctx context.Context) error { return m.store.RotateDataKeys(ctx) }

// Unseal opens a secret that was sealed for a log.
func (m *Maintenance) Unseal(token string) (string, error) { return m.store.UnsealText(token) }
