package sources

import (
	"context"
	"errors"
	"fmt"

	"github.com/destkit/destkit/server/internal/store"
)

// Rediscover brings the stored tables up to date with the source. Calls at the
// same time share one attempt, which no single client can end. The error holds
// no secret.
func (k *Sources) Rediscover(ctx context.Context, a Access) error {
	discover := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, Timeout)
		defer cancel()
		tables, err := a.tables(ctx)
		if err != nil {
			return errors.New(a.Clean(err.Error()))
		}
		return k.Shared.Store.Update(ctx, func(tx *store.Tx) error {
			if changed, err := a.Changed(tx); changed || err != nil {
				return err
			}
			return tx.PutSourceTables(a.ID, tables)
		})
	}
	return k.plans.Once(ctx, k.Work.Later, fmt.Sprintf("tables of source %d", a.ID), discover)
}

// Changed reports whether the connection changed after the call: its update
// has discovered the tables of the new one.
func (a Access) Changed(tx *store.Tx) (bool, error) {
	src, err := store.Sources.Read(tx, a.workspaceID, a.ID)
	if err != nil {
		return false, err
	}
	return src.Version != a.version, nil
}
