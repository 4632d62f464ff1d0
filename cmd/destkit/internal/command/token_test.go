package command

import (
	"os"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
)

// given is a flag after parsing a command line.
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

// A report and a journal may have been changed by those who want the token.
func TestATokenDoesNotFollowAFileToAPublicAddress(t *testing.T) {
	t.Setenv(URLVariable, "")
	t.Setenv(TokenVariable, "s3cr3t")
	from := func(named string, flags ...string) (string, error) {
		cmd, connection := &cobra.Command{}, Connection{}
		connection.Register(cmd, &conformance.Options{})
		require.NoError(t, cmd.ParseFlags(flags))
		return EndpointURLOr(cmd, "", "r.json", named)
	}
	_, err := from("https://example.com/d")
	require.ErrorContains(t, err, "r.json names the endpoint https://example.com/d, and $DESTKIT_TOKEN would go there")
	require.NotContains(t, err.Error(), "s3cr3t")
	for _, c := range []struct {
		named string
		flags []string
	}{{"https://example.com/d", []string{"--token-env", "DESTKIT_TOKEN"}}, {"http://127.0.0.1:8080/", nil}, {"http://localhost:8080/", nil}} {
		got, err := from(c.named, c.flags...)
		require.NoError(t, err)
		require.Equal(t, c.named, got)
	}
	_, err = from("$DESTKIT_URL")
	require.ErrorContains(t, err, "the URL of the endpoint is missing")
}

// A caller must not set the headers that frame a request.
func TestFramingHeadersAreRefused(t *testing.T) {
	for _, line := range []string{"Content-Length: 5", "transfer-encoding: chunked", "Connection: close", "Upgrade: h2c"} {
		_, err := Headers([]string{line})
		require.ErrorContains(t, err, "destkit sets this header itself", line)
	}
	headers, err := Headers([]string{"Host: other.example", "X-Tenant: 7"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"Host": "other.example", "X-Tenant": "7"}, headers)
}

// A word that is no URL is the value of --write only where no object was named.
func TestAWordThatIsNoURL(t *testing.T) {
	given := func(flags ...string) error {
		cmd := &cobra.Command{}
		cmd.Flags().Bool("write", false, "")
		cmd.Flags().StringSlice("object", nil, "")
		require.NoError(t, cmd.ParseFlags(flags))
		_, err := EndpointURL(cmd, []string{"nourl"})
		return err
	}
	require.ErrorContains(t, given("--write"), "--write takes no value: use --write --object nourl")
	require.ErrorContains(t, given("--write", "--object", "person"), "the URL of the endpoint must start with https://")
}
