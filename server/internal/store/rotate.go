package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/destkit/destkit/server/internal/store/sealing"
	"github.com/destkit/destkit/server/internal/store/sqlite"
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

// putCredentials seals the credentials of a connection; nil keeps the stored ones.
func (tx *Tx) putCredentials(workspaceID int64, table string, id int64, credentials map[string]json.RawMessage) error {
	if credentials == nil {
		return nil
	}
	text, err := json.Marshal(credentials)
	if err != nil {
		// The reason may quote a value, so it is left out.
		return fmt.Errorf("seal credentials of %s %d: a value is not JSON", table, id)
	}
	return tx.keys.Put(workspaceID, credentialsPlace(table, id), text)
}

func credentialsPlace(table string, id int64) sealing.Place {
	return sealing.Place{Table: table, ID: id, Column: "sealed_credentials"}
}

// credentials opens the credentials of a connection; nil when it has none.
func (tx *Tx) credentials(table string, id int64) (credentials map[string]json.RawMessage, err error) {
	text, err := tx.keys.Open(credentialsPlace(table, id))
	if err != nil || text == nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &credentials); err != nil {
		return nil, fmt.Errorf("read credentials of %s %d: not JSON", table, id)
	}
	return credentials, nil
}

// openKeys opens the keys of the installation and makes the first one.
func (tx *Tx) openKeys() error { return tx.keys.OpenInstallation() }

// statements are what the keys of a transaction run.
type statements struct{ tx *Tx }

func (s statements) Exec(query string, args ...any) (int64, error) { return s.tx.exec(query, args...) }

func (s statements) Query(query string, each func(sqlite.Row) error, args ...any) error {
	return s.tx.query(query, each, args...)
}

func (s statements) Insert(query string, args ...any) (int64, error) {
	return s.tx.insert(query, args...)
}

// SealedPrefix begins every text that SealText made.
const SealedPrefix = sealing.SealedPrefix

// SealText makes a token that represents a secret text in logs; only this
// installation opens it, also after its keys were rotated. The same text gives
// another token each time.
func (s *Store) SealText(text string) (string, error) { return s.keys.SealText(text) }

// UnsealText opens a token of SealText.
func (s *Store) UnsealText(token string) (string, error) { return s.keys.UnsealText(token) }
