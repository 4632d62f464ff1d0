package call

import (
	"net/http"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// Principal is who calls: a user by a personal access token, or a workspace by
// its API key (spec 5.1). Exactly one of User and Workspace is set.
type Principal struct {
	User           *store.User
	Workspace      *store.Workspace
	OrganizationID int64
	WorkspaceID    int64
}

// Admin reports whether a user manages the organization. A workspace key never
// does: it belongs to no person.
func (p Principal) Admin() bool { return p.User != nil && p.User.Role == api.RoleAdmin }

// Kinds of a token as the document names them.
const (
	AuthWorkspace    = "workspace"
	AuthOrganization = "organization"
)

// Bearer takes the token from Authorization: Bearer, or from HTTP Basic with
// user "bearer" (spec 5.1; the latter from published material).
func Bearer(r *http.Request) (string, error) {
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

// RequireAdmin refuses members of an organization what only admins may.
func RequireAdmin(c *Call) error {
	if !c.Who.Admin() {
		return problem.Refuse(http.StatusForbidden, "only admins of the organization may do this")
	}
	return nil
}

// Kind names the kind of caller, and nothing that identifies one.
func (p Principal) Kind() string {
	switch {
	case p.Workspace != nil:
		return "workspace key"
	case p.User != nil:
		return "personal token"
	}
	return "nobody"
}
