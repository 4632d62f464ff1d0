package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/matrixtest"
)

// asChild is startedAndEnded for a server with a control API below its URL, which must
// end with status 0.
func asChild(t *testing.T, args ...string) (first command.FirstLine, line, stderr string) {
	t.Helper()
	first, line, stderr = startedAndEnded(t, 0, args...)
	require.Equal(t, first.URL+"/_control", first.Control)
	return first, line, stderr
}

// startedAndEnded starts a server whose first line is JSON, closes its standard input
// once that line is there, and returns all that it has printed. It must end by itself,
// with that status.
func startedAndEnded(t *testing.T, status int, args ...string) (first command.FirstLine, line, stderr string) {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command("destkit", append(args, "--addr", "127.0.0.1:0", "--json", "--exit-with-stdin")...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "HOME="+t.TempDir()), &said
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	decoder := json.NewDecoder(stdout)
	require.NoError(t, decoder.Decode(&first))
	require.NoError(t, stdin.Close())
	rest, err := io.ReadAll(io.MultiReader(decoder.Buffered(), stdout))
	require.NoError(t, err)
	require.Equal(t, "\n", string(rest), "standard output is one line")
	_ = cmd.Wait() // the status shows it
	require.Equal(t, status, cmd.ProcessState.ExitCode(), said.String())
	require.Equal(t, cmd.Process.Pid, first.PID)
	require.Equal(t, command.ReadBuild().Version, first.Version)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, first.URL)
	encoded, err := json.Marshal(first)
	require.NoError(t, err)
	return first, string(encoded), said.String()
}

func TestServersOfAnotherProgram(t *testing.T) {
	matrixtest.Long(t)
	t.Run("a service in memory", func(t *testing.T) {
		first, _, stderr := asChild(t, "serve")
		require.Equal(t, first.URL+"/api/v1", first.API)
		require.NotNil(t, first.Organization)
		require.EqualValues(t, 1, first.Organization.OrganizationID)
		require.Contains(t, first.Organization.PersonalAccessToken, "pat_")
		require.Contains(t, first.Organization.WorkspaceAPIKey, "secret-token:")
		require.NotContains(t, stderr, first.Organization.WorkspaceAPIKey)
	})

	t.Run("what else there is to say goes to standard error", func(t *testing.T) {
		_, _, stderr := asChild(t, "serve", "--data", filepath.Join(t.TempDir(), "data"))
		require.Regexp(t, `(?m)^made the master key `, stderr)
	})

	t.Run("the second start of a data directory makes no organization", func(t *testing.T) {
		t.Setenv(command.MasterKeyVariable, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
		data := filepath.Join(t.TempDir(), "data")
		first, _, _ := asChild(t, "serve", "--data", data)
		require.NotNil(t, first.Organization)
		first, line, _ := asChild(t, "serve", "--data", data)
		require.Nil(t, first.Organization)
		require.NotContains(t, line, "organization")
	})

	t.Run("tokens of the environment are not shown", func(t *testing.T) {
		t.Setenv(command.AccessTokenVariable, "given-access-token-1234567890")
		t.Setenv(command.WorkspaceKeyVariable, "given-workspace-key-1234567890")
		first, line, stderr := asChild(t, "serve")
		require.Empty(t, first.Organization.PersonalAccessToken)
		require.Empty(t, first.Organization.WorkspaceAPIKey)
		require.NotContains(t, line+stderr, "given-")
	})

	t.Run("a simulator", func(t *testing.T) {
		first, _, stderr := asChild(t, "destsim", "--violate", "RES-002")
		require.Empty(t, first.API)
		require.Nil(t, first.Organization)
		require.Regexp(t, `(?m)^breaking RES-002: `, stderr)
	})

	t.Run("a proxy", func(t *testing.T) {
		_, line, said := startedAndEnded(t, exit.NotTested, "proxy", "--to", "http://127.0.0.1:1/")
		require.NotContains(t, line, "control_url", "there is no second port")
		require.Contains(t, said, "unknown: ", "the verdict goes to standard error")
		first, _, stderr := startedAndEnded(t, exit.NotTested, "proxy", "--to", "http://127.0.0.1:1/", "--control-addr", "127.0.0.1:0")
		require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, first.Control)
		require.NotEqual(t, first.URL, first.Control)
		require.Contains(t, stderr, "control "+first.Control)
	})

	t.Run("standard input that has ended already", func(t *testing.T) {
		out, err := exec.Command("destkit", "destsim", "--addr", "127.0.0.1:0", "--exit-with-stdin").CombinedOutput()
		require.NoError(t, err, string(out))
	})
}
