package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/suggest"
)

// urlVariable is the environment variable that stands in a report for the URL
// of its endpoint.
const urlVariable = "DESTKIT_URL"

// endpointURL is the URL among the arguments, else the one in the environment:
// it may carry a secret, which should not stand on a command line where every
// process can read it. An argument wins.
func endpointURL(cmd *cobra.Command, args []string) (string, error) {
	if len(args) > 0 {
		if on := cmd.Flags().Lookup("write"); on != nil && on.Changed && !likeURL(args[0]) {
			return "", writeTakesNoValue(args[0])
		}
		return args[0], likelyURL("endpoint", args[0])
	}
	if url := os.Getenv(urlVariable); url != "" {
		return url, likelyURL("endpoint", url)
	}
	return "", exit.Usagef("missing the URL of the endpoint; give it, or set $%s\nusage: %s", urlVariable, cmd.UseLine())
}

// replicasVariable holds the URLs of replicas, with space between them: they may
// carry secrets as well.
const replicasVariable = "DESTKIT_REPLICAS"

// replicaURLs are those of --replica and the configuration file, else those in the
// environment.
func replicaURLs(named []string) []string {
	if len(named) > 0 {
		return named
	}
	return strings.Fields(os.Getenv(replicasVariable))
}

// likelyURL refuses a URL without a scheme, and says which was probably meant.
// The rest of the rules are the libraries'. The URL may carry a secret, so no
// message repeats its path or its query.
func likelyURL(what, raw string) error {
	lower := strings.ToLower(raw)
	if raw == "" || strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://") {
		return nil
	}
	problem := "the URL of the " + what + " must start with https:// (or http:// in development)"
	if meant := suggest.URL(raw); meant != "" {
		return exit.Usagef("%s: did you mean %s?", problem, meant)
	}
	return exit.Usagef("%s", problem)
}

// likeURL reports whether a word can be a URL, be it one without a scheme.
func likeURL(word string) bool { return strings.ContainsAny(word, ":/.") || word == "localhost" }

// writeTakesNoValue is for those who name the object behind --write.
func writeTakesNoValue(word string) error {
	return exit.Usagef("--write takes no value: use --write --object %s", word)
}
