package store

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/destkit/destkit/server/internal/store/database"
	"github.com/destkit/destkit/server/internal/store/sealing"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// RotateMasterKey wraps all data keys by a new master key (32 bytes), which is
// needed from then on. Sealed values stay as they are. While other processes work on
// a shared store it is refused with *OwnedError: they have the old key.
func (s *Store) RotateMasterKey(ctx context.Context, newKey []byte) error {
	master, err := sealing.NewMaster(newKey)
	if err != nil {
		return fmt.Errorf("rotate master key: %w", err)
	}
	release, err := s.takeAll(ctx)
	if err != nil {
		return fmt.Errorf("rotate master key: %w", err)
	}
	defer release()
	err = s.change(ctx, func(tx *Tx) error {
		if err := tx.alone(); err != nil {
			return err
		}
		if err := tx.keys.Rewrap(master); err != nil {
			return err
		}
		return tx.replacedKeys()
	})
	if err != nil {
		return fmt.Errorf("rotate master key: %w", err)
	}
	s.keys.Replace(master)
	return s.reopenKeys(ctx)
}

// alone fails while processes work on a shared store: those that were seen in the
// last seconds.
func (tx *Tx) alone() error {
	if !tx.store.Shared() {
		return nil
	}
	var others []string
	err := tx.query("SELECT id, address FROM processes WHERE seen > clock_timestamp() - interval '10 seconds' ORDER BY id", func(c database.Cells) error {
		others = append(others, cmp.Or(c.Text(1), c.Text(0)))
		return nil
	})
	if err == nil && len(others) > 0 {
		err = &OwnedError{Owner: strings.Join(others, ", "), Schema: tx.store.Schema()}
	}
	return err
}

// sealedColumns are all columns with sealed values, and where their workspace
// stands.
var sealedColumns = []sealing.Column{
	{Table: "workspaces", Column: "sealed_key", Workspace: "id"},
	{Table: "destinations", Column: "sealed_credentials", Workspace: "workspace_id"},
	{Table: "sources", Column: "sealed_credentials", Workspace: "workspace_id"},
	{Table: "webhooks", Column: "sealed_endpoint", Workspace: "workspace_id"},
	{Table: "webhooks", Column: "sealed_secret", Workspace: "workspace_id"},
	{Table: "links", Column: "sealed_token", Workspace: "workspace_id"},
}

// RotateDataKeys makes new data keys and seals every value again. The workspaces'
// old keys are destroyed; the installation's are kept to open texts in old logs.
// Other processes of a shared store go on with the new ones.
func (s *Store) RotateDataKeys(ctx context.Context) error {
	release, err := s.takeAll(ctx)
	if err != nil {
		return fmt.Errorf("rotate data keys: %w", err)
	}
	defer release()
	err = s.change(ctx, func(tx *Tx) error {
		if err := tx.keys.Rotate(sealedColumns); err != nil {
			return err
		}
		return tx.replacedKeys()
	})
	if err != nil {
		return fmt.Errorf("rotate data keys: %w", err)
	}
	s.keys.Forget()
	return s.reopenKeys(ctx)
}

// reopenKeys follows a rotation that is committed, so it does not give up
// halfway. It empties the write-ahead log, where pages with the old keys may
// stand; while another process makes a backup they stay until the log is
// overwritten.
func (s *Store) reopenKeys(ctx context.Context) error {
	if c, ok := s.writing.(*sqlite.Conn); ok {
		_ = c.Checkpoint()
	}
	return s.change(context.WithoutCancel(ctx), (*Tx).openKeys)
}

// replacedKeys lets the other processes of a shared store drop the keys that they
// keep.
func (tx *Tx) replacedKeys() error {
	if !tx.store.Shared() {
		return nil
	}
	_, err := tx.exec("UPDATE installation SET keys = keys + 1")
	return err
}
