package server

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"sync"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// authenticate finds out who calls and whether the token is of the kind that
// the operation takes: 401 for no or an unknown token, 403 for the wrong kind.
func (s *Server) authenticate(c *call.Call) error {
	if c.Op.Auth == "" {
		return nil
	}
	if who, ok := c.R.Context().Value(consolePrincipal{}).(call.Principal); ok {
		c.Who = who
		return permitted(c)
	}
	token, err := call.Bearer(c.R)
	if err != nil {
		return err
	}
	if err := s.identify(c, token); err != nil {
		return err
	}
	return permitted(c)
}

// consolePrincipal marks the context of a request that the console makes for its user:
// it has no token, and nothing that comes over the network can be marked so.
type consolePrincipal struct{}

// permitted reports whether who calls may call this operation.
func permitted(c *call.Call) error {
	switch {
	// 403 and not 401: the token is good, so trying another one of its kind is
	// no use.
	case c.Op.Auth == call.AuthWorkspace && c.Who.Workspace == nil:
		return problem.Refuse(http.StatusForbidden, "a personal access token does not open this; use the API key of the workspace")
	case c.Op.Auth == call.AuthOrganization && c.Who.User == nil:
		return problem.Refuse(http.StatusForbidden, "a workspace API key does not open this; use a personal access token")
	}
	return nil
}

// callers keeps who a token belongs to until anything in the store changes:
// reading clients are recognised without a query.
type callers struct {
	mu         sync.RWMutex
	generation uint64
	known      map[[sha256.Size]byte]call.Principal
}

// maxCallers bounds the tokens that are kept.
const maxCallers = 10_000

// find answers only under the generation that the callers were read in: after
// any change a token may be worthless, or its user have another role.
func (k *callers) find(generation uint64, hash [sha256.Size]byte) (call.Principal, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.generation != generation {
		return call.Principal{}, false
	}
	who, ok := k.known[hash]
	return who, ok
}

// keep starts anew with the first caller of another generation, and when there
// is no more room.
func (k *callers) keep(generation uint64, hash [sha256.Size]byte, who call.Principal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || k.generation != generation || len(k.known) >= maxCallers {
		k.generation, k.known = generation, map[[sha256.Size]byte]call.Principal{}
	}
	k.known[hash] = who
}

// identify fills c.who.
func (s *Server) identify(c *call.Call, token string) error {
	generation, hash := s.store.Generation(), sha256.Sum256([]byte(token))
	if who, ok := s.callers.find(generation, hash); ok {
		c.Who = who
		return nil
	}
	if err := s.lookUp(c, token); err != nil {
		return err
	}
	s.callers.keep(generation, hash, c.Who)
	return nil
}

// lookUp finds the token in the store.
func (s *Server) lookUp(c *call.Call, token string) error {
	return c.View(func(tx *store.Tx) error {
		workspace, err := tx.WorkspaceByKey(token)
		if err == nil {
			c.Who = call.Principal{Workspace: workspace, OrganizationID: workspace.OrganizationID, WorkspaceID: workspace.ID}
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
		c.Who = call.Principal{User: user, OrganizationID: user.OrganizationID}
		return nil
	})
}
