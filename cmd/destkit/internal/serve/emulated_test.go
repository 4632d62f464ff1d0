package serve

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server"
)

// emulatedObjects is one object as the service describes it.
var emulatedObjects = []server.EmulatedObject{{
	Object:     rpc.Object{APIName: "Contact", Label: "Contact", CanCreateFields: rpc.CanCreateOnWrite},
	Operations: []string{rpc.OperationUpsert},
	Fields: []rpc.Field{
		{APIName: "Id", Label: "Id", Identifier: true, Required: true, Createable: true, Updateable: true, Type: rpc.TypeString},
		{APIName: "Kept", Label: "Kept", Createable: true, Type: rpc.TypeString},
	},
}}

// storeContact stores one contact and gives the answer.
func storeContact(e *server.Emulated, id, field string) string {
	body := `{"jsonrpc":"2.0","id":"1","method":"sync_batch","params":{"sync_plan":{"object":{"object_api_name":"Contact","label":"Contact"},"operation":"upsert","schema":{` +
		`"Id":{"active_identifier":true,"field":{"field_api_name":"Id","label":"Id","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}},` +
		`"` + field + `":{"active_identifier":false,"field":{"field_api_name":"` + field + `","label":"x","identifier":false,"required":false,"createable":true,"updateable":true,"type":"string","array":false}}}},` +
		`"records":[{"Id":"` + id + `","` + field + `":"value"}]}}`
	w := httptest.NewRecorder()
	e.Endpoint.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(body)))
	return w.Body.String()
}

func TestEmulatedDestinations(t *testing.T) {
	for name, dir := range map[string]string{"in memory": "", "on disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			sims := newSimulators(dir)
			open := func(key string) *server.Emulated {
				e, err := sims.emulate(key, emulatedObjects)
				require.NoError(t, err)
				return e
			}
			ids := func(e *server.Emulated) (list []string) {
				records, total, err := e.Records("Contact", 0, 10)
				require.NoError(t, err)
				require.Len(t, records, total)
				for _, r := range records {
					var record struct {
						Fields struct {
							ID string `json:"Id"`
						}
					}
					require.NoError(t, json.Unmarshal(r, &record))
					list = append(list, record.Fields.ID)
				}
				return list
			}
			first := open("destination-1")
			require.Contains(t, storeContact(first, "a", "Made"), `"success":true`)
			require.Contains(t, storeContact(open("unsaved-1"), "b", "Kept"), `"success":true`)
			require.Equal(t, []string{"a"}, ids(open("destination-1")), "the same key, the same records")

			// Closed and opened again, the records and the created field are there.
			require.NoError(t, first.Close())
			first = open("destination-1")
			require.Equal(t, []string{"a"}, ids(first))
			w := httptest.NewRecorder()
			first.Endpoint.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(
				`{"jsonrpc":"2.0","id":"1","method":"list_fields","params":{"object":{"object_api_name":"Contact","label":"Contact"}}}`)))
			require.Contains(t, w.Body.String(), `"field_api_name":"Made"`)
			require.Contains(t, w.Body.String(), `"field_api_name":"Kept","label":"Kept","identifier":false,"required":false,"createable":true,"updateable":false`)

			// Only destinations of the world itself are on disk, for the owner alone.
			var files []string
			if dir != "" {
				entries, err := os.ReadDir(filepath.Join(dir, emulatedFolder))
				require.NoError(t, err)
				for _, e := range entries {
					info, err := e.Info()
					require.NoError(t, err)
					require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), e.Name())
					files = append(files, e.Name())
				}
				require.Contains(t, files, "destination-1.db")
				require.NotContains(t, strings.Join(files, " "), "unsaved")
			}

			// A snapshot goes from one to another.
			var saved bytes.Buffer
			require.NoError(t, first.Snapshot(&saved))
			second := open("destination-2")
			require.NoError(t, second.Restore(&saved))
			require.Equal(t, []string{"a"}, ids(second))

			// Removed, nothing is left.
			require.NoError(t, second.Close())
			require.NoError(t, second.Remove())
			require.NoError(t, second.Remove())
			require.Empty(t, ids(open("destination-2")))
			require.NoError(t, sims.Close())
		})
	}
}

// TestEmulatedDestinationsCannotBeStored: a refusal of the system is an error
// that names the attempt.
func TestEmulatedDestinationsCannotBeStored(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, emulatedFolder), []byte("a file"), 0o600))
	sims := newSimulators(dir)
	_, err := sims.emulate("destination-1", emulatedObjects)
	require.ErrorContains(t, err, "make folder of emulated destinations")
	require.NoError(t, sims.Close())
}
