package main

import (
	"bytes"
	"io"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/store"
)

// tokens holds the flags of `destkit serve new-token`.
type tokens struct {
	stopped
	workspace, organization int64
	email                   string
}

// newServeNewToken is for those who have lost the tokens that were shown once.
func newServeNewToken() *cobra.Command {
	var t tokens
	cmd := &cobra.Command{
		Use:   "new-token",
		Short: "Make a token for a data directory",
		Long: `Make a token for a data directory and print it once.

--user EMAIL makes a personal access token of that user beside the ones there
are. --workspace ID makes a new API key of that workspace; the one before is
worthless from then on. Without either: a personal access token of the first
user, and the present API key of the first workspace.`,
		Example: "  destkit serve new-token --data ./data\n  destkit serve new-token --data ./data --workspace 1",
		Args:    arguments(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			changed := cmd.Flags().Changed
			return t.with(cmd.Context(), "new-token", func(s *store.Store, _ masterKey) error {
				var text bytes.Buffer // shown when the token is stored
				err := s.Update(cmd.Context(), func(tx *store.Tx) error {
					switch {
					case changed("workspace"):
						return t.ofWorkspace(&text, tx)
					case changed("user"):
						return t.ofUser(&text, tx)
					}
					return t.ofFirst(&text, tx)
				})
				if err == nil {
					_, err = text.WriteTo(cmd.OutOrStdout())
				}
				return err
			})
		},
	}
	t.register(cmd)
	f := cmd.Flags()
	f.Int64Var(&t.workspace, "workspace", 0, "a new API key of the workspace `ID`")
	f.StringVar(&t.email, "user", "", "a personal access token of the user `EMAIL`")
	f.Int64Var(&t.organization, "organization", 0, "the organization `ID` of that user, when several have one with that address")
	cmd.MarkFlagsMutuallyExclusive("workspace", "user")
	cmd.MarkFlagsMutuallyExclusive("workspace", "organization")
	return cmd
}

// ofWorkspace makes a new key; there is one at a time, so clients with the old
// one are locked out.
func (t *tokens) ofWorkspace(out io.Writer, tx *store.Tx) error {
	key, err := tx.NewWorkspaceKey(t.workspace)
	if err != nil {
		return notFound(err, "there is no workspace %d in %s", t.workspace, &t.storePlace)
	}
	foreign.Printf(out, "workspace: %d\nworkspace API key: %s\n", t.workspace, key)
	return nil
}

// ofUser finds the user by the address, which is unique within an organization
// only.
func (t *tokens) ofUser(out io.Writer, tx *store.Tx) error {
	users, err := tx.UsersByEmail(t.email)
	if err != nil {
		return untested(err)
	}
	var found *store.User
	for _, u := range users {
		if t.organization != 0 && u.OrganizationID != t.organization {
			continue
		}
		if found != nil {
			return usagef("several organizations have a user %s, for example %d and %d; choose with --organization", t.email, found.OrganizationID, u.OrganizationID)
		}
		found = u
	}
	if found == nil {
		return usagef("there is no user %s in %s", t.email, &t.storePlace)
	}
	return printUserToken(out, tx, found)
}

// ofFirst serves the first organization, as the first start did.
func (t *tokens) ofFirst(out io.Writer, tx *store.Tx) error {
	// The oldest of each is what the first start has made.
	one := store.Page{Number: 1, PerPage: 1, Ascending: true}
	organizations, _, err := tx.Organizations(one)
	if err != nil {
		return untested(err)
	}
	if len(organizations) == 0 {
		return usagef("there is no organization in %s", &t.storePlace)
	}
	users, _, err := tx.Users(organizations[0].ID, one)
	if err == nil && len(users) > 0 {
		err = printUserToken(out, tx, users[0])
	}
	if err != nil {
		return untested(err)
	}
	workspaces, _, err := tx.Workspaces(organizations[0].ID, one)
	if err != nil || len(workspaces) == 0 {
		return err
	}
	key, err := tx.WorkspaceKey(workspaces[0].ID)
	if err != nil {
		return notFound(err, "workspace %d has no key; make one with --workspace %d", workspaces[0].ID, workspaces[0].ID)
	}
	foreign.Printf(out, "workspace: %d\nworkspace API key: %s\n", workspaces[0].ID, key)
	return nil
}

func printUserToken(out io.Writer, tx *store.Tx, u *store.User) error {
	token, err := tx.NewAccessToken(u.ID, "destkit serve new-token")
	if err != nil {
		return untested(err)
	}
	foreign.Printf(out, "organization: %d\nuser: %d %s\npersonal access token: %s\n", u.OrganizationID, u.ID, u.Email, token)
	return nil
}
