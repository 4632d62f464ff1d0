package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// endpointSetting holds a hash of the place that a sync was last sent to.
func endpointSetting(syncID int64) string { return fmt.Sprintf("endpoint of sync %d", syncID) }

// Endpoint is where a run sends to: a hash of the place, "" for types without one.
type Endpoint struct {
	now    string
	before string // "" at the first run
}

// moved reports whether everything must be sent again: the system behind another
// URL may lack acknowledged records.
func (e Endpoint) moved() bool { return e.before != "" && e.before != e.now }

// endpointOf compares the URL of the destination with that of the last run that
// was completed.
func endpointOf(tx *store.Tx, syncID int64, credentials map[string]json.RawMessage) (e Endpoint, err error) {
	var address string
	if json.Unmarshal(credentials["webhook_url"], &address) != nil {
		return e, nil
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", syncID, withoutSecrets(address)))
	e.now = hex.EncodeToString(sum[:])
	e.before, err = setting(tx, endpointSetting(syncID))
	return e, err
}

// setting is a setting of the store; "" where there is none.
func setting(tx *store.Tx, name string) (string, error) {
	text, err := tx.Setting(name)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return text, err
}

// withoutSecrets is a URL without what in it may be a secret (spec 5.2.3): a new secret
// leads to the same destination. The query never counts. Of the path the segments that
// cannot be guessed are left out; the others distinguish endpoints of one host.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	var path []string
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment != "" && !unguessable(segment) {
			path = append(path, segment)
		}
	}
	return strings.ToLower(u.Scheme+"://"+u.Host) + "/" + strings.Join(path, "/")
}

// secretSegment is the least length of a path segment that is taken for a secret.
const secretSegment = 16

// unguessable reports whether a segment looks like a secret: it is long, and mixes
// digits with letters, as words and numbers of versions do not.
func unguessable(segment string) bool {
	return len(segment) >= secretSegment && strings.ContainsAny(segment, "0123456789") &&
		strings.ContainsFunc(segment, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' })
}

// Keep remembers the URL. Only a completed run may: one that failed has left
// records that only the old URL has acknowledged.
func (e Endpoint) Keep(tx *store.Tx, syncID int64) error {
	if e.now == e.before {
		return nil
	}
	return tx.SetSetting(endpointSetting(syncID), e.now)
}

// Resend makes a full sync of a run to another URL. Syncs that send each record once have none.
func (k *Planner) Resend(job *executor.Job, to Endpoint) {
	if to.moved() && !k.Deviations.KeepsURL && !executor.SentOnce(&job.Config) {
		job.Full, job.FullReason = true, "the URL of the destination has changed"
	}
}

// ForgetEndpoint drops the settings that a sync keeps for its next run.
func ForgetEndpoint(tx *store.Tx, syncID int64) error {
	return errors.Join(tx.DeleteSetting(endpointSetting(syncID)), tx.DeleteSetting(mergedSetting(syncID)))
}
