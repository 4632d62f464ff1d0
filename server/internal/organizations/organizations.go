// Package organizations owns the initial contents of an organization and its data
// outside the store: how one is made, deleted and taken back to its beginning, and which
// of them are of who runs the service.
package organizations

import (
	"context"

	"github.com/destkit/destkit/server/internal/background"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// Organizations makes and deletes them, with all that they keep outside the store. The
// fields are its dependencies.
type Organizations struct {
	Shared  *call.Shared
	Work    *background.Work
	Sources *sources.Sources
	Gate    *destination.Gate
	Syncs   Syncs
}

// Syncs ends what is done for syncs.
type Syncs interface {
	// Halt ends what a sync does, and drops its ledger.
	Halt(id int64) error
	// Forget does so for one that is deleted, and drops its leftovers.
	Forget(id int64) error
}

// Make makes an organization in one transaction.
func (k *Organizations) Make(ctx context.Context, wish Wish) (made *Made, err error) {
	err = k.Shared.Store.Update(ctx, func(tx *store.Tx) error {
		first, err := Begin(tx, wish.Name, wish.Email, wish.Workspaces[0])
		if err == nil && wish.Own {
			err = adopt(tx, first.OrganizationID)
		}
		if err != nil {
			return err
		}
		made = &Made{*first, []WorkspaceTokens{{first.WorkspaceID, wish.Workspaces[0], first.WorkspaceAPIKey}}}
		for _, name := range wish.Workspaces[1:] {
			w, err := openWorkspace(tx, first.OrganizationID, first.UserID, name)
			if err != nil {
				return err
			}
			made.Workspaces = append(made.Workspaces, w)
		}
		return nil
	})
	return made, err
}

// Delete deletes an organization with all that it keeps outside.
func (k *Organizations) Delete(ctx context.Context, id int64) error {
	return k.clear(ctx, id, func(tx *store.Tx) error { return tx.DeleteOrganization(id) })
}

// Reset takes an organization back to how it was made: a client goes on with the
// tokens that it has.
func (k *Organizations) Reset(ctx context.Context, id int64) error {
	return k.clear(ctx, id, func(tx *store.Tx) error { return tx.ResetOrganization(id) })
}

// ResetAll takes the first organization back and deletes the others. Drop removes
// their data outside the store.
func (k *Organizations) ResetAll(ctx context.Context) (left Outside, err error) {
	err = k.Shared.Store.Update(ctx, func(tx *store.Tx) error {
		first, err := First(tx)
		if err != nil {
			return err
		}
		all, err := store.Every(tx.Organizations)
		if err != nil {
			return err
		}
		for _, o := range all {
			if err := left.Gather(tx, o.ID); err != nil {
				return err
			}
			if o.ID == first {
				err = tx.ResetOrganization(o.ID)
			} else {
				err = tx.DeleteOrganization(o.ID)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return left, err
}

// clear runs a change that deletes, then drops what stood outside.
func (k *Organizations) clear(ctx context.Context, id int64, change func(*store.Tx) error) error {
	var left Outside
	err := k.Shared.Store.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.Organization(id); err != nil {
			return err
		}
		if err := left.Gather(tx, id); err != nil {
			return err
		}
		return change(tx)
	})
	if err != nil {
		return err
	}
	// After the commit: a failed transaction must leave the files alone, and
	// files without a row are only litter.
	return k.Drop(left)
}
