package serve

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

// TestMistakesOfServe are told before anything is opened, and without a secret.
func TestMistakesOfServe(t *testing.T) {
	folder := t.TempDir()
	for want, c := range map[string]struct {
		token, key string
		args       []string
	}{
		"hold the same value":                       {"hush-hush-hush-hush", "hush-hush-hush-hush", nil},
		"--max-row must be above 0, not 0":          {args: []string{"--max-row", "0"}},
		"--max-row must be above 0, not -5":         {args: []string{"--max-row", "-5"}},
		"is a URL: give its host alone: x":          {args: []string{"--allow-hosts", "http://x"}},
		"--to " + folder + " is a folder; name the": {args: []string{"backup", "--data", folder, "--to", folder}},
	} {
		t.Setenv(command.AccessTokenVariable, c.token)
		t.Setenv(command.WorkspaceKeyVariable, c.key)
		cmd := New()
		cmd.SetArgs(append(c.args, []string{"--data", folder}...))
		cmd.SetOut(&bytes.Buffer{})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hush-hush")
		var ended *exit.Error
		require.ErrorAs(t, err, &ended)
		require.Equal(t, exit.BadUsage, ended.Status)
	}
}

// ran is one command with all that it said.
func ran(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	var text bytes.Buffer
	root := newProgram()
	root.SetOut(&text)
	root.SetErr(&text)
	status = command.Execute(t.Context(), root, args)
	return status, text.String()
}

// TestDataIsAFolder: a file, and a folder below one, are refused before anything is made.
func TestDataIsAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("kept"), 0o600))
	for _, dir := range []string{file, filepath.Join(file, "below", "it")} {
		for _, args := range [][]string{{"serve", "--data", dir}, {"serve", "new-token", "--data", dir}, {"serve", "backup", "--data", dir, "--to", filepath.Join(t.TempDir(), "b")}} {
			status, said := ran(t, args...)
			require.Equal(t, exit.BadUsage, status, said)
			require.Contains(t, said, "--data "+dir+": "+file+" is a file; give a folder", args)
		}
	}
}

// TestDataThatMustNotBeRead: a folder without permission is one line that says so.
func TestDataThatMustNotBeRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if _, err := os.ReadDir(dir); err == nil {
		t.Skip("this user may read everything")
	}
	status, said := ran(t, "serve", "--data", dir)
	require.Equal(t, exit.BadUsage, status, said)
	require.Contains(t, said, "this user has no permission to read the folder")
}

func TestReadPassword(t *testing.T) {
	file := t.TempDir() + "/password"
	for name, tc := range map[string]struct{ text, want, said string }{
		"as it is":         {" with spaces ", " with spaces ", ""},
		"with a line end":  {"secret-word\r\n", "secret-word", ""},
		"empty":            {"\n", "", "is empty"},
		"two lines":        {"secret-word\nmore", "", "holds more than one line"},
		"another file":     {string(make([]byte, maxPassword+1)), "", "is larger than 4096 bytes"},
		"a NUL at the end": {"secret-word\x00", "", "holds more than one line"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(file, []byte(tc.text), 0o600))
			got, err := readPassword(file)
			if tc.said == "" {
				require.NoError(t, err)
				require.Equal(t, tc.want, got)
				return
			}
			require.ErrorContains(t, err, tc.said)
			require.NotContains(t, err.Error(), "secret-word")
		})
	}
}

// TestReadySaysThatNothingListens: the words are those of the other commands.
func TestReadySaysThatNothingListens(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := ln.Addr().String()
	ln.Close()
	r := readiness{url: "http://" + at, timeout: time.Minute}
	require.EqualError(t, r.run(t.Context(), io.Discard),
		"no answer: nothing listens at "+at+": start the service, or correct the host and port of the URL")
}

// newProgram is the program with this one command.
func newProgram() *cobra.Command {
	root := &cobra.Command{Use: "destkit", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(New())
	return root
}
