package serve

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server"
)

// newUnseal opens what logs show of a destination's URL.
func newUnseal() *cobra.Command {
	var s stopped
	cmd := &cobra.Command{
		Use:   "unseal TOKEN",
		Short: "Show the secret behind a sealed token of a log",
		Long: `Logs show a secret, such as the URL of a custom destination, as a token that
begins with ` + server.SealedPrefix + `. Print what it stands for. It takes the data directory that
wrote the log, and its master key. What stands before the token, as in
https://host/` + server.SealedPrefix + `…, is ignored.`,
		Example: "  destkit serve unseal " + server.SealedPrefix + "AAAA… --data ./data",
		Args:    command.Arguments(1, 1, "the sealed token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			token := args[0]
			if at := strings.Index(token, server.SealedPrefix); at > 0 {
				token = token[at:]
			}
			return s.with(cmd.Context(), "unseal", func(m *server.Maintenance, _ masterKey) error {
				text, err := m.Unseal(token)
				if err != nil {
					return exit.Usage(err)
				}
				foreign.Print(foreign.Raw(cmd.OutOrStdout()), text+"\n") // the value itself, to be used
				return nil
			})
		},
	}
	s.register(cmd)
	return cmd
}
