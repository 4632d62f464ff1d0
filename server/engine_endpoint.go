package server

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/destkit/destkit/server/store"
)

// endpointSetting holds a hash of the URL that a sync was last sent to as a
// whole.
func endpointSetting(syncID int64) string { return fmt.Sprintf("endpoint of sync %d", syncID) }

// endpoint is where a run sends to: a hash of the URL, "" for types without one.
type endpoint struct {
	now    string
	before string // "" at the first run
}

// moved tells whether everything must be sent again: what is behind another URL
// may know nothing of what was acknowledged (service.md: full sync).
func (e endpoint) moved() bool { return e.before != "" && e.before != e.now }

// endpointOf compares the URL of the destination with that of the last run that
// was completed.
func endpointOf(tx *store.Tx, syncID int64, credentials map[string]json.RawMessage) (e endpoint, err error) {
	var url string
	if json.Unmarshal(credentials["webhook_url"], &url) != nil {
		return e, nil
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", syncID, url))
	e.now = hex.EncodeToString(sum[:])
	if e.before, err = tx.Setting(endpointSetting(syncID)); errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return e, err
}

// keep remembers the URL. Only a completed run may: one that failed has left
// records that only the old URL has acknowledged.
func (e endpoint) keep(tx *store.Tx, syncID int64) error {
	if e.now == e.before {
		return nil
	}
	return tx.SetSetting(endpointSetting(syncID), e.now)
}
