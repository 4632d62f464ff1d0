package organizations

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// UserOf shows a user with a role, that of the organization or of a workspace.
func UserOf(u *store.User, role string) api.User {
	return api.User{ID: u.ID, Email: u.Email, CreatedAt: api.Time{Time: u.CreatedAt}, Role: role}
}

// InvitationOf shows an invitation (spec 2.13).
func InvitationOf(i *store.Invitation) api.Invitation {
	shown := api.Invitation{
		ID: i.ID, Email: i.Email, CreatedAt: api.Time{Time: i.CreatedAt}, CreatedByID: i.CreatedByID,
		ClaimedAt: api.At(i.ClaimedAt), ClaimedByID: i.ClaimedByID, Role: i.Role,
		WorkspaceInvitations: []api.AssociatedInvitation{},
	}
	for _, w := range i.Workspaces {
		shown.WorkspaceInvitations = append(shown.WorkspaceInvitations, api.AssociatedInvitation{ID: w.ID, WorkspaceID: w.WorkspaceID, Role: w.Role})
	}
	return shown
}

// WorkspaceInvitationOf shows an invitation to one workspace; it has no
// claimed_at (spec 2.13).
func WorkspaceInvitationOf(i *store.WorkspaceInvitation) api.WorkspaceInvitation {
	return api.WorkspaceInvitation{
		ID: i.ID, Email: i.Email, CreatedAt: api.Time{Time: i.CreatedAt},
		CreatedByID: i.CreatedByID, ClaimedByID: i.ClaimedByID, Role: i.Role,
	}
}

// JoinWorkspaces makes a user a member of each workspace with the invited role
// (spec 4.1.5, 4.1.6). Who is a member there already gets that role, except the only
// owner, without whom the workspace would have none.
func JoinWorkspaces(tx *store.Tx, u *store.User, invited []*store.WorkspaceInvitation) error {
	for _, w := range invited {
		only, err := onlyOwner(tx, w.WorkspaceID, u.ID)
		if err != nil {
			return err
		}
		if only && w.Role != api.RoleOwner {
			return problem.Refuse(http.StatusConflict, "%s is the only owner of workspace %d and cannot become its %s: invite another owner first", u.Email, w.WorkspaceID, w.Role)
		}
		err = tx.PutMembership(&store.Membership{WorkspaceID: w.WorkspaceID, UserID: u.ID, Role: w.Role})
		if err != nil {
			return err
		}
	}
	return nil
}

// onlyOwner reports whether a user alone owns a workspace.
func onlyOwner(tx *store.Tx, workspaceID, userID int64) (bool, error) {
	own, err := tx.Membership(workspaceID, userID)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil || own.Role != api.RoleOwner {
		return false, err
	}
	owners, err := tx.Owners(workspaceID)
	return owners == 1, err
}

// InvitationMail is the kind of the e-mail that invites a user.
const InvitationMail = "invitation"

// MaxName is the longest name in characters, as the document has it.
const MaxName = 255

// CheckName refuses names that a person could not read: empty ones, those with
// control characters, and, where no document looks at them as in a seed, very
// long ones. Any other Unicode is welcome.
func CheckName(field, name string) []api.Problem {
	if strings.TrimSpace(name) == "" {
		return []api.Problem{{Field: field, Message: "must not be empty"}}
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return []api.Problem{{Field: field, Message: "must not hold control characters"}}
	}
	if utf8.RuneCountInString(name) > MaxName {
		return []api.Problem{{Field: field, Message: fmt.Sprintf("must have at most %d characters", MaxName)}}
	}
	return nil
}
