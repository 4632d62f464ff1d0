package command

import (
	"cmp"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

// TokenFlag names the environment variable that holds the bearer token. A
// token is never on a command line, where every process can read it.
type TokenFlag struct {
	Variable string // "" where none is named
	Name     string // of the flag, "" for token-env; that of the variable where none was given
	Key      string // the key of a file that has named the variable, "" where a flag has
	flags    *pflag.FlagSet
}

// TokenVariable is the environment variable that a report shows for the
// token of its endpoint.
const TokenVariable = "DESTKIT_TOKEN"

// VariableName is what a shell accepts as the name of a variable.
var VariableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Register adds --token-env.
func (t *TokenFlag) Register(f *pflag.FlagSet) {
	t.flags = f
	f.StringVar(&t.Variable, "token-env", "", "environment variable `NAME` with the bearer token")
}

// FallBack takes the token from $DESTKIT_TOKEN where no flag names a variable; it wins
// over a configuration file.
func (t *TokenFlag) FallBack() {
	given := t.flags != nil && t.flags.Changed("token-env")
	named := t.flags == nil && t.Variable != ""
	if !given && !named && os.Getenv(TokenVariable) != "" {
		t.Variable = TokenVariable
	}
}

// Read returns the token, "" when none was requested. An empty variable is an
// error: the caller meant to send a token.
func (t *TokenFlag) Read() (string, error) {
	if t.Variable == "" {
		if t.flags != nil && t.flags.Changed("token-env") {
			return "", exit.Usagef("--token-env is empty: give the name of the variable without $, such as --token-env TOKEN")
		}
		return "", nil
	}
	if err := t.checkName(); err != nil {
		return "", err
	}
	named, way := "--"+cmp.Or(t.Name, "token-env")+" "+t.Variable, ", or leave the flag out"
	if t.Key != "" {
		named, way = t.Key+": "+t.Variable, ", or take the key out"
	}
	if t.Name == t.Variable { // no flag was given
		named, way = t.Variable, ""
	}
	value, set := os.LookupEnv(t.Variable)
	switch {
	case !set:
		return "", exit.Usagef("%s: the environment variable is not set; run 'export %s=…' first%s", named, t.Variable, way)
	case strings.TrimSpace(value) == "":
		return "", exit.Usagef("%s: the environment variable is empty", named)
	case strings.ContainsAny(value, "\r\n"):
		return "", exit.Usagef("%s: the token holds a line break; was it read from a file?", named)
	}
	return value, nil
}

// checkName refuses invalid names of variables. Where the shell has put the
// value in its place it is the token itself, so it is not repeated.
func (t *TokenFlag) checkName() error {
	flag := "--" + cmp.Or(t.Name, "token-env")
	if t.Key != "" {
		flag = t.Key + ":"
	}
	if name, dollar := strings.CutPrefix(t.Variable, "$"); dollar {
		name = strings.Trim(name, "{}")
		if !VariableName.MatchString(name) {
			name = "NAME"
		}
		return exit.Usagef("%s takes the name without $: %s %s", flag, flag, name)
	}
	if !VariableName.MatchString(t.Variable) {
		return exit.Usagef("%s takes the name of an environment variable, not the token: run 'export TOKEN=…' and give %s TOKEN", flag, flag)
	}
	return nil
}

// OptionalSecret reads a variable that may be absent; set to nothing it is
// taken for absent, too, as deployments do.
func OptionalSecret(name string) (string, error) {
	if os.Getenv(name) == "" {
		return "", nil
	}
	return (&TokenFlag{Name: name, Variable: name}).Read()
}

// Environment variables of the service that hold secrets; none of them is ever
// printed.
const (
	AccessTokenVariable  = "DESTKIT_PERSONAL_ACCESS_TOKEN"
	WorkspaceKeyVariable = "DESTKIT_WORKSPACE_API_KEY"
	MasterKeyVariable    = "DESTKIT_MASTER_KEY"
)
