package main

import (
	"cmp"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

// tokenFlag names the environment variable that holds the bearer token. A
// token never stands on a command line, where every process can read it.
type tokenFlag struct {
	variable string
	flag     string // its name, "" for token-env; that of the variable where none was given
	flags    *pflag.FlagSet
}

// variableName is what a shell accepts as the name of a variable.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (t *tokenFlag) register(f *pflag.FlagSet) {
	t.flags = f
	f.StringVar(&t.variable, "token-env", "", "environment variable `NAME` that holds the bearer token")
}

// fallBack takes the token from $DESTKIT_TOKEN where no flag names a variable.
func (t *tokenFlag) fallBack() {
	given := t.flags != nil && t.flags.Changed("token-env")
	if t.variable == "" && !given && os.Getenv(tokenVariable) != "" {
		t.variable = tokenVariable
	}
}

// read returns the token, "" when none was asked for. An empty variable is an
// error: the caller meant to send a token.
func (t *tokenFlag) read() (string, error) {
	if t.variable == "" {
		if t.flags != nil && t.flags.Changed("token-env") {
			return "", exit.Usagef("--token-env is empty: give the name of the variable without $, such as --token-env TOKEN")
		}
		return "", nil
	}
	if err := t.checkName(); err != nil {
		return "", err
	}
	named, way := "--"+cmp.Or(t.flag, "token-env")+" "+t.variable, ", or leave the flag out"
	if t.flag == t.variable { // nobody has given a flag
		named, way = t.variable, ""
	}
	value, set := os.LookupEnv(t.variable)
	switch {
	case !set:
		return "", exit.Usagef("%s: the environment variable is not set; run 'export %s=…' first%s", named, t.variable, way)
	case strings.TrimSpace(value) == "":
		return "", exit.Usagef("%s: the environment variable is empty", named)
	case strings.ContainsAny(value, "\r\n"):
		return "", exit.Usagef("%s: the token holds a line break; was it read from a file?", named)
	}
	return value, nil
}

// checkName refuses what is no name of a variable. Where the shell has put the
// value in its place it is the token itself, so it is not repeated.
func (t *tokenFlag) checkName() error {
	flag := "--" + cmp.Or(t.flag, "token-env")
	if name, dollar := strings.CutPrefix(t.variable, "$"); dollar {
		name = strings.Trim(name, "{}")
		if !variableName.MatchString(name) {
			name = "NAME"
		}
		return exit.Usagef("%s takes the name without $: %s %s", flag, flag, name)
	}
	if !variableName.MatchString(t.variable) {
		return exit.Usagef("%s takes the name of an environment variable, not the token: run 'export TOKEN=…' and give %s TOKEN", flag, flag)
	}
	return nil
}
