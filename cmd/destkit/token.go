package main

import (
	"cmp"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// tokenFlag names the environment variable that holds the bearer token. A
// token never stands on a command line, where every process can read it.
type tokenFlag struct {
	variable string
	flag     string // its name, "" for token-env; that of the variable where none was given
}

func (t *tokenFlag) register(f *pflag.FlagSet) {
	f.StringVar(&t.variable, "token-env", "", "environment variable `NAME` that holds the bearer token")
}

// read returns the token, "" when none was asked for. An empty variable is an
// error: the caller meant to send a token.
func (t *tokenFlag) read() (string, error) {
	if t.variable == "" {
		return "", nil
	}
	named, way := "--"+cmp.Or(t.flag, "token-env")+" "+t.variable, ", or leave the flag out"
	if t.flag == t.variable { // nobody has given a flag
		named, way = t.variable, ""
	}
	value, set := os.LookupEnv(t.variable)
	switch {
	case !set:
		return "", usagef("%s: the environment variable is not set; run 'export %s=…' first%s", named, t.variable, way)
	case strings.TrimSpace(value) == "":
		return "", usagef("%s: the environment variable is empty", named)
	case strings.ContainsAny(value, "\r\n"):
		return "", usagef("%s: the token holds a line break; was it read from a file?", named)
	}
	return value, nil
}
