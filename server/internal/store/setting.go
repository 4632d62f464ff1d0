package store

import (
	"fmt"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// Setting reads a text that the caller keeps under a key; ErrNotFound when there
// is none.
func (tx *Tx) Setting(key string) (value string, err error) {
	found := false
	err = tx.query("SELECT value FROM settings WHERE key = ?", func(c sqlite.Row) error {
		found, value = true, c.Text(0)
		return nil
	}, key)
	if err == nil && !found {
		err = ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("read setting %s: %w", key, err)
	}
	return value, nil
}

// Settings reads all texts whose keys begin with a prefix, which holds neither % nor _.
func (tx *Tx) Settings(prefix string) (map[string]string, error) {
	found := map[string]string{}
	err := tx.query("SELECT key, value FROM settings WHERE key LIKE ?", func(c sqlite.Row) error {
		found[c.Text(0)] = c.Text(1)
		return nil
	}, prefix+"%")
	if err != nil {
		return nil, fmt.Errorf("read settings %s…: %w", prefix, err)
	}
	return found, nil
}

// SetSetting keeps a text under a key. It is not sealed.
func (tx *Tx) SetSetting(key, value string) error {
	_, err := tx.exec("INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", key, value)
	if err != nil {
		return fmt.Errorf("keep setting %s: %w", key, err)
	}
	return nil
}

// DeleteSetting forgets a key; one that is not there is no error.
func (tx *Tx) DeleteSetting(key string) error {
	if _, err := tx.exec("DELETE FROM settings WHERE key = ?", key); err != nil {
		return fmt.Errorf("delete setting %s: %w", key, err)
	}
	return nil
}
