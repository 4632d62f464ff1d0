package store

import "fmt"

// Setting reads a text that the caller keeps under a key; ErrNotFound when there
// is none.
func (tx *Tx) Setting(key string) (value string, err error) {
	found := false
	err = tx.query("SELECT value FROM settings WHERE key = ?", func(c cells) error {
		found, value = true, c.text(0)
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
