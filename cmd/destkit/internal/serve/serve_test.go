package serve

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
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

// TestKeyIsNoSource: the key file can be kept anywhere, so the service is told.
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

// TestUnseal opens a token of a directory, bare and as it stands in a log.
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
