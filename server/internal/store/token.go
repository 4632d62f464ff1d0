package store

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
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
