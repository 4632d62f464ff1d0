// Package maintenance owns offline work on the data of a service: other keys, new tokens.
// It opens only the store, and refuses to know the other parts of a service.
package maintenance

import (
	"context"

	"github.com/destkit/destkit/server/internal/store"
)

// Maintenance is a data directory whose keys and tokens can be changed while no service
// has it open.
type Maintenance struct{ store *store.Store }

// Maintain opens a directory that holds data. MasterKey is its key of 32 bytes; owner
// is shown to a process that finds it in use.
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

// RotateDataKeys seals every secret again, under the master key in force.
func (m *Maintenance) RotateDataKeys(ctx context.Context) error { return m.store.RotateDataKeys(ctx) }

// Unseal opens a secret that was sealed for a log.
func (m *Maintenance) Unseal(token string) (string, error) { return m.store.UnsealText(token) }
