package main

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
)

// Reports have $DESTKIT_TOKEN and the like in the place of secrets. A command that is
// shown names the variable that holds the secret in the shell of the run instead.

// secretName is a placeholder in a command.
var secretName = regexp.MustCompile(`\$\{?(DESTKIT_[A-Z0-9_]+)\}?`)

// secretWords maps the name of a placeholder to what a shell puts in its place.
type secretWords map[string]string

// holding gives the words for a placeholder whose secret is known: the variable that
// holds it, else one that the shell requires.
func (s secretWords) holding(name, secret string) {
	if held := variableOf(secret); held != "" {
		s[name] = "${" + held + "}"
	}
}

// header is holding for a header, whose value may have a scheme before its secret.
func (s secretWords) header(line string) {
	name, value, _ := strings.Cut(line, ":")
	name, value = headerVariable(name), strings.TrimSpace(value)
	s.holding(name, value)
	if scheme, secret, ok := strings.Cut(value, " "); ok && s[name] == "" {
		if held := variableOf(strings.TrimSpace(secret)); held != "" {
			s[name] = scheme + " ${" + held + "}"
		}
	}
}

// in puts the variables into a command. One that is not set makes the shell say so,
// where an empty text would be sent otherwise.
func (s secretWords) in(words string) string {
	return secretName.ReplaceAllStringFunc(words, func(found string) string {
		name := secretName.FindStringSubmatch(found)[1]
		word, known := s[name]
		switch {
		case known && !strings.HasPrefix(found, "${"):
			return lastVariable.ReplaceAllString(word, "$$$1")
		case known:
			return word
		case os.Getenv(name) != "":
			return found
		}
		return "${" + name + ":?}"
	})
}

// lastVariable is a variable at the end of a word, which needs no braces.
var lastVariable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// name puts the variables into the commands of a report.
func (s secretWords) name(r *conformance.Report) {
	for _, checks := range [][]conformance.CheckResult{r.Checks, r.Own} {
		for i := range checks {
			for k := range checks[i].Findings {
				f := &checks[i].Findings[k]
				f.Curl = s.in(f.Curl)
			}
		}
	}
}

// variableOf is the exported variable that holds a secret, "" for none.
func variableOf(secret string) string {
	if len(secret) < foreign.ShortSecret || foreign.PlainWord(secret) {
		return ""
	}
	var names []string
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); value == secret && command.VariableName.MatchString(name) && name != "_" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

// headerVariable is the placeholder for the value of a header, without its $.
func headerVariable(name string) string {
	return "DESTKIT_HEADER_" + strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(strings.TrimSpace(name)))
}
