package clients_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
)

// tool is a program and the command that docs/service.md gives for it. client is
// the file of the round trip.
type tool struct{ name, command, client string }

var linters = []tool{
	{name: "spectral", command: "npx spectral lint --ruleset spectral.yaml --fail-severity warn openapi.yaml"},
	{name: "redocly", command: "npx redocly lint --config redocly.yaml openapi.yaml"},
}

// openapi-typescript-codegen is used instead of openapi-generator, which it
// resembles in its output: a model for each schema, a service for each tag,
// enums. The latter is a Java program that fetches itself.
var nodeGenerators = []tool{
	{"openapi-typescript", "npx openapi-typescript openapi.yaml --output generated/openapi-typescript/schema.d.ts", "openapi-fetch"},
	{"hey-api", "npx openapi-ts --file openapi-ts.config.mjs", "hey-api"},
	{
		"openapi-typescript-codegen", "npx openapi-typescript-codegen --input openapi.yaml --output generated/openapi-typescript-codegen",
		"openapi-typescript-codegen",
	},
}

var goGenerator = tool{name: "oapi-codegen", command: "go tool oapi-codegen -config oapi-codegen.yaml openapi.json"}

// missing ends a test that lacks a program or the network.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	matrixtest.Missing(t, "npm", format, args...)
}

// installNode lays the pinned packages into a workspace. They are installed once
// for each state of the lock file, in the user's cache.
func installNode(t *testing.T, dir string) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			missing(t, "generated clients need %s 18 or later: %v", program, err)
		}
	}
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	require.NoError(t, err)
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	sum := sha256.Sum256(lock)
	packages := filepath.Join(cache, "destkit", "clients", hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(packages); err != nil {
		// It is complete or not there: another process may do the same.
		require.NoError(t, os.MkdirAll(filepath.Dir(packages), 0o755))
		fresh, err := os.MkdirTemp(filepath.Dir(packages), "install-")
		require.NoError(t, err)
		defer os.RemoveAll(fresh)
		for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(fresh, name), text, 0o644))
		}
		if text, err := command(fresh, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
			missing(t, "cannot install the packages of testdata/npm: %v\n%s", err, text)
		}
		if err := os.Rename(fresh, packages); err != nil {
			_, there := os.Stat(packages)
			require.NoError(t, there, err)
		}
	}
	require.NoError(t, os.Symlink(filepath.Join(packages, "node_modules"), filepath.Join(dir, "node_modules")))
}

// installGo fetches the pinned modules; Go keeps them and their builds.
func installGo(t *testing.T, dir string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		missing(t, "generated clients need Go: %v", err)
	}
	if text, err := command(dir, nil, "go", "mod", "download"); err != nil {
		missing(t, "cannot fetch the modules of testdata/go: %v\n%s", err, text)
	}
}

// scripts are the programs whose name another package takes too.
var scripts = map[string]string{"openapi-typescript-codegen": "openapi-typescript-codegen/bin/index.js"}

// run runs a command of the guide in a workspace; its output is shown when it
// fails.
func run(t *testing.T, dir, line string) {
	t.Helper()
	words := strings.Fields(line)
	if words[0] == "npx" {
		// The program that npx would find, without its start.
		script, named := scripts[words[1]]
		if !named {
			script = filepath.Join(".bin", words[1])
		}
		words = append([]string{"node", filepath.Join(dir, "node_modules", script)}, words[2:]...)
	}
	execute(t, dir, nil, words...)
}

// execute gives what a program writes to its standard output.
func execute(t *testing.T, dir string, env []string, words ...string) []byte {
	t.Helper()
	text, err := command(dir, env, words...)
	require.NoError(t, err, "%s\n%s", strings.Join(words, " "), text)
	return text
}

// command gives the standard output, and with an error also the standard
// error.
func command(dir string, env []string, words ...string) ([]byte, error) {
	c := exec.Command(words[0], words[1:]...)
	c.Dir = dir
	// The tools report nothing home, and our own flags are not for their module.
	c.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "DO_NOT_TRACK=1", "SCARF_ANALYTICS=false", "NO_COLOR=1", "GOFLAGS=-trimpath", "GOWORK=off")
	c.Env = append(c.Env, env...)
	var out, beside bytes.Buffer
	c.Stdout, c.Stderr = &out, &beside
	if err := c.Run(); err != nil {
		return append(out.Bytes(), beside.Bytes()...), err
	}
	return out.Bytes(), nil
}
