package call

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"sync"

	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// Authenticate finds out who calls and whether the token is of the kind that
// the operation takes: 401 for no or an unknown token, 403 for the wrong kind.
func (k *Callers) Authenticate(c *Call) error {
	if c.Op.Auth == "" {
		return nil
	}
	if who, ok := c.R.Context().Value(principalKey{}).(Principal); ok {
		c.Who = who
		return permitted(c)
	}
	token, err := Bearer(c.R)
	if err != nil {
		return err
	}
	if err := k.identify(c, token); err != nil {
		return err
	}
	return permitted(c)
}

// principalKey marks the context of a request whose caller is known.
type principalKey struct{}

// WithPrincipal is the context of a request that the console makes for its user: it has
// no token, and nothing that comes over the network can be marked so.
func WithPrincipal(ctx context.Context, who Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, who)
}

// permitted reports whether who calls may call this operation.
func permitted(c *Call) error {
	switch {
	// 403 and not 401: the token is good, so trying another of its kind cannot
	// help.
	case c.Op.Auth == AuthWorkspace && c.Who.Workspace == nil:
		return problem.Refuse(http.StatusForbidden, "a personal access token does not open this; use the API key of the workspace")
	case c.Op.Auth == AuthOrganization && c.Who.User == nil:
		return problem.Refuse(http.StatusForbidden, "a workspace API key does not open this; use a personal access token")
	}
	return nil
}

// Callers keep who a token belongs to until anything in the store changes:
// reading clients are recognised without a query. The zero value knows no caller.
type Callers struct {
	mu         sync.RWMutex
	generation uint64
	known      map[[sha256.Size]byte]Principal
}

// maxCallers bounds the tokens that are kept.
const maxCallers = 10_000

// find answers only under the generation that the callers were read in: after
// any change a token may be worthless, or its user have another role.
func (k *Callers) find(generation uint64, hash [sha256.Size]byte) (Principal, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.generation != generation {
		return Principal{}, false
	}
	who, ok := k.known[hash]
	return who, ok
}

// keep starts again with the first caller of another generation, and when
// there is no more room.
func (k *Callers) keep(generation uint64, hash [sha256.Size]byte, who Principal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || k.generation != generation || len(k.known) >= maxCallers {
		k.generation, k.known = generation, map[[sha256.Size]byte]Principal{}
	}
	k.known[hash] = who
}

// identify fills c.Who.
func (k *Callers) identify(c *Call, token string) error {
	generation, hash := c.Shared.Store.Generation(), sha256.Sum256([]byte(token))
	if who, ok := k.find(generation, hash); ok {
		c.Who = who
		return nil
	}
	if err := lookUp(c, token); err != nil {
		return err
	}
	k.keep(generation, hash, c.Who)
	return nil
}

// lookUp finds the token in the store.
func lookUp(c *Call, token string) error {
	return c.View(func(tx *store.Tx) error {
		workspace, err := tx.WorkspaceByKey(token)
		if err == nil {
			c.Who = Principal{Workspace: workspace, OrganizationID: workspace.OrganizationID, WorkspaceID: workspace.ID}
			return nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		user, err := tx.AccessTokenOwner(token)
		if errors.Is(err, store.ErrNotFound) {
			return problem.Refuse(http.StatusUnauthorized, "the token is unknown")
		}
		if err != nil {
			return err
		}
		c.Who = Principal{User: user, OrganizationID: user.OrganizationID}
		return nil
	})
}
