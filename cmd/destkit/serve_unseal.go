package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/store"
)

// newServeUnseal opens what logs show of a destination's URL.
func newServeUnseal() *cobra.Command {
	var s stopped
	cmd := &cobra.Command{
		Use:   "unseal TOKEN",
		Short: "Show the secret behind a sealed token of a log",
		Long: `Logs show a secret, such as the URL of a custom destination, as a token that
begins with ` + store.SealedPrefix + `. Print what it stands for. It takes the data directory that
wrote the log, and its master key. What stands before the token, as in
https://host/` + store.SealedPrefix + `…, is ignored.`,
		Example: "  destkit serve unseal " + store.SealedPrefix + "AAAA… --data ./data",
		Args:    arguments(1, 1, "the sealed token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			token := args[0]
			if at := strings.Index(token, store.SealedPrefix); at > 0 {
				token = token[at:]
			}
			return s.with(cmd.Context(), "unseal", func(opened *store.Store, _ masterKey) error {
				text, err := opened.UnsealText(token)
				if err != nil {
					return usageError(err)
				}
				foreign.Print(foreign.Raw(cmd.OutOrStdout()), text+"\n") // the value itself, to be used
				return nil
			})
		},
	}
	s.register(cmd)
	return cmd
}
