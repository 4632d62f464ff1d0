package conformance_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
)

const endpointToken = "t0ken-Of-The-Endpoint"

// foreign is an endpoint in another language and the mistakes it can make,
// each with the check that is meant for it.
type foreign struct {
	program, file string
	objects       []string
	mistakes      map[string]string
}

var nodeEndpoint = foreign{
	program: "node", file: "node.mjs", objects: []string{"customer", "invoice"},
	mistakes: map[string]string{
		"write-not-awaited":             "DUR-002",
		"promise-race":                  "DUR-001",
		"html-for-unknown-method":       "RPC-008",
		"batch-fails-as-a-whole":        "RES-018",
		"always-success":                "RES-009",
		"identifier-lowercased":         "RES-004",
		"identifier-as-string":          "RES-017",
		"json-parse-integers":           "DAT-004",
		"failures-filtered-out":         "RES-002",
		"body-limit-100kb":              "DAT-012",
		"schema-cached":                 "STA-001",
		"token-only-in-test-connection": "AUTH-002",
		"upsert-pushes":                 "SEM-008",
		"local-time":                    "DAT-008",
		"plan-in-a-global":              "PAR-005",
		"error-null":                    "RPC-004",
		"id-as-number":                  "RPC-003",
		"answered-before-the-work":      "HTTP-003",
		"gzip-label-only":               "HTTP-007",
		"update-with-spread-default":    "RES-014",
	},
}

// program finds an interpreter; a machine without it skips the test, a pipeline
// fails.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed, and CI=true asks for every test", name)
	}
	if err != nil {
		t.Skipf("%s is not installed: its endpoints are not judged", name)
	}
	return path
}

// start runs the endpoint with one mistake and gives its base URL. The process
// ends when its standard input is closed.
func (f foreign) start(t *testing.T, mistake string) string {
	t.Helper()
	cmd := exec.Command(program(t, f.program), filepath.Join("testdata", "endpoints", f.file), "--mistake", mistake)
	cmd.Env = append(os.Environ(), "ENDPOINT_TOKEN="+endpointToken)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		stdin.Close()
		require.NoError(t, cmd.Wait(), stderr.String())
		require.Empty(t, stderr.String(), "the endpoint wrote to standard error")
	})
	port, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, stderr.String())
	return "http://127.0.0.1:" + strings.TrimSpace(port)
}

// judge runs the whole suite with writes, read-back and the hook that changes
// the schema.
func (f foreign) judge(t *testing.T, mistake string) *conformance.Report {
	t.Helper()
	base := f.start(t, mistake)
	r, err := conformance.Run(context.Background(), conformance.Target{URL: base + "/rpc", Token: endpointToken}, conformance.Options{
		Write: true, Objects: f.objects, MaxRecords: 20_000, Seed: 7,
		Readback: conformance.HookSpec{URL: base + "/readback"},
		Hooks:    conformance.Hooks{AlterSchema: conformance.HookSpec{URL: base + "/hooks/alter_schema"}},
		// A mistake may keep a call from ever being answered.
		PlanningTimeout: 2 * time.Second, BatchTimeout: 5 * time.Second,
	})
	require.NoError(t, err)
	require.NotContains(t, statuses(r), conformance.HarnessError, "the judge itself failed:\n%s", explain(r, tripped(r)))
	return r
}

// statuses lists the status of every check.
func statuses(r *conformance.Report) map[conformance.Status]int { return r.Counts }

// runs judges the clean endpoint and each mistake of it.
func (f foreign) runs(t *testing.T) {
	out, err := exec.Command(program(t, f.program), filepath.Join("testdata", "endpoints", f.file), "--list").Output()
	require.NoError(t, err)
	names := strings.Fields(string(out))
	require.GreaterOrEqual(t, len(names), 8)
	require.Len(t, f.mistakes, len(names), "every mistake of %s has its check", f.file)
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		r := f.judge(t, "none")
		require.Empty(t, tripped(r), explain(r, tripped(r)))
		require.Equal(t, 0, r.ExitStatus, r.Summary)
		require.Empty(t, r.Residue.Refused)
		require.Empty(t, r.Residue.Unknown)
	})
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := f.judge(t, name)
			got := tripped(r)
			t.Logf("%s: %s", name, strings.Join(got, " "))
			require.True(t, slices.Contains(got, f.mistakes[name]), "%s is the check for it, tripped were %v\n%s", f.mistakes[name], got, explain(r, append(got, f.mistakes[name])))
		})
	}
}

func TestNodeEndpoint(t *testing.T) { nodeEndpoint.runs(t) }
