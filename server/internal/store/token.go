package store

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"time"
)

// AccessToken is a personal access token, of which only a hash is kept.
type AccessToken struct {
	Row
	UserID int64
	Label  string

	hash []byte
}

var accessTokens = define(Table[AccessToken]{
	name: "access_tokens", kind: "access token", scope: "user_id",
	columns: []string{"user_id", "label", "hash"},
	cells: func(t *AccessToken) []any {
		return []any{&t.UserID, &t.Label, &t.hash}
	},
	duplicate: func(*AccessToken) (string, string) { return "text", "" },
})

func hashOf(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// newSecret makes 256 random bits as text.
func (tx *Tx) newSecret(prefix string) (string, error) {
	var secret [32]byte
	if _, err := io.ReadFull(tx.store.random, secret[:]); err != nil {
		return "", fmt.Errorf("make token: %w", err)
	}
	return prefix + base64.RawURLEncoding.EncodeToString(secret[:]), nil
}

// NewAccessToken makes a personal access token; its text is not kept.
func (tx *Tx) NewAccessToken(userID int64, label string) (token string, err error) {
	if token, err = tx.newSecret("pat_"); err != nil {
		return "", err
	}
	return token, accessTokens.Create(tx, &AccessToken{UserID: userID, Label: label, hash: hashOf(token)})
}

// AdoptAccessToken makes a given token one of the user; again for the same user
// changes nothing, for another one it is a *DuplicateError.
func (tx *Tx) AdoptAccessToken(userID int64, token string) error {
	owner, err := tx.number("SELECT user_id FROM access_tokens WHERE hash = ?", hashOf(token))
	if err != nil || owner == userID {
		return err
	}
	return accessTokens.Create(tx, &AccessToken{UserID: userID, Label: "adopted", hash: hashOf(token)})
}

// AccessTokenOwner finds the user of a token.
func (tx *Tx) AccessTokenOwner(token string) (*User, error) {
	return Users.one(tx, "id = (SELECT user_id FROM access_tokens WHERE hash = ?)", hashOf(token))
}

// Refresh is one reading of metadata that a client can query: Kind is what
// (RefreshObjects of a destination, RefreshTables of a source, RefreshColumns of
// a table) and TargetID of which.
type Refresh struct {
	Row
	WorkspaceID int64
	Kind        string
	TargetID    int64
	Status      string
	Error       string // "" unless it failed
	StartedAt   time.Time
	CompletedAt time.Time // zero while it is under way
}

// The kinds and states of a refresh.
const (
	RefreshObjects = "objects"
	RefreshTables  = "tables"
	RefreshColumns = "columns"
	RefreshDataset = "dataset"

	RefreshProcessing = "processing"
	RefreshCompleted  = "completed"
	RefreshFailed     = "failed"
)

// Key is the key of a client's query.
func (r *Refresh) Key() int64 { return r.ID }

// Refreshes belong to a workspace.
var Refreshes = define(Table[Refresh]{
	name: "refreshes", kind: "refresh", scope: "workspace_id",
	columns: []string{"workspace_id", "kind", "target_id", "status", "error", "started_at", "completed_at"},
	cells: func(r *Refresh) []any {
		return []any{&r.WorkspaceID, &r.Kind, &r.TargetID, &r.Status, &r.Error, &r.StartedAt, &r.CompletedAt}
	},
	begin: func(tx *Tx, r *Refresh) {
		if r.StartedAt.IsZero() {
			r.StartedAt = tx.now
		}
		if r.Status == "" {
			r.Status = RefreshProcessing
		}
	},
})

// Refresh reads a refresh of that kind and target.
func (tx *Tx) Refresh(kind string, targetID, key int64) (*Refresh, error) {
	return Refreshes.one(tx, "id = ? AND kind = ? AND target_id = ?", key, kind, targetID)
}

// LastRefresh is when the last refresh of a target that succeeded had ended; zero
// when there was none.
func (tx *Tx) LastRefresh(kind string, targetID int64) (at time.Time, err error) {
	r, err := Refreshes.some(tx, "kind = ? AND target_id = ? AND status = ? ORDER BY completed_at DESC LIMIT 1", kind, targetID, RefreshCompleted)
	if err != nil || len(r) == 0 {
		return at, err
	}
	return r[0].CompletedAt, nil
}

// AbandonRefreshes fails every refresh that a stopped process, or the state of a snapshot,
// has left under way.
func (tx *Tx) AbandonRefreshes() error {
	_, err := tx.exec(`UPDATE refreshes SET status = 'failed', error = ?, completed_at = ?, updated_at = ?,
		version = version + 1 WHERE status = 'processing'`, "the service was stopped", tx.now, tx.now)
	if err != nil {
		return fmt.Errorf("abandon refreshes: %w", err)
	}
	return nil
}
