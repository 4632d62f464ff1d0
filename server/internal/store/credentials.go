package store

import (
	"encoding/json"
	"fmt"
)

// putCredentials seals the credentials of a connection; nil keeps what is there.
func (tx *Tx) putCredentials(workspaceID int64, table string, id int64, credentials map[string]json.RawMessage) error {
	if credentials == nil {
		return nil
	}
	text, err := json.Marshal(credentials)
	if err != nil {
		// The reason may quote a value, so it is not told.
		return fmt.Errorf("seal credentials of %s %d: a value is not JSON", table, id)
	}
	return tx.put(workspaceID, credentialsPlace(table, id), text)
}

func credentialsPlace(table string, id int64) place { return place{table, id, "sealed_credentials"} }

// credentials opens the credentials of a connection; nil when it has none.
func (tx *Tx) credentials(table string, id int64) (credentials map[string]json.RawMessage, err error) {
	text, err := tx.open(credentialsPlace(table, id))
	if err != nil || text == nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &credentials); err != nil {
		return nil, fmt.Errorf("read credentials of %s %d: not JSON", table, id)
	}
	return credentials, nil
}

// use says which rows hold on to another one.
type use struct {
	by    string
	query string // counts them by the id of what they use
}

// unused fails with *InUseError when a row is still in use.
func (tx *Tx) unused(kind string, id int64, uses ...use) error {
	for _, u := range uses {
		count, err := tx.number(u.query, id)
		if err != nil {
			return fmt.Errorf("delete %s %d: %w", kind, id, err)
		}
		if count > 0 {
			return &InUseError{Kind: kind, ID: id, By: u.by, Count: int(count)}
		}
	}
	return nil
}
