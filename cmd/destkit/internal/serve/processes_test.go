package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/internal/testkit"
)

// asked makes a call and gives its status and body.
func asked(t *testing.T, method, url, token string, body any) (int, string) {
	t.Helper()
	var text []byte
	var err error
	if body != nil {
		text, err = json.Marshal(body)
		require.NoError(t, err)
	}
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

var sharedPlaces atomic.Int64

// sharedPlace is a new schema of the database of the tests, as --store names it.
func sharedPlace(t *testing.T, schema string) *storePlace {
	t.Helper()
	db := testkit.StartPostgres(t)
	return &storePlace{
		url:      fmt.Sprintf("postgres://%s@/postgres?host=%s&port=%d&search_path=%s_%d", testkit.PostgresUser, db.Folder, db.Port, schema, sharedPlaces.Add(1)),
		password: testkit.PostgresPassword,
	}
}

// TestServeAsSeveralProcesses: two processes of one machine are one service, without
// a data directory; another machine is told which key it lacks.
func TestServeAsSeveralProcesses(t *testing.T) {
	place := sharedPlace(t, "processes")
	t.Setenv(command.StorePasswordVariable, testkit.PostgresPassword)
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
	t.Setenv(command.MasterKeyVariable, strings.Repeat("0f", keySize))
	status, out = ran(t, "serve", "--addr=127.0.0.1:0", store)
	require.Equal(t, 2, status, out)
	require.Contains(t, out, "the master key in DESTKIT_MASTER_KEY does not open postgres://")
	require.NoError(t, os.Unsetenv(command.MasterKeyVariable))

	require.Equal(t, 0, first.stop())
	require.Equal(t, 0, second.stop())
}

// TestMadeKeyOfTheSlower: of two machines that start at once on a new schema the
// slower one has made a key that seals nothing, and takes it away again.
func TestMadeKeyOfTheSlower(t *testing.T) {
	place := sharedPlace(t, "slower")
	t.Setenv(command.StorePasswordVariable, testkit.PostgresPassword)
	t.Setenv(command.MasterKeyVariable, strings.Repeat("0f", keySize))
	_, stop := served(t, "listening", "--store="+place.url)
	require.Equal(t, 0, stop())
	made, err := MakeKeyFile(filepath.Join(t.TempDir(), "master.key"))
	require.NoError(t, err)
	s := &Flags{place: *place}
	s.Config.Store, s.Config.StorePassword, s.Config.MasterKey = place.url, place.password, made.Bytes
	_, err = s.Open(t.Context(), made)
	require.ErrorContains(t, err, "does not open")
	require.NoFileExists(t, made.file)
}

// runSeed is a sync of made-up rows to an emulated destination.
const runSeed = `organizations:
  - first: true
    workspaces:
      - name: First workspace
        sources:
          - {name: Rows, type: generator, credentials: {rows: 50, seed: 1}}
        destinations:
          - {name: CRM, type: salesforce, credentials: {instance_url: "https://acme.my.salesforce.com", client_id: a, client_secret: b}}
        syncs:
          - label: Contacts
            source: Rows
            source_object: {table: generated}
            destination: CRM
            object: Contact
            operation: upsert
            mappings:
              - {from: {type: column, data: email}, to: Email, is_primary_identifier: true}
              - {from: {type: column, data: last_name}, to: LastName}
`

// TestServeAPIAndWorker: what one process is asked for the other one does, and what it
// has stored the first one shows; a seed is put in once, whoever has the flag.
func TestServeAPIAndWorker(t *testing.T) {
	place := sharedPlace(t, "roles")
	t.Setenv(command.StorePasswordVariable, testkit.PostgresPassword)
	t.Setenv(command.MasterKeyVariable, strings.Repeat("0f", keySize))
	key := "given-workspace-key-1234567890"
	t.Setenv(command.WorkspaceKeyVariable, key)
	seed := filepath.Join(t.TempDir(), "seed.yaml")
	require.NoError(t, os.WriteFile(seed, []byte(runSeed), 0o600))
	lines, stopAPI := served(t, "}", "--store="+place.url, "--role=api", "--seed="+seed)
	require.Contains(t, strings.Join(lines, "\n"), "seeded:")
	api := strings.TrimPrefix(lines[0], "listening ")
	lines, stopWorker := served(t, "not seeded", "--store="+place.url, "--role=worker", "--workers=2", "--seed="+seed)
	require.Contains(t, lines[len(lines)-1], "had its seed before")
	worker := strings.TrimPrefix(lines[0], "listening ")

	status, text := asked(t, "POST", api+"/api/v1/syncs/1/trigger", key, nil)
	require.Equal(t, http.StatusOK, status, text)
	status, text = asked(t, "POST", api+"/_control/settle", "", nil)
	require.Equal(t, http.StatusOK, status, text)
	_, text = asked(t, "GET", api+"/api/v1/sync_runs/1", key, nil)
	require.Contains(t, text, `"status":"completed"`)
	require.Contains(t, text, `"records_updated":50`)
	for _, url := range []string{api, worker} {
		status, text = asked(t, "GET", url+"/_control/destinations/1/records?object=Contact&limit=1", "", nil)
		require.Equal(t, http.StatusOK, status, text)
		require.Contains(t, text, `"total":50`)
		status, text = asked(t, "GET", url+"/metrics", "", nil)
		require.Equal(t, http.StatusOK, status)
		for _, figure := range []string{"destkit_processes_alive ", `destkit_store_connections{state="used"} `, `destkit_process_info{process="`} {
			require.True(t, strings.Contains(text, "\n"+figure), figure)
		}
	}
	status, text = asked(t, "GET", worker+"/api/v1/syncs", key, nil)
	require.Equal(t, http.StatusServiceUnavailable, status, text)
	require.Equal(t, 0, stopWorker())

	// A run that no process works on waits; the records go with their destination.
	status, text = asked(t, "DELETE", api+"/api/v1/syncs/1", key, nil)
	require.Less(t, status, 300, text)
	status, text = asked(t, "DELETE", api+"/api/v1/destinations/1", key, nil)
	require.Less(t, status, 300, text)
	require.Equal(t, 0, stopAPI())
	db := testkit.StartPostgres(t)
	conn, err := pgx.Connect(t.Context(), fmt.Sprintf("postgres://%s:%s@/postgres?host=%s&port=%d", testkit.PostgresUser, testkit.PostgresPassword, db.Folder, db.Port))
	require.NoError(t, err)
	defer conn.Close(t.Context())
	var left int
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'roles\\_%\\_destination\\_%'").Scan(&left))
	require.Zero(t, left)
}
