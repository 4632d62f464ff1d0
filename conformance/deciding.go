package conformance

import (
	"cmp"
	"strings"
)

// decider is what would decide a check, in words.
type decider struct {
	what  string // a phrase
	flags string // that grant it; "" when none does
	topic string // a word for it
	short string // where the flags do not say what they grant
}

// deciders are those that are known. OBJECT stands for an object that can be written to.
var deciders = map[string]decider{
	"write":            {"permission to write", "--write --object OBJECT", "writes", ""},
	"object":           {"the name of an object", "--object OBJECT", "writes", ""},
	"readback":         {"a read-back hook", "--readback-url URL or --readback-command CMD", "read-back", "a read-back hook (--readback-url URL)"},
	"load":             {"permission to send at declared speed", "--load", "load", ""},
	"skip-convention":  {"a declared skip convention", "--skip-convention failure|success|success-with-message", "skip convention", ""},
	"max-records":      {"a larger budget of records", "--max-records N", "records", ""},
	"key-range":        {"a range of integer keys", "--key-range FROM:TO", "key range", ""},
	"timeout":          {"more time", "--timeout D", "time", ""},
	"token":            {"a token of the connection", "--token-env NAME", "token", ""},
	"url-secret":       {"the place of the secret in the URL", "--url-secret query:NAME|path:INDEX", "URL secret", ""},
	"probe-plain-http": {"permission to probe plain http", "--probe-plain-http PORT", "plain http", ""},
	"tls":              {"https with public or given roots", "--development off or --tls-roots FILE", "TLS", ""},
	"fixtures":         {"fixtures in the configuration file", "--config FILE", "values", "fixtures (--config FILE)"},
}

// sameDecider are other names of deciders.
var sameDecider = map[string]string{"token-env": "token", "development": "tls", "tls-roots": "tls", "https": "tls"}

// deciderOf is the decider of a result; one that is not known stands for itself.
func (r *Report) deciderOf(text string) decider {
	if hook, ok := strings.CutPrefix(text, "hook "); ok { // whichever they are, one file holds them
		return decider{"the author's hook " + hook, "--hooks FILE", "hooks", "hooks (--hooks FILE)"}
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(text, "--"), " ")
	d, known := deciders[cmp.Or(sameDecider[name], name)]
	if !known {
		d = decider{what: text, topic: strings.ReplaceAll(name, "-", " "), short: text}
	}
	d.flags = strings.ReplaceAll(d.flags, "OBJECT", r.objectToWrite())
	d.short = cmp.Or(d.short, d.flags)
	return d
}

// Deciding puts the decider of a result into a phrase, and the flags that grant
// it, "" when none does. A decider that is not known stands for itself.
func (r *Report) Deciding(decider string) (what, flags string) {
	d := r.deciderOf(decider)
	return d.what, d.flags
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
