// Package clients_test runs the OpenAPI document through common tools: two
// linters, and generators of clients, whose clients are compiled and then used
// against the service in both dialects. It is for tests only; which mistakes no
// tool is needed for, the tests of package openapi find.
package clients_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server"
	"github.com/destkit/destkit/server/api"
)

// TestMatrixClients: the linters find nothing, warnings included, and each
// generated client compiles in its language's strictest mode and makes a round trip.
func TestMatrixClients(t *testing.T) {
	if !matrixtest.Whole() && !matrixtest.Named() {
		t.Skip("generated clients are part of the matrices: run it with DESTKIT_TIER=full")
	}
	t.Run("npm", func(t *testing.T) {
		t.Parallel()
		dir := workspace(t, "npm")
		installNode(t, dir)
		for _, tool := range linters {
			t.Run(tool.name, func(t *testing.T) { run(t, dir, tool.command) })
		}
		for _, tool := range nodeGenerators {
			run(t, dir, tool.command)
		}
		run(t, dir, "npx tsc -p .")
		for _, tool := range nodeGenerators {
			roundTrips(t, tool.name, dir, "node", "out/"+tool.client+".js")
		}
	})
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		dir := workspace(t, "go")
		installGo(t, dir)
		run(t, dir, goGenerator.command)
		run(t, dir, "go vet ./...")
		run(t, dir, "go build -o roundtrip .")
		roundTrips(t, goGenerator.name, dir, filepath.Join(dir, "roundtrip"))
	})
}

// workspace is a copy of a folder of testdata with the document in it.
func workspace(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))))
	for file, text := range map[string][]byte{"openapi.yaml": openapi.REST(), "openapi.json": openapi.RESTJSON()} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), text, 0o644))
	}
	return dir
}

// seen is what a client saw on its round trip; every client prints it.
type seen struct {
	Before, After counts
	Known         bool
	Tables        []string
	Objects       bool
	Created       struct {
		Status   string
		Mappings int
		Unset    []any
	}
	Run struct {
		Status         string
		RecordsUpdated int     `json:"records_updated"`
		ErrorCode      *string `json:"error_code"`
	}
	Records          int
	Synced           string
	Missing, Refused failure
}

type counts struct{ Sources, Destinations, Syncs int }

type failure struct {
	HTTP    int
	Status  any
	Message string
	Errors  []struct{ Field, Message string }
}

// roundTrips runs a client against a service of each dialect and checks its
// output.
func roundTrips(t *testing.T, name, dir string, command ...string) {
	t.Helper()
	for _, dialect := range []server.Dialect{server.DialectSpec, server.DialectLive} {
		t.Run(name+" "+string(dialect), func(t *testing.T) {
			env := serve(t, dialect)
			var s seen
			text := execute(t, dir, env, command...)
			require.NoError(t, json.Unmarshal(text, &s), string(text))

			require.Equal(t, counts{}, s.Before)
			require.Equal(t, counts{1, 1, 1}, s.After)
			require.True(t, s.Known, "the source type generator, with the rules of its fields")
			require.Equal(t, []string{"generated"}, s.Tables)
			require.True(t, s.Objects, "the object person")
			require.Equal(t, 2, s.Created.Mappings)
			require.Equal(t, []any{nil, nil}, s.Created.Unset, "values of enums that are not set")
			require.Equal(t, "completed", s.Run.Status)
			require.Equal(t, 3, s.Run.RecordsUpdated)
			require.Nil(t, s.Run.ErrorCode)
			require.Equal(t, 3, s.Records)
			require.Equal(t, 404, s.Missing.HTTP)
			require.Equal(t, 400, s.Refused.HTTP)
			require.Equal(t, "error", s.Refused.Status)
			require.Contains(t, s.Refused.Message, "mappings")
			if dialect == server.DialectLive {
				require.Equal(t, []string{"Ready", "Up to Date"}, []string{s.Created.Status, s.Synced})
				require.Equal(t, 404.0, s.Missing.Status)
				return
			}
			require.Equal(t, []string{"ready", "up to date"}, []string{s.Created.Status, s.Synced})
			require.Equal(t, "not_found", s.Missing.Status)
			require.NotEmpty(t, s.Missing.Message)
			require.NotEmpty(t, s.Refused.Errors)
		})
	}
}

// serve starts a service and an endpoint, and gives where they are to a client.
func serve(t *testing.T, dialect server.Dialect) []string {
	t.Helper()
	sim, err := destsim.New(destsim.Config{Preset: "crm"})
	require.NoError(t, err)
	endpoint := httptest.NewServer(sim)
	t.Cleanup(func() { endpoint.Close(); sim.Close() })
	s, err := server.New(t.Context(), server.Config{Dialect: dialect, Development: true})
	require.NoError(t, err)
	running := httptest.NewServer(s)
	t.Cleanup(func() {
		running.Close()
		require.NoError(t, s.Close())
	})
	return []string{
		"CLIENT_BASE=" + running.URL + api.BasePath,
		"CLIENT_CONTROL=" + running.URL + "/_control",
		"CLIENT_ENDPOINT=" + endpoint.URL + "/hook",
		"CLIENT_TOKEN=" + s.FirstTokens().WorkspaceAPIKey,
		"CLIENT_DIALECT=" + string(dialect),
	}
}

// TestGuideHasTheCommands: the tests run the commands of the guide.
func TestGuideHasTheCommands(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/service.md")
	require.NoError(t, err)
	for _, tool := range append(append(linters, nodeGenerators...), goGenerator) {
		require.Contains(t, string(guide), tool.command, tool.name)
	}
}

// TestLockFilesNameNoRegistry: where packages come from is for the machine to say.
func TestLockFilesNameNoRegistry(t *testing.T) {
	for _, file := range []string{"package.json", "package-lock.json", ".npmrc"} {
		text, err := os.ReadFile(filepath.Join("testdata/npm", file))
		require.NoError(t, err)
		for _, address := range []string{`"resolved"`, "registry=", "https://registry"} {
			require.False(t, strings.Contains(string(text), address), "%s has %s", file, address)
		}
	}
}
