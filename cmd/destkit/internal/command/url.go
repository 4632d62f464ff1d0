package command

import (
	"cmp"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/internal/suggest"
)

// URLVariable is the environment variable that a report shows for the URL of
// its endpoint.
const URLVariable = "DESTKIT_URL"

// EndpointURL is the URL among the arguments, else the one in the environment:
// it may carry a secret, which should not be on a command line where every
// process can read it. An argument wins.
func EndpointURL(cmd *cobra.Command, args []string) (string, error) {
	if len(args) > 0 {
		changed := cmd.Flags().Changed
		if changed("write") && !changed("object") && !LooksLikeURL(args[0]) {
			return "", WriteTakesNoValue(args[0])
		}
		return args[0], CheckScheme("endpoint", args[0])
	}
	if url := os.Getenv(URLVariable); url != "" {
		return url, CheckScheme("endpoint", url)
	}
	return "", exit.Usagef("missing the URL of the endpoint; give it, or set $%s\nusage: %s", URLVariable, cmd.UseLine())
}

// replicasVariable holds the URLs of replicas, with space between them: they may
// carry secrets as well.
const replicasVariable = "DESTKIT_REPLICAS"

// Replicas are those of --replica, else those in the environment, else those of the
// configuration file.
func Replicas(cmd *cobra.Command, named []string) []string {
	if set := strings.Fields(os.Getenv(replicasVariable)); len(set) > 0 && !cmd.Flags().Changed("replica") {
		return set
	}
	return named
}

// CheckScheme refuses a URL without a scheme, and suggests one. The rest of the
// rules are the libraries'. The URL may carry a secret, so no message repeats
// its path or its query.
func CheckScheme(what, raw string) error {
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

// LooksLikeURL reports whether a word can be a URL, be it one without a scheme.
func LooksLikeURL(word string) bool { return strings.ContainsAny(word, ":/.") || word == "localhost" }

// WriteTakesNoValue is for those who name the object behind --write, or who gave a number to a flag
// that takes none, as -q is in other tools.
func WriteTakesNoValue(word string) error {
	if _, err := strconv.ParseFloat(word, 64); err == nil {
		return exit.Usagef("%s stands behind a flag that takes no value: --help says which take one", word)
	}
	return exit.Usagef("--write takes no value: use --write --object %s", word)
}

// EndpointURLOr is the URL that was given, else the one that a file names. A file may have
// been changed: a token that no flag names does not go to a public address of it.
func EndpointURLOr(cmd *cobra.Command, given, file, named string) (string, error) {
	if given = cmp.Or(given, os.Getenv(URLVariable)); given != "" {
		return given, CheckScheme("endpoint", given)
	}
	if ShownURL(named) == "" {
		return "", exit.Usagef("the URL of the endpoint is missing: give it, or set $%s; a URL that holds a secret is in no file", URLVariable)
	}
	if !cmd.Flags().Changed("token-env") && os.Getenv(TokenVariable) != "" && !OnThisSide(named) {
		return "", exit.Usagef("%s names the endpoint %s, and $%s would go there: give --url, or --token-env %s if that is right",
			file, named, TokenVariable, TokenVariable)
	}
	return named, nil
}

// OnThisSide reports whether a URL leads to a loopback or private address.
func OnThisSide(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && reach.PrivateHost(u.Hostname())
}

// ShownURL is a URL that can be shown, "" when it holds a user, a query or a
// placeholder.
func ShownURL(raw string) string {
	if !strings.Contains(raw, "://") || strings.ContainsAny(raw, "@?$") {
		return ""
	}
	return raw
}

// CheckURL demands an absolute http or https URL with a host. The URL may carry
// a secret, so no message repeats it.
func CheckURL(what, raw string) error {
	if meant := suggest.URL(raw); meant != "" && !strings.HasPrefix(raw, "http://") && !strings.HasPrefix(raw, "https://") {
		return exit.Usagef("%s: the URL must begin with http:// or https://: did you mean %s?", what, meant)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return exit.Usagef("%s: the URL does not parse; check its escapes, port and brackets", what)
	case u.Scheme != "http" && u.Scheme != "https":
		return exit.Usagef("%s: the URL must begin with http:// or https://", what)
	case u.Hostname() == "":
		return exit.Usagef("%s: the URL has no host", what)
	}
	return nil
}
