package sealing

import "github.com/destkit/destkit/server/internal/store/sqlite"

// Column holds sealed values, or NULL; Workspace is the column of their owner.
type Column struct{ Table, Column, Workspace string }

// Rewrap wraps all data keys by a new master key. Sealed values stay as they are.
func (k *Keys) Rewrap(master Master) error {
	keys, err := readKeys(k.db.Query, "1 = 1")
	if err != nil {
		return err
	}
	for _, w := range keys {
		key, err := w.open(k.ring.masterKey())
		if err != nil {
			return err
		}
		sealed := encrypt(master.gcm, key, wrapPlace(w.id, w.workspace))
		if _, err := k.db.Exec("UPDATE data_keys SET wrapped = ? WHERE id = ?", sealed, w.id); err != nil {
			return err
		}
	}
	return nil
}

// Rotate makes new data keys and seals the values of all columns again. The workspaces'
// old keys are destroyed; the installation's are kept to open texts in old logs.
func (k *Keys) Rotate(columns []Column) error {
	old, err := readKeys(k.db.Query, "1 = 1")
	if err != nil {
		return err
	}
	if _, err := k.db.Exec("UPDATE data_keys SET retired = 1"); err != nil {
		return err
	}
	if _, err := k.newDataKey(0); err != nil {
		return err
	}
	for _, c := range columns {
		if err := k.reseal(c); err != nil {
			return err
		}
	}
	for _, w := range old {
		if w.workspace == 0 {
			continue
		}
		if _, err := k.db.Exec("DELETE FROM data_keys WHERE id = ?", w.id); err != nil {
			return err
		}
	}
	return nil
}

func (k *Keys) reseal(column Column) error {
	type value struct {
		at        Place
		workspace int64
		sealed    []byte
	}
	var values []value
	err := k.db.Query("SELECT id, "+column.Workspace+", "+column.Column+" FROM "+column.Table+" WHERE "+column.Column+" IS NOT NULL", func(c sqlite.Row) error {
		id, _ := c.Number(0)
		workspace, _ := c.Number(1)
		values = append(values, value{Place{column.Table, id, column.Column}, workspace, c.Blob(2)})
		return nil
	})
	if err != nil {
		return err
	}
	for _, v := range values {
		plain, err := k.unseal(v.at, v.sealed)
		if err != nil {
			return err
		}
		if err := k.Put(v.workspace, v.at, plain); err != nil {
			return err
		}
	}
	return nil
}
