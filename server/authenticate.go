package server

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// principal is who calls: a user by a personal access token, or a workspace by
// its API key (spec 5.1). Exactly one of User and Workspace is set.
type principal struct {
	User           *store.User
	Workspace      *store.Workspace
	OrganizationID int64
	WorkspaceID    int64
}

// admin reports whether a user manages the organization. A workspace key never
// does: it belongs to no person.
func (p principal) admin() bool { return p.User != nil && p.User.Role == api.RoleAdmin }

// Kinds of a token as the document names them.
const (
	authWorkspace    = "workspace"
	authOrganization = "organization"
)

// authenticate finds out who calls and whether the token is of the kind that
// the operation takes: 401 for no or an unknown token, 403 for the wrong kind.
func (s *Server) authenticate(c *call) error {
	if c.op.Auth == "" {
		return nil
	}
	token, err := bearer(c.r)
	if err != nil {
		return err
	}
	if err := s.identify(c, token); err != nil {
		return err
	}
	switch {
	// 403 and not 401: the token is good, so trying another one of its kind is
	// no use.
	case c.op.Auth == authWorkspace && c.who.Workspace == nil:
		return problem.Refuse(http.StatusForbidden, "a personal access token does not open this; use the API key of the workspace")
	case c.op.Auth == authOrganization && c.who.User == nil:
		return problem.Refuse(http.StatusForbidden, "a workspace API key does not open this; use a personal access token")
	}
	return nil
}

// callers keeps who a token belongs to until anything in the store changes:
// reading clients are recognised without a query.
type callers struct {
	mu         sync.RWMutex
	generation uint64
	known      map[[sha256.Size]byte]principal
}

// maxCallers bounds the tokens that are kept.
const maxCallers = 10_000

// find answers only under the generation that the callers were read in: after
// any change a token may be worthless, or its user have another role.
func (k *callers) find(generation uint64, hash [sha256.Size]byte) (principal, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.generation != generation {
		return principal{}, false
	}
	who, ok := k.known[hash]
	return who, ok
}

// keep starts anew with the first caller of another generation, and when there
// is no more room.
func (k *callers) keep(generation uint64, hash [sha256.Size]byte, who principal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || k.generation != generation || len(k.known) >= maxCallers {
		k.generation, k.known = generation, map[[sha256.Size]byte]principal{}
	}
	k.known[hash] = who
}

// identify fills c.who.
func (s *Server) identify(c *call, token string) error {
	generation, hash := s.store.Generation(), sha256.Sum256([]byte(token))
	if who, ok := s.callers.find(generation, hash); ok {
		c.who = who
		return nil
	}
	if err := s.lookUp(c, token); err != nil {
		return err
	}
	s.callers.keep(generation, hash, c.who)
	return nil
}

// lookUp finds the token in the store.
func (s *Server) lookUp(c *call, token string) error {
	return c.view(func(tx *store.Tx) error {
		workspace, err := tx.WorkspaceByKey(token)
		if err == nil {
			c.who = principal{Workspace: workspace, OrganizationID: workspace.OrganizationID, WorkspaceID: workspace.ID}
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
		c.who = principal{User: user, OrganizationID: user.OrganizationID}
		return nil
	})
}

// bearer takes the token from Authorization: Bearer, or from HTTP Basic with
// user "bearer" (spec 5.1; the latter from published material).
func bearer(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 || strings.TrimSpace(values[0]) == "" {
		return "", problem.Refuse(http.StatusUnauthorized, "there is no Authorization header; send 'Authorization: Bearer <token>'")
	}
	if len(values) > 1 {
		return "", problem.Refuse(http.StatusUnauthorized, "there are several Authorization headers; send one")
	}
	if user, password, ok := r.BasicAuth(); ok {
		if user != "bearer" || password == "" {
			return "", problem.Refuse(http.StatusUnauthorized, "HTTP Basic takes the user 'bearer' and the token as password")
		}
		return password, nil
	}
	// RFC 9110: the scheme is written in any case, the token is not.
	scheme, token, _ := strings.Cut(strings.TrimSpace(values[0]), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", problem.Refuse(http.StatusUnauthorized, "the Authorization header is not 'Bearer <token>'")
	}
	return token, nil
}

// requireAdmin refuses members of an organization what only admins may.
func (c *call) requireAdmin() error {
	if !c.who.admin() {
		return problem.Refuse(http.StatusForbidden, "only admins of the organization may do this")
	}
	return nil
}
