package store

import (
	"context"
	"fmt"

	"github.com/destkit/destkit/server/internal/store/sealing"
)

// RotateMasterKey wraps all data keys by a new master key (32 bytes), which is
// needed from then on. Sealed values stay as they are.
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
	err = s.change(ctx, func(tx *Tx) error { return tx.keys.Rewrap(master) })
	if err != nil {
		return fmt.Errorf("rotate master key: %w", err)
	}
	s.keys.Replace(master)
	return s.reopenKeys(ctx)
}

// sealedColumns are all columns with sealed values, with the column of their
// workspace.
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
func (s *Store) RotateDataKeys(ctx context.Context) error {
	release, err := s.takeAll(ctx)
	if err != nil {
		return fmt.Errorf("rotate data keys: %w", err)
	}
	defer release()
	err = s.change(ctx, func(tx *Tx) error { return tx.keys.Rotate(sealedColumns) })
	if err != nil {
		return fmt.Errorf("rotate data keys: %w", err)
	}
	s.keys.Forget()
	return s.reopenKeys(ctx)
}

// reopenKeys follows a rotation that is committed, so it does not give up
// halfway. It empties the write-ahead log, where pages with the old keys may
// remain; while another process makes a backup they stay until the log is
// overwritten.
func (s *Store) reopenKeys(ctx context.Context) error {
	_ = s.writing.Checkpoint()
	return s.change(context.WithoutCancel(ctx), (*Tx).openKeys)
}
