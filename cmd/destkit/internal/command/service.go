package command

import (
	"fmt"
	"net/url"
	"strings"
)

// Environment variables of the service that hold secrets; none of them is ever
// printed.
const (
	AccessTokenVariable   = "DESTKIT_PERSONAL_ACCESS_TOKEN"
	WorkspaceKeyVariable  = "DESTKIT_WORKSPACE_API_KEY"
	MasterKeyVariable     = "DESTKIT_MASTER_KEY"
	StorePasswordVariable = "DESTKIT_STORE_PASSWORD" // goes with --store
)

// WithoutStorePassword says where a password is read from, when err says in these words
// that there was none.
func WithoutStorePassword(err error, words string) error {
	if !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), "authentication failed") {
		return err
	}
	return fmt.Errorf("%w; set %s", err, StorePasswordVariable)
}

// WithStorePassword puts the password of the environment into a URL of PostgreSQL that
// has none. What is no such URL stays as it is.
func WithStorePassword(store string) (string, error) {
	u, err := url.Parse(store)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.User == nil {
		return store, nil // whoever opens it says what is wrong
	}
	if _, given := u.User.Password(); given {
		return store, nil
	}
	password, err := OptionalSecret(StorePasswordVariable)
	if err != nil || password == "" {
		return store, err
	}
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String(), nil
}
