package maintenance

import (
	"context"
	"errors"
	"fmt"

	"github.com/destkit/destkit/server/internal/store"
)

// TokenRequest selects the owner of the token: a new API key of a workspace, a
// personal access token of a user, or without either a personal access token of
// the first user, with the present key of the first workspace.
type TokenRequest struct {
	Workspace    int64
	User         string // the e-mail address
	Organization int64  // of that user; needed when several have one
}

// IssuedTokens are tokens with their owners; what was not requested is zero.
type IssuedTokens struct {
	Organization, User         int64
	Email, PersonalAccessToken string
	Workspace                  int64
	WorkspaceAPIKey            string
}

// MissingError means that there is no owner for a token. Kind is organization,
// user, workspace or key; Among are organizations of which each has such a user.
type MissingError struct {
	Kind  string
	ID    int64
	Among []int64
}

func (e *MissingError) Error() string {
	if len(e.Among) > 0 {
		return fmt.Sprintf("organizations %v all have this user", e.Among)
	}
	return fmt.Sprintf("there is no %s %d", e.Kind, e.ID)
}

// NewToken makes a token. An API key replaces the one before.
func (m *Maintenance) NewToken(ctx context.Context, r TokenRequest) (*IssuedTokens, error) {
	var made IssuedTokens
	err := m.store.Update(ctx, func(tx *store.Tx) error {
		made = IssuedTokens{}
		switch {
		case r.Workspace != 0:
			return made.ofWorkspace(tx, r.Workspace)
		case r.User != "":
			return made.ofUser(tx, r.User, r.Organization)
		}
		return made.ofFirst(tx)
	})
	if err != nil {
		return nil, err
	}
	return &made, nil
}

func (i *IssuedTokens) ofWorkspace(tx *store.Tx, id int64) (err error) {
	if i.WorkspaceAPIKey, err = tx.NewWorkspaceKey(id); err != nil {
		return noOwner(err, "workspace", id)
	}
	i.Workspace = id
	return nil
}

// ofUser finds the user by the address, which is unique within an organization
// only.
func (i *IssuedTokens) ofUser(tx *store.Tx, email string, organization int64) error {
	users, err := tx.UsersByEmail(email)
	if err != nil {
		return err
	}
	var found *store.User
	var among []int64
	for _, u := range users {
		if organization == 0 || u.OrganizationID == organization {
			found, among = u, append(among, u.OrganizationID)
		}
	}
	switch {
	case found == nil:
		return &MissingError{Kind: "user"}
	case len(among) > 1:
		return &MissingError{Kind: "user", Among: among}
	}
	return i.user(tx, found)
}

// ofFirst takes the oldest organization, user and workspace: those that the first
// start has made.
func (i *IssuedTokens) ofFirst(tx *store.Tx) error {
	one := store.Page{Number: 1, PerPage: 1, Ascending: true}
	organizations, _, err := tx.Organizations(one)
	if err != nil {
		return err
	}
	if len(organizations) == 0 {
		return &MissingError{Kind: "organization"}
	}
	users, _, err := store.Users.List(tx, organizations[0].ID, one)
	if err == nil && len(users) > 0 {
		err = i.user(tx, users[0])
	}
	if err != nil {
		return err
	}
	workspaces, _, err := store.Workspaces.List(tx, organizations[0].ID, one)
	if err != nil || len(workspaces) == 0 {
		return err
	}
	i.Workspace = workspaces[0].ID
	i.WorkspaceAPIKey, err = tx.WorkspaceKey(i.Workspace)
	return noOwner(err, "key", i.Workspace)
}

func (i *IssuedTokens) user(tx *store.Tx, u *store.User) (err error) {
	i.Organization, i.User, i.Email = u.OrganizationID, u.ID, u.Email
	i.PersonalAccessToken, err = tx.NewAccessToken(u.ID, "destkit serve new-token")
	return err
}

// noOwner distinguishes a missing owner from a store that fails.
func noOwner(err error, kind string, id int64) error {
	if errors.Is(err, store.ErrNotFound) {
		return &MissingError{Kind: kind, ID: id}
	}
	return err
}
