package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// urlVariable is the environment variable that stands in a report for the URL
// of its endpoint.
const urlVariable = "DESTKIT_URL"

// endpointURL is the URL among the arguments, else the one in the environment:
// it may carry a secret, which should not stand on a command line where every
// process can read it. An argument wins.
func endpointURL(cmd *cobra.Command, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	if url := os.Getenv(urlVariable); url != "" {
		return url, nil
	}
	return "", usagef("missing the URL of the endpoint; give it, or set $%s\nusage: %s", urlVariable, cmd.UseLine())
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
