package main

import (
	"cmp"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/secret"
	"github.com/destkit/destkit/cmd/destkit/internal/shell"
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
	address, err = urlOrOf(cmd, flag, args[0], old.Target)
	return ids, address, err
}

// cleanedURL is the URL of --url, of the argument, of the environment or of the
// journal.
func cleanedURL(cmd *cobra.Command, flag string, args []string, journal string) (string, error) {
	if flag == "" && len(args) > 0 {
		flag = args[0]
		if info, err := os.Stat(flag); err == nil && info.Mode().IsRegular() {
			return "", exit.Usagef("%s is a file, and the URL of the endpoint goes here: did you mean --journal %s?", flag, shell.Quote(flag))
		}
	}
	named := ""
	if journal != "" {
		named, _ = conformance.JournalTarget(journal) // one that cannot be read is refused later
	}
	return urlOrOf(cmd, flag, journal, named)
}

// urlOrOf is the URL that was given, else the one that a file names. A file may have
// been changed: a token that no flag names does not go to a public address of it.
func urlOrOf(cmd *cobra.Command, given, file, named string) (string, error) {
	if given = cmp.Or(given, os.Getenv(urlVariable)); given != "" {
		return given, likelyURL("endpoint", given)
	}
	if shownURL(named) == "" {
		return "", exit.Usagef("the URL of the endpoint is missing: give it, or set $%s; a URL that holds a secret is in no file", urlVariable)
	}
	if !cmd.Flags().Changed("token-env") && os.Getenv(secret.TokenVariable) != "" && !onThisSide(named) {
		return "", exit.Usagef("%s names the endpoint %s, and $%s would go there: give --url, or --token-env %s if that is right",
			file, named, secret.TokenVariable, secret.TokenVariable)
	}
	return named, nil
}

// onThisSide reports whether a URL leads to a loopback or private address.
func onThisSide(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsPrivate())
}
