package command

import (
	"os"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// given is a flag as it stands after a command line.
func given(t *testing.T, args ...string) *TokenFlag {
	t.Helper()
	var token TokenFlag
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	token.Register(flags)
	require.NoError(t, flags.Parse(args))
	return &token
}

func TestRead(t *testing.T) {
	t.Setenv("MINE", "s3cr3t")
	token, err := given(t, "--token-env", "MINE").Read()
	require.NoError(t, err)
	require.Equal(t, "s3cr3t", token)
	token, err = given(t).Read()
	require.NoError(t, err)
	require.Empty(t, token, "none was asked for")
}

// TestFallBack: a flag wins over $DESTKIT_TOKEN, also one that names nothing.
func TestFallBack(t *testing.T) {
	t.Setenv(TokenVariable, "s3cr3t")
	token := given(t)
	token.FallBack()
	got, err := token.Read()
	require.NoError(t, err)
	require.Equal(t, "s3cr3t", got)
	token = given(t, "--token-env=")
	token.FallBack()
	_, err = token.Read()
	require.ErrorContains(t, err, "--token-env is empty")
}

func TestOptional(t *testing.T) {
	t.Setenv("MINE", "s3cr3t")
	got, err := OptionalSecret("MINE")
	require.NoError(t, err)
	require.Equal(t, "s3cr3t", got)
	t.Setenv("MINE", "")
	got, err = OptionalSecret("MINE")
	require.NoError(t, err)
	require.Empty(t, got)
	require.NoError(t, os.Unsetenv("MINE"))
	got, err = OptionalSecret("MINE")
	require.NoError(t, err)
	require.Empty(t, got)
	t.Setenv("MINE", " ")
	_, err = OptionalSecret("MINE")
	require.EqualError(t, err, "MINE: the environment variable is empty")
}

// TestVariableOfAFile: messages name the key that has named the variable.
func TestVariableOfAFile(t *testing.T) {
	_, err := (&TokenFlag{Key: "c.yaml: token_env", Variable: "NO_SUCH_VARIABLE"}).Read()
	require.EqualError(t, err, "c.yaml: token_env: NO_SUCH_VARIABLE: the environment variable is not set; run 'export NO_SUCH_VARIABLE=…' first, or take the key out")
	_, err = (&TokenFlag{Key: "c.yaml: token_env", Variable: "$TOKEN"}).Read()
	require.EqualError(t, err, "c.yaml: token_env: takes the name without $: c.yaml: token_env: TOKEN")
}
