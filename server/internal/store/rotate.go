package store

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/destkit/destkit/server/internal/store/database"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// RotateMasterKey wraps all data keys by a new master key (32 bytes), which is
// needed from then on. Sealed values stay as they are. While other processes work on
// a shared store it is refused with *OwnedError: they have the old key.
func (s *Store) RotateMasterKey(ctx context.Context, newKey []byte) error {
	master, err := newGCM(newKey)
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
		keys, err := readKeys(tx.query, "1 = 1")
		if err != nil {
			return err
		}
		for _, w := range keys {
			key, err := w.open(tx.store.keys.masterKey())
			if err != nil {
				return err
			}
			sealed := encrypt(master, key, wrapPlace(w.id, w.workspace))
			if _, err := tx.exec("UPDATE data_keys SET wrapped = ? WHERE id = ?", sealed, w.id); err != nil {
				return err
			}
		}
		return tx.replacedKeys()
	})
	if err != nil {
		return fmt.Errorf("rotate master key: %w", err)
	}
	s.keys.forget(master)
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
var sealedColumns = []struct{ table, column, workspace string }{
	{"workspaces", "sealed_key", "id"},
	{"destinations", "sealed_credentials", "workspace_id"},
	{"sources", "sealed_credentials", "workspace_id"},
	{"webhooks", "sealed_endpoint", "workspace_id"},
	{"webhooks", "sealed_secret", "workspace_id"},
	{"links", "sealed_token", "workspace_id"},
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
	if err := s.change(ctx, (*Tx).rotateDataKeys); err != nil {
		return fmt.Errorf("rotate data keys: %w", err)
	}
	s.keys.forget(nil)
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
	return s.change(context.WithoutCancel(ctx), (*Tx).openInstallation)
}

func (tx *Tx) rotateDataKeys() error {
	old, err := readKeys(tx.query, "1 = 1")
	if err != nil {
		return err
	}
	if _, err := tx.exec("UPDATE data_keys SET retired = 1"); err != nil {
		return err
	}
	if _, err := tx.newDataKey(0); err != nil {
		return err
	}
	for _, c := range sealedColumns {
		if err := tx.resealColumn(c.table, c.column, c.workspace); err != nil {
			return err
		}
	}
	for _, w := range old {
		if w.workspace == 0 {
			continue
		}
		if _, err := tx.exec("DELETE FROM data_keys WHERE id = ?", w.id); err != nil {
			return err
		}
	}
	return tx.replacedKeys()
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

func (tx *Tx) resealColumn(table, column, workspace string) error {
	type value struct {
		at        place
		workspace int64
		sealed    []byte
	}
	var values []value
	err := tx.query("SELECT id, "+workspace+", "+column+" FROM "+table+" WHERE "+column+" IS NOT NULL", func(c database.Cells) error {
		s := scan{cells: c}
		at := place{table: table, id: s.number(), column: column}
		values = append(values, value{at, s.number(), s.blob()})
		return nil
	})
	if err != nil {
		return err
	}
	for _, v := range values {
		plain, err := tx.unseal(v.at, v.sealed)
		if err != nil {
			return err
		}
		if err := tx.put(v.workspace, v.at, plain); err != nil {
			return err
		}
	}
	return nil
}
