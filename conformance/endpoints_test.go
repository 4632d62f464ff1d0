package conformance_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/matrixtest"
)

const endpointToken = "t0ken-Of-The-Endpoint"

// foreign is an endpoint in another language and the mistakes it can make.
type foreign struct {
	program, file string
	objects       []string
	mistakes      []mistake
}

// mistake is one mistake with the check that is meant for it.
type mistake struct {
	name, check string
	// objects are judged instead of the first one.
	objects []string
	// serial runs one check at a time: what goes wrong between calls in parallel
	// would make the other checks unreliable first.
	serial bool
	whole  bool // judged with the whole suite
}

var nodeEndpoint = foreign{
	program: "node", file: "node.mjs", objects: []string{"customer", "invoice"},
	mistakes: []mistake{
		{name: "write-not-awaited", check: "SEM-006"},
		{name: "promise-race", check: "DUR-001"},
		{name: "html-for-unknown-method", check: "RPC-008"},
		{name: "batch-fails-as-a-whole", check: "RES-018"},
		{name: "always-success", check: "RES-009"},
		{name: "identifier-lowercased", check: "RES-004"},
		{name: "identifier-as-string", check: "RES-017", objects: []string{"invoice"}},
		{name: "json-parse-integers", check: "DAT-004"},
		{name: "failures-filtered-out", check: "RES-002"},
		{name: "body-limit-100kb", check: "DAT-012"},
		{name: "schema-cached", check: "STA-001"},
		{name: "token-only-in-test-connection", check: "AUTH-002"},
		{name: "upsert-pushes", check: "SEM-008"},
		{name: "local-time", check: "DAT-008"},
		{name: "plan-in-a-global", check: "PAR-005", serial: true},
		{name: "error-null", check: "RPC-004"},
		{name: "id-as-number", check: "RPC-003"},
		{name: "answered-before-the-work", check: "HTTP-003"},
		{name: "gzip-label-only", check: "HTTP-007"},
		{name: "update-with-spread-default", check: "RES-014"},
	},
}

var pythonEndpoint = foreign{
	program: "python3", file: "python.py", objects: []string{"person", "device"},
	mistakes: []mistake{
		{name: "nan-in-speed", check: "RPC-001"},
		{name: "traceback-in-error", check: "ERR-003"},
		{name: "html-error-page", check: "RPC-008"},
		{name: "local-datetime", check: "DAT-008"},
		{name: "truthiness", check: "DAT-003"},
		{name: "float-for-decimals", check: "DAT-005"},
		{name: "replaces-the-row", check: "RES-014"},
		{name: "update-creates", check: "SEM-005"},
		{name: "insert-overwrites", check: "SEM-002"},
		{name: "one-table-for-all", check: "SEM-016"},
		{name: "deletes-by-prefix", check: "SEM-010"},
		{name: "seen-before-cache", check: "STA-004"},
		{name: "success-as-text", check: "RES-005"},
		{name: "values-by-position", check: "RES-016", objects: []string{"device"}},
		{name: "first-identifier-always", check: "SEM-013", objects: []string{"device"}},
		{name: "empty-set-clause", check: "RES-013", objects: []string{"device"}},
		{name: "upsert-appends", check: "SEM-008"},
		{name: "commit-in-a-thread", check: "SEM-006"},
		{name: "lru-cache", check: "STA-001"},
		{name: "token-startswith", check: "AUTH-003"},
		{name: "latin-1", check: "RPC-001"},
		{name: "strips-text", check: "DAT-011"},
		{name: "int-from-float", check: "DAT-004"},
		{name: "no-identifier-check", check: "RES-019"},
		{name: "drops-failures", check: "RES-002"},
	},
}

// selected is the area of the check that is meant; the whole suite is judged
// without a mistake, and of the mistakes with a few in the long tier.
func (m mistake) selected() []string {
	if m.check == "" || m.whole && matrixtest.Whole() {
		return nil
	}
	area, _, _ := strings.Cut(m.check, "-")
	return []string{area + "-*"}
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

// judge runs the suite with writes, read-back and the hook that changes
// the schema.
func (f foreign) judge(t *testing.T, m mistake) *conformance.Report {
	t.Helper()
	base := f.start(t, m.name)
	r, err := conformance.Run(context.Background(), conformance.Target{URL: base + "/rpc", Token: endpointToken}, conformance.Options{
		Write: true, Objects: m.objects, MaxRecords: 20_000, Seed: 7, Serial: m.serial,
		Readback: conformance.HookSpec{URL: base + "/readback"},
		Hooks:    conformance.Hooks{AlterSchema: conformance.HookSpec{URL: base + "/hooks/alter_schema"}},
		Select:   m.selected(),
		// A mistake may keep a call from ever being answered.
		PlanningTimeout: 5 * time.Second, BatchTimeout: 10 * time.Second,
	})
	require.NoError(t, err)
	require.Zero(t, r.Counts[conformance.HarnessError], "the judge itself failed:\n%s", explain(r, tripped(r)))
	return r
}

// runs judges the clean endpoint, and each of its mistakes on the first object.
func (f foreign) runs(t *testing.T) {
	if testing.Short() {
		t.Skip("endpoints of other languages are not judged with -short")
	}
	out, err := exec.Command(program(t, f.program), filepath.Join("testdata", "endpoints", f.file), "--list").Output()
	require.NoError(t, err)
	var names []string
	for _, m := range f.mistakes {
		names = append(names, m.name)
	}
	require.ElementsMatch(t, strings.Fields(string(out)), names, "every mistake of %s has its check", f.file)
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		r := f.judge(t, mistake{name: "none", objects: f.objects})
		require.Empty(t, tripped(r), explain(r, tripped(r)))
		require.Equal(t, 0, r.ExitStatus, r.Summary)
		require.Empty(t, r.Residue.Refused)
	})
	for i, m := range f.mistakes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			m.whole = i%5 == 0
			if m.objects == nil {
				m.objects = f.objects[:1]
			}
			r := f.judge(t, m)
			got := tripped(r)
			t.Logf("%s %s: %v", f.program, m.name, got)
			require.Contains(t, got, m.check, explain(r, append(got, m.check)))
		})
	}
}

func TestNodeEndpointMatrix(t *testing.T)   { nodeEndpoint.runs(t) }
func TestPythonEndpointMatrix(t *testing.T) { pythonEndpoint.runs(t) }
