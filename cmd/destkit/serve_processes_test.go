package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/source/postgrestest"
)

// asked makes a call and gives its status and body.
func asked(t *testing.T, method, url, token string, body any) (int, string) {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(text))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// TestServeAsSeveralProcesses: two processes of one machine are one service, without
// a data directory; another machine is told which key it lacks.
func TestServeAsSeveralProcesses(t *testing.T) {
	place := sharedPlace(t, "processes")
	t.Setenv(envStorePassword, postgrestest.Password)
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	store := "--store=" + place.url

	// Several may start at once on a schema that is new: one makes the key.
	type start struct {
		lines []string
		stop  func() int
	}
	starts := make(chan start, 2)
	for range 2 {
		go func() {
			lines, stop := served(t, "listening", store, "--drain-timeout=1m")
			starts <- start{lines, stop}
		}()
	}
	first, second := <-starts, <-starts
	require.NotEmpty(t, first.lines)
	require.NotEmpty(t, second.lines)
	urls := []string{strings.TrimPrefix(first.lines[0], "listening "), strings.TrimPrefix(second.lines[0], "listening ")}
	require.FileExists(t, filepath.Join(config, "destkit", "master.key"))

	status, out := ran(t, "serve", "new-token", store)
	require.Equal(t, 0, status, out)
	_, key, _ := strings.Cut(out, "workspace API key: ")
	key = strings.TrimSpace(key)

	// What one has made the other one shows, and the records of emulated
	// destinations, too.
	status, text := asked(t, "POST", urls[0]+"/api/v1/destinations", key, map[string]any{"service_connection": map[string]any{
		"name": "Sheets", "type": "google_sheets", "credentials": map[string]any{"spreadsheet_id": "1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms", "service_account_key": "the key of an account"},
	}})
	require.Equal(t, http.StatusCreated, status, text)
	for _, url := range urls {
		status, text = asked(t, "GET", url+"/api/v1/destinations/1", key, nil)
		require.Equal(t, http.StatusOK, status, text)
		status, text = asked(t, "GET", url+"/_control/destinations/1/records?object=Sheet1", "", nil)
		require.Less(t, status, http.StatusInternalServerError, text)
		status, text = asked(t, "GET", url+"/readyz", "", nil)
		require.Equal(t, http.StatusOK, status, text)
		// There is no folder that both have.
		status, text = asked(t, "POST", url+"/api/v1/sources", key, map[string]any{"connection": map[string]any{
			"name": "Rows", "type": "csv", "credentials": map[string]any{"path": config},
		}})
		require.Equal(t, http.StatusBadRequest, status, text)
		require.Contains(t, text, "share no folder")
	}

	// Another machine has no key, and makes none that would open nothing.
	elsewhere := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", elsewhere)
	status, out = ran(t, "serve", "--addr=127.0.0.1:0", store)
	require.Equal(t, 2, status, out)
	require.Contains(t, out, "was sealed with a master key that is not here: set DESTKIT_MASTER_KEY or --key-file")
	require.NoDirExists(t, filepath.Join(elsewhere, "destkit"))
	t.Setenv(envMasterKey, strings.Repeat("0f", keySize))
	status, out = ran(t, "serve", "--addr=127.0.0.1:0", store)
	require.Equal(t, 2, status, out)
	require.Contains(t, out, "the master key in DESTKIT_MASTER_KEY does not open postgres://")
	require.NoError(t, os.Unsetenv(envMasterKey))

	require.Equal(t, 0, first.stop())
	require.Equal(t, 0, second.stop())
}

// TestMadeKeyOfTheSlower: of two machines that start at once on a new schema the
// slower one has made a key that seals nothing, and takes it away again.
func TestMadeKeyOfTheSlower(t *testing.T) {
	place := sharedPlace(t, "slower")
	t.Setenv(envStorePassword, postgrestest.Password)
	t.Setenv(envMasterKey, strings.Repeat("0f", keySize))
	_, stop := served(t, "listening", "--store="+place.url)
	require.Equal(t, 0, stop())
	made, err := makeKeyFile(filepath.Join(t.TempDir(), "master.key"))
	require.NoError(t, err)
	s := &serving{place: *place}
	s.config.Store, s.config.StorePassword, s.config.MasterKey = place.url, place.password, made.bytes
	_, err = s.open(t.Context(), made)
	require.ErrorContains(t, err, "does not open")
	require.NoFileExists(t, made.file)
}
