package organizations

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
)

// Tokens open an organization with one admin and one workspace (spec 5.1). They
// are known only to whoever made it: the store keeps hashes and seals.
type Tokens struct {
	OrganizationID      int64  `json:"organization_id"`
	UserID              int64  `json:"user_id"`
	Email               string `json:"email"`
	WorkspaceID         int64  `json:"workspace_id"`
	PersonalAccessToken string `json:"personal_access_token"`
	WorkspaceAPIKey     string `json:"workspace_api_key"`
}

// Begin makes an organization with one admin and one workspace,
// which a reset keeps.
func Begin(tx *store.Tx, name, email, workspace string) (*Tokens, error) {
	o := &store.Organization{Name: name}
	if err := tx.CreateOrganization(o); err != nil {
		return nil, err
	}
	u := &store.User{OrganizationID: o.ID, Email: email, Role: api.RoleAdmin, Notifications: true, Initial: true}
	if err := store.Users.Create(tx, u); err != nil {
		return nil, err
	}
	w, err := openWorkspace(tx, o.ID, u.ID, workspace)
	if err != nil {
		return nil, err
	}
	token, err := tx.NewAccessToken(u.ID, "first")
	return &Tokens{
		OrganizationID: o.ID, UserID: u.ID, Email: email, WorkspaceID: w.ID, PersonalAccessToken: token, WorkspaceAPIKey: w.APIKey,
	}, err
}

// openWorkspace makes a workspace that a user owns and a reset keeps.
func openWorkspace(tx *store.Tx, organizationID, userID int64, name string) (made WorkspaceTokens, err error) {
	w := &store.Workspace{OrganizationID: organizationID, Name: name, NotificationEmails: []string{}, Initial: true}
	if err := store.Workspaces.Create(tx, w); err != nil {
		return made, err
	}
	if err := store.Memberships.Create(tx, &store.Membership{WorkspaceID: w.ID, UserID: userID, Role: api.RoleOwner, Initial: true}); err != nil {
		return made, err
	}
	key, err := tx.NewWorkspaceKey(w.ID)
	return WorkspaceTokens{w.ID, name, key}, err
}

// SettingFirst holds the ids of the first user and workspace.
const SettingFirst = "first"

// First is the organization that the first start made, 0 when it
// was deleted.
func First(tx *store.Tx) (int64, error) {
	setting, err := tx.Setting(SettingFirst)
	if err != nil {
		return 0, err
	}
	var userID, workspaceID int64
	if _, err := fmt.Sscan(setting, &userID, &workspaceID); err != nil {
		return 0, fmt.Errorf("read setting %s: %w", SettingFirst, err)
	}
	w, err := store.Workspaces.Any(tx, workspaceID)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return w.OrganizationID, nil
}

// settingOwn holds the ids of the organizations that the first start has seeded.
const settingOwn = "own_organizations"

// HasOthers reports whether there are organizations that neither the first start
// made nor a seed of who runs the service: those of others.
func HasOthers(tx *store.Tx) (others bool, err error) {
	own, err := ownOrganizations(tx)
	if err != nil {
		return false, err
	}
	all, err := store.Every(tx.Organizations)
	for _, o := range all {
		others = others || !own[o.ID]
	}
	return others, err
}

// ownOrganizations are those of who runs the service, by their ids.
func ownOrganizations(tx *store.Tx) (map[int64]bool, error) {
	first, err := First(tx)
	if err != nil {
		return nil, err
	}
	own := map[int64]bool{first: true}
	kept, err := tx.Setting(settingOwn)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	for id := range strings.FieldsSeq(kept) {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			own[n] = true
		}
	}
	return own, nil
}

// adopt notes that organizations are of who runs the service.
func adopt(tx *store.Tx, ids ...int64) error {
	own, err := ownOrganizations(tx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		own[id] = true
	}
	var text []string
	for _, id := range slices.Sorted(maps.Keys(own)) {
		text = append(text, strconv.FormatInt(id, 10))
	}
	return tx.SetSetting(settingOwn, strings.Join(text, " "))
}
