package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
)

// replayedURL takes the URL out of the arguments behind the report; without one it is
// that of --url, of the environment or of the report.
func replayedURL(cmd *cobra.Command, flag string, args []string, old *conformance.Report) (ids []string, address string, err error) {
	for _, word := range args[1:] {
		if strings.Contains(word, "://") && flag == "" {
			flag = word
			continue
		}
		ids = append(ids, word)
	}
	address, err = command.EndpointURLOr(cmd, flag, args[0], old.Target)
	return ids, address, err
}

// cleanedURL is the URL of --url, of the argument, of the environment or of the
// journal.
func cleanedURL(cmd *cobra.Command, flag string, args []string, journal string) (string, error) {
	if flag == "" && len(args) > 0 {
		flag = args[0]
		if info, err := os.Stat(flag); err == nil && info.Mode().IsRegular() {
			return "", exit.Usagef("%s is a file, and the URL of the endpoint goes here: did you mean --journal %s?", flag, command.Quote(flag))
		}
	}
	named := ""
	if journal != "" {
		_, named, _ = conformance.ReadJournal(journal) // one that cannot be read is refused later
	}
	return command.EndpointURLOr(cmd, flag, journal, named)
}
