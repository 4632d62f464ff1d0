// Package maintenance owns what is done with the data of a service while the service does
// not run: other keys, new tokens. It opens the store alone, and
// refuses to know what else a service has.
package maintenance

import (
	"context"

	"github.com/destkit/destkit/server/internal/store"
)

// Maintenance is a data directory whose keys and tokens can be changed while no service
// has it open.
type Maintenance struct{ store *store.Store }

// Maintain opens a directory that holds data. MasterKey is its key of 32 bytes; owner
// is what a process that finds it in use is told.
func Maintain(ctx context.Context, dir string, masterKey []byte, owner string) (*Maintenance, error) {
	opened, err := store.Open(ctx, store.Options{Dir: dir, MasterKey: masterKey, Owner: owner})
	if err != nil {
		return nil, err
	}
	return &Maintenance{opened}, nil
}

// Close gives the directory back.
func (m *Maintenance) Close() error { return m.store.Close() }

// RotateKey puts another master key into force, in one transaction.
func (m *Maintenance) RotateKey(ctx context.Context, newKey []byte) error {
	return m.store.RotateMasterKey(ctx, newKey)
}

// RotateDataKeys seals every secret anew, under the master key in force.
func (m *Maintenance) RotateDataKeys(ctx context.Context) error { return m.store.RotateDataKeys(ctx) }

// Unseal opens a secret that was sealed for a log.
func (m *Maintenance) Unseal(token string) (string, error) { return m.store.UnsealText(token) }
