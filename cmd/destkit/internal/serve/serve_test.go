package serve

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/server"
)

func TestParseKey(t *testing.T) {
	key := make([]byte, keySize)
	for i := range key {
		key[i] = byte(i * 7)
	}
	for name, tc := range map[string]struct {
		text string
		good bool
	}{
		"hex":             {hex.EncodeToString(key), true},
		"hex in capitals": {strings.ToUpper(hex.EncodeToString(key)), true},
		"a line":          {hex.EncodeToString(key) + "\r\n", true},
		"base64":          {base64.StdEncoding.EncodeToString(key), true},
		"base64 of URLs":  {base64.RawURLEncoding.EncodeToString(key), true},
		"too short":       {hex.EncodeToString(key[1:]), false},
		"too long":        {hex.EncodeToString(key) + "00", false},
		"raw bytes":       {string(key), false},
		"nothing":         {"", false},
		"words":           {"correct horse battery staple", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseKey(tc.text)
			if tc.good {
				require.NoError(t, err)
				require.Equal(t, key, got)
				return
			}
			require.ErrorContains(t, err, "a master key is 64 hex digits, or base64 of 32 bytes")
			if len(tc.text) > 0 {
				require.NotContains(t, err.Error(), tc.text)
			}
		})
	}
}

// TestMadeKeyIsPrivate: the key is for its owner alone, and never made twice.
func TestMadeKeyIsPrivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "folder", "master.key")
	made, err := MakeKeyFile(file)
	require.NoError(t, err)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	info, err = os.Stat(filepath.Dir(file))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	_, err = MakeKeyFile(file)
	require.ErrorIs(t, err, os.ErrExist)
	read, err := readKeyFile(file)
	require.NoError(t, err)
	require.Equal(t, made.Bytes, read.Bytes)
	require.Empty(t, read.made)
}

// TestKeyIsNoSource: the key file can be kept anywhere, so the service is given its place.
func TestKeyIsNoSource(t *testing.T) {
	key, err := MakeKeyFile(filepath.Join(t.TempDir(), "users.csv"))
	require.NoError(t, err)
	s := Flags{}
	s.Config.Dir, s.Config.MasterKey = filepath.Join(t.TempDir(), "data"), key.Bytes
	world, err := s.Open(t.Context(), key)
	require.NoError(t, err)
	defer world.Close()
	text, err := json.Marshal(map[string]any{"connection": map[string]any{
		"name": "Spy", "type": "csv", "credentials": map[string]any{"path": key.file},
	}})
	require.NoError(t, err)
	r := httptest.NewRequest("POST", "/api/v1/sources", bytes.NewReader(text))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+world.FirstTokens().WorkspaceAPIKey)
	w := httptest.NewRecorder()
	world.ServeHTTP(w, r)
	require.Contains(t, w.Body.String(), `"last_test_succeeded":false`)
	require.Contains(t, w.Header().Get("Warning"), "for itself")
}

// TestUnseal opens a token of a directory, bare and as written in a log.
func TestUnseal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	key, err := MakeKeyFile(filepath.Join(t.TempDir(), "master.key"))
	require.NoError(t, err)
	var log bytes.Buffer
	world, err := server.New(t.Context(), server.Config{Dir: dir, MasterKey: key.Bytes, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	const secret = "https://127.0.0.1:1/hooks/very-secret?token=abc"
	r := httptest.NewRequest("POST", "/api/v1/destinations", strings.NewReader(
		`{"service_connection":{"name":"Own","type":"custom_api","credentials":{"api_version":1,"webhook_url":"`+secret+`"}}}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+world.FirstTokens().WorkspaceAPIKey)
	w := httptest.NewRecorder()
	world.ServeHTTP(w, r)
	require.Equal(t, 201, w.Code, w.Body)
	require.NoError(t, world.Close())
	require.NotContains(t, log.String(), "very-secret")
	token := regexp.MustCompile(server.SealedPrefix + `[\w+/=-]+`).FindString(log.String())
	require.NotEmpty(t, token, log.String())
	for _, text := range []string{token, "https://host.example/" + token} {
		var out bytes.Buffer
		root := newProgram()
		root.SetOut(&out)
		require.Zero(t, command.Execute(t.Context(), root, []string{"serve", "unseal", text, "--data", dir, "--key-file", key.file}))
		require.Equal(t, secret+"\n", out.String())
	}
}

// TestMistakesOfServe are reported before anything is opened, and without a secret.
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

// TestDataThatMustNotBeRead: a folder without permission is one line that reports it.
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
