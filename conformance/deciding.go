package conformance

import (
	"strings"
)

// Deciding puts the decider of a result into a phrase, and the flags that grant
// it, "" when none does. A decider that is not known stands for itself.
func (r *Report) Deciding(decider string) (what, flags string) {
	if hook, ok := strings.CutPrefix(decider, "hook "); ok {
		return "the author's hook " + hook, "--hooks FILE"
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(decider, "--"), " ")
	switch name {
	case "write":
		return "permission to write", "--write --object " + r.objectToWrite()
	case "object":
		return "the name of an object", "--object " + r.objectToWrite()
	case "readback":
		return "a read-back hook", "--readback-url URL or --readback-command CMD"
	case "load":
		return "permission to send at declared speed", "--load"
	case "skip-convention":
		return "a declared skip convention", "--skip-convention failure|success|success-with-message"
	case "max-records":
		return "a larger budget of records", "--max-records N"
	case "key-range":
		return "a range of integer keys", "--key-range FROM:TO"
	case "timeout":
		return "more time", "--timeout D"
	case "token", "token-env":
		return "a token of the connection", "--token-env NAME"
	case "url-secret":
		return "the place of the secret in the URL", "--url-secret query:NAME|path:INDEX"
	case "probe-plain-http":
		return "permission to probe plain http", "--probe-plain-http PORT"
	case "development", "tls-roots", "https", "tls":
		return "https with public or given roots", "--development off or --tls-roots FILE"
	case "fixtures":
		return "fixtures in the configuration file", "--config FILE"
	}
	return decider, ""
}

// needed is the shortest form of Deciding: flags that say what they grant stand for
// it, others come behind it.
func (r *Report) needed(decider string) string {
	what, flags := r.Deciding(decider)
	switch {
	case flags == "":
		return what
	case strings.HasPrefix(decider, "hook "):
		return "hooks (" + flags + ")" // whichever they are, one file holds them
	case decider == "readback":
		return what + " (--readback-url URL)"
	case decider == "fixtures":
		return "fixtures (" + flags + ")"
	}
	return flags
}

// objectToWrite is an object that the endpoint lists, so that a line which asks for
// writes can be pasted; NAME where none can stand in a command as it is.
func (r *Report) objectToWrite() string {
	for _, names := range [][]string{r.Settings.Objects, r.Objects} {
		for _, name := range names {
			if name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") == "" {
				return name
			}
		}
	}
	return "NAME"
}
