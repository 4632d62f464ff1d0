package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// summary is the one line that a person repeats to a colleague: the worst consequence and the
// verdict, the reason for the exit status, and what was not tested.
func summary(r *Report) string {
	parts := r.messages(3)
	head := string(r.Verdict) + ": "
	if len(parts) > 0 && !r.Looked() {
		parts = append(parts, "nothing was judged")
		if r.Records > 0 {
			parts = append(parts, r.Residue.summary(r.leftovers()))
		}
		return head + strings.Join(append(parts, fmt.Sprintf("%.1f s", r.DurationMS/1000)), "; ")
	}
	if r.ExitStatus >= 4 { // the run found nothing
		parts = append(parts, fmt.Sprintf("exit status %d: %s", r.ExitStatus, quantity.List(r.messages(r.ExitStatus))))
	}
	untested := r.untestedText()
	if r.Verdict == Conformant && (len(parts) > 0 || untested != "") {
		head = string(r.Verdict) + "; "
	}
	if worst := r.worst(); worst != "" {
		head = string(worst) + ": " + string(r.Verdict) + "; "
	}
	if len(r.Failed) == 0 && r.Counts[Warn] == 0 {
		parts = append(parts, untested, r.failedText())
	} else {
		warnings := ""
		if n := r.Counts[Warn]; n > 0 {
			warnings = quantity.Count(n, "warning")
		}
		parts = append(parts, r.failedText(), warnings, r.fixFirst(), untested)
	}
	if len(r.Settings.Selected)+len(r.Settings.Skipped) > 0 {
		parts = append(parts, fmt.Sprintf("only %s %s selected", quantity.Count(len(r.Checks), "check"), quantity.Verb(len(r.Checks), "was", "were")))
	}
	parts = append(parts, r.Residue.summary(r.leftovers()), "tier "+string(r.Tier), fmt.Sprintf("%.1f s", r.DurationMS/1000))
	return head + strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// messages are those of the problems that require an exit status.
func (r *Report) messages(exitStatus int) []string {
	asking := lists.Where(r.Problems, func(p Problem) bool { return p.ExitStatus == exitStatus })
	return lists.Of(asking, func(p Problem) string { return p.Message })
}

func (r *Report) failedText() string {
	kind := "MUSTs"
	if r.Profile == ProfileStrict {
		kind = "gated checks"
	}
	if len(r.Failed) > 0 {
		return fmt.Sprintf("%d of %d %s failed (%s)", len(r.Failed), r.Musts, kind, quantity.List(r.Failed))
	}
	return fmt.Sprintf("none of %d %s failed", r.Musts, kind)
}

// untestedText counts the rules that wait for no failed one, and names what would decide most of
// them: "12 rules not tested (TLS, load): 8 need …, 4 need --load".
func (r *Report) untestedText() string {
	checks := lists.Where(r.Checks, func(c CheckResult) bool {
		return (c.Status == NotRun || c.Status == Inconclusive) && len(c.BlockedBy) == 0
	})
	if len(checks) == 0 {
		return ""
	}
	type need struct{ what, topic string }
	var needs []need
	rules := map[need]int{}
	for _, c := range checks {
		if c.Decider != "" {
			d := r.deciderOf(c.Decider)
			n := need{d.short, d.topic}
			if rules[n]++; rules[n] == 1 {
				needs = append(needs, n)
			}
		}
	}
	said := quantity.Count(len(checks), "rule") + " not tested"
	if len(needs) == 0 {
		return said
	}
	const mostNeeds = 3 // are named
	slices.SortStableFunc(needs, func(a, b need) int { return rules[b] - rules[a] })
	var topics, parts []string
	for i, n := range needs {
		if i == mostNeeds {
			topics, parts = append(topics, "…"), append(parts, "and more")
			break
		}
		if !slices.Contains(topics, n.topic) {
			topics = append(topics, n.topic)
		}
		parts = append(parts, fmt.Sprintf("%d %s %s", rules[n], quantity.Verb(rules[n], "needs", "need"), n.what))
	}
	return fmt.Sprintf("%s (%s): %s", said, strings.Join(topics, ", "), strings.Join(parts, ", "))
}

// summary is how many are left behind; it reports none only when that was seen.
func (res *Residue) summary(what string) string {
	said := quantity.Count(len(res.Refused), what) + " left behind"
	if n := len(res.Unknown); n > 0 {
		said += fmt.Sprintf(", %d may be (no answer)", n)
	}
	if res.Unverified == 0 {
		return said
	}
	only := quantity.Count(res.Unverified, what) + " deleted by acknowledgement only (not verified)"
	if len(res.Refused)+len(res.Unknown) == 0 {
		return only
	}
	return said + ", " + only
}

// Looked reports whether some check got as far as looking.
func (r *Report) Looked() bool {
	return slices.ContainsFunc(r.Checks, func(c CheckResult) bool { return c.Status != NotRun || len(c.BlockedBy) > 0 })
}

// decider is what would decide a check, in words.
type decider struct {
	what  string // a phrase
	flags string // that grant it; "" when none does
	topic string // a word for it
	short string // where the flags do not show what they grant
}

// deciders are those that are known. OBJECT is a placeholder for an object that can be written to.
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

// deciderOf is the decider of a result; an unknown one is used verbatim.
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

// Deciding is the decider of a result in a phrase, with the flags that grant it, "" when none does.
func (r *Report) Deciding(decider string) (what, flags string) {
	d := r.deciderOf(decider)
	return d.what, d.flags
}

// objectToWrite is an object of the endpoint for a line to paste, NAME where none needs no quotes.
func (r *Report) objectToWrite() string {
	for _, name := range slices.Concat(r.Settings.Objects, r.Objects) {
		if name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") == "" {
			return name
		}
	}
	return "NAME"
}
