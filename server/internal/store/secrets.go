package store

import (
	"encoding/json"
	"fmt"

	"github.com/destkit/destkit/server/internal/store/sealing"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

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
