package serve

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server"
)

// tokens holds the flags of `destkit serve new-token`.
type tokens struct {
	stopped
	workspace, organization int64
	email                   string
}

// newToken is for those who have lost the tokens that were shown once.
func newToken() *cobra.Command {
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
		Args:    command.Arguments(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			changed := cmd.Flags().Changed
			// The lowest id is 1: a given zero names nothing.
			if changed("workspace") && t.workspace == 0 || changed("user") && t.email == "" {
				return exit.Usagef("--workspace takes an id above zero, and --user an e-mail address")
			}
			return t.with(cmd.Context(), "new-token", func(m *server.Maintenance, _ masterKey) error {
				made, err := m.NewToken(cmd.Context(), server.TokenRequest{Workspace: t.workspace, User: t.email, Organization: t.organization})
				if err != nil {
					return t.tokenError(err)
				}
				out := cmd.OutOrStdout()
				if made.User != 0 {
					foreign.Printf(out, "organization: %d\nuser: %d %s\npersonal access token: %s\n", made.Organization, made.User, made.Email, made.PersonalAccessToken)
				}
				if made.Workspace != 0 {
					foreign.Printf(out, "workspace: %d\nworkspace API key: %s\n", made.Workspace, made.WorkspaceAPIKey)
				}
				return nil
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

// tokenError words whose token cannot be made.
func (t *tokens) tokenError(err error) error {
	var missing *server.MissingError
	switch {
	case !errors.As(err, &missing):
		return exit.Untested(err)
	case len(missing.Among) > 0:
		return exit.Usagef("several organizations have a user %s, for example %d and %d; choose with --organization", t.email, missing.Among[0], missing.Among[1])
	case missing.Kind == "user":
		return exit.Usagef("there is no user %s in %s", t.email, t.dir)
	case missing.Kind == "organization":
		return exit.Usagef("there is no organization in %s", t.dir)
	case missing.Kind == "key":
		return exit.Usagef("workspace %d has no key; make one with --workspace %d", missing.ID, missing.ID)
	}
	return exit.Usagef("there is no workspace %d in %s", missing.ID, t.dir)
}
