package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server"
	"github.com/destkit/destkit/server/testdata/violation"
)

// archive is that of a release for this machine.
var archive = "destkit_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"

// released are the files of a release for this machine: an archive with the members that
// the action looks for, and its checksum. Its program hands everything on to the real one
// and notes the arguments. `make release-try` gives the action a real release.
var released = sync.OnceValues(func() (map[string][]byte, error) {
	const script = "#!/bin/sh\nprintf '%s\\n' \"$@\" >>\"$ARGUMENTS\"\nexec \"${REAL:-destkit}\" \"$@\"\n"
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	members := tar.NewWriter(zipped)
	for _, m := range []struct {
		name, text string
		mode       int64
	}{{"LICENSE", "a licence\n", 0o644}, {"destkit", script, 0o755}} {
		if err := members.WriteHeader(&tar.Header{Name: m.name, Mode: m.mode, Size: int64(len(m.text)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := members.Write([]byte(m.text)); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(members.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	sums := fmt.Sprintf("%x  other.tar.gz\n%x  %s\n", sha256.Sum256(nil), sha256.Sum256(packed.Bytes()), archive)
	return map[string][]byte{archive: packed.Bytes(), "SHA256SUMS": []byte(sums)}, nil
})

// newJob is a use of the action against the released program.
func newJob(t *testing.T, g *github, with map[string]string) *job {
	t.Helper()
	real, err := exec.LookPath("destkit")
	require.NoError(t, err)
	dir := t.TempDir()
	return &job{dir: dir, with: with, env: map[string]string{
		"CURL_CA_BUNDLE": g.roots, "DESTKIT_RELEASES_URL": g.URL + "/releases", "GITHUB_API_URL": g.URL + "/api",
		"ACTION_REF_OF_TEST": "v1.2.3", "REAL": real, "ARGUMENTS": filepath.Join(dir, "arguments"),
	}}
}

// startSimulator serves a destination that breaks the rules named.
func startSimulator(t *testing.T, violate ...string) string {
	t.Helper()
	sim, err := destsim.New(destsim.Config{Violate: violate})
	require.NoError(t, err)
	server := httptest.NewServer(sim)
	t.Cleanup(func() { server.Close(); sim.Close() })
	return server.URL + "/"
}

func TestActionJudges(t *testing.T) {
	t.Parallel()
	g := newGitHub(t)
	j := newJob(t, g, map[string]string{
		"url": startSimulator(t), "write": "true", "objects": "contact\n  order  \n", "profile": "spec", "require-clean": "true",
		"reports": "junit, sarif html\nbadge", "args": "--select=RPC-*\n--select=RES-002\n\n--seed=7",
		"waivers": "waivers.yaml", "config": "destkit.yaml", "token-env": "CRM_TOKEN",
	})
	j.env["CRM_TOKEN"] = "open-sesame-7431"
	require.NoError(t, os.WriteFile(filepath.Join(j.dir, "waivers.yaml"), []byte("waivers: []\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(j.dir, "destkit.yaml"), []byte("timeout: 1m\n"), 0o600))
	j.run(t)
	require.Equal(t, 0, j.status)
	require.Equal(t, "0", j.outputs["exit-status"])
	require.Equal(t, "conformant in part", j.outputs["verdict"])
	require.Equal(t, "results", j.outputs["tier"])
	require.Contains(t, j.outputs["summary"], "0 records left behind")
	require.Empty(t, j.outputs["regressed"])
	for _, file := range []string{"report.json", "junit.xml", "destkit.sarif", "report.html", "badge.json", "report.md"} {
		require.FileExists(t, filepath.Join(j.dir, "destkit-reports", file))
	}
	for _, name := range []string{"json", "junit", "sarif", "html"} {
		require.FileExists(t, filepath.Join(j.dir, j.outputs[name]))
	}
	require.Contains(t, j.summary, "## destkit: conformant in part")
	require.Contains(t, j.log, "::notice title=destkit%3A conformant in part::")
	require.NotContains(t, j.log, "open-sesame-7431")
	require.True(t, strings.HasPrefix(j.outputs["PATH"], filepath.Dir(j.outputs["program"])), "later steps find destkit")
	arguments := readOrEmpty(j.env["ARGUMENTS"])
	for _, want := range []string{"--write", "--object=contact", "--object=order", "--profile=spec", "--require-clean",
		"--select=RPC-*", "--seed=7", "--waivers=waivers.yaml", "--config=destkit.yaml", "--token-env=CRM_TOKEN"} {
		require.Contains(t, arguments, want+"\n")
	}
	require.NotContains(t, arguments, "open-sesame-7431")
	require.NotContains(t, arguments, j.with["url"], "the URL may hold a secret")
	report, err := readReport(filepath.Join(j.dir, j.outputs["json"]))
	require.NoError(t, err)
	require.Equal(t, []string{"contact", "order"}, report.Settings.Objects)
}

// TestActionReadsSettings: destkit.yaml of the workspace needs no input. Without what it
// permits a broken result could not be seen, and the job would pass.
func TestActionReadsSettings(t *testing.T) {
	matrixtest.Long(t)
	t.Parallel()
	g := newGitHub(t)
	j := newJob(t, g, map[string]string{"url": startSimulator(t, "RES-002"), "reports": "junit"})
	require.NoError(t, os.WriteFile(filepath.Join(j.dir, "destkit.yaml"), []byte("write: true\nobject: [contact]\nselect: [RES-002]\n"), 0o600))
	j.run(t)
	require.Equal(t, 1, j.status)
	require.Contains(t, j.log, "settings of destkit.yaml: write, object, select (--config none ignores the file)")
	require.Contains(t, j.log, "::error title=FAIL RES-002")
	j.with["config"], j.status = "none", 0
	j.run(t)
	require.Equal(t, 0, j.status, "nothing is written")
}

func TestActionPassesTheStatusOn(t *testing.T) {
	matrixtest.Long(t)
	t.Parallel()
	g := newGitHub(t)
	broken, clean := startSimulator(t, "RPC-002"), startSimulator(t)
	expired := "waivers:\n  - {check: RPC-001, reason: known, until: 2020-01-01}\n"
	for _, tt := range []struct {
		name string
		with map[string]string
		want int // of the step
		says string
		exit string // of destkit, when it is another
	}{
		{"a gate", map[string]string{"url": broken}, 1, "::error title=FAIL RPC-002", ""},
		{"a gate that may fail", map[string]string{"url": broken, "fail-on": "untested"}, 0, "FAIL  RPC-002", "1"},
		{"a baseline that is not there", map[string]string{"url": broken, "fail-on": "regression", "baseline": "none.json"}, 1, "::warning title=destkit::the file of the baseline is not there", ""},
		{"a regression of nothing", map[string]string{"url": broken, "fail-on": "regression"}, 2, "regression needs a baseline", ""},
		{"a comment on nothing", map[string]string{"url": broken, "comment": "true"}, 2, "comment needs a baseline", ""},
		{"a profile that is none", map[string]string{"url": clean, "profile": "v9"}, 2, "v9", ""},
		{"no URL", map[string]string{"url": ""}, 2, "::error title=destkit::url is empty", ""},
		{"no suite", map[string]string{"url": clean, "suite": "page"}, 2, "suite must be destination or service", ""},
		{"no boolean", map[string]string{"url": clean, "write": "yes"}, 2, "write must be true or false", ""},
		{"a comment that is no boolean", map[string]string{"url": clean, "comment": "yes"}, 2, "comment must be true or false", ""},
		{"no way to fail", map[string]string{"url": clean, "fail-on": "never"}, 2, "fail-on must be", ""},
		{"no format", map[string]string{"url": clean, "reports": "junit pdf"}, 2, "reports must be words of", ""},
		{"a token and not its name", map[string]string{"url": clean, "token-env": "a[$(touch hurt)]"}, 2, "token-env must be the name", ""},
		{"a variable that is not set", map[string]string{"url": clean, "suite": "service", "workspace-api-key-env": "NO_KEY"}, 2, "NO_KEY is not set", ""},
		{"the token of a destination for a service", map[string]string{"url": clean, "suite": "service", "token-env": "REAL"}, 2, "token-env belongs to the suite destination", ""},
		{"nobody there", map[string]string{"url": "http://127.0.0.1:1/"}, 3, "::error title=destkit%3A unreachable", ""},
		{"nobody there, whatever fails", map[string]string{"url": "http://127.0.0.1:1/", "fail-on": "untested"}, 3, "unreachable", ""},
		{"an expired waiver", map[string]string{"url": clean, "waivers": "expired.yaml"}, 4, "::error file=expired.yaml,line=2,title=destkit%3A waiver", ""},
		{"an undecided MUST", map[string]string{"url": clean, "require-complete": "true", "args": "--select=RES-002"}, 6, "conformant in part", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, g, tt.with)
			require.NoError(t, os.WriteFile(filepath.Join(j.dir, "expired.yaml"), []byte(expired), 0o600))
			if _, given := tt.with["args"]; !given {
				tt.with["args"] = "--select=RPC-002"
			}
			j.run(t)
			require.Equal(t, tt.want, j.status)
			if tt.exit == "" {
				tt.exit = fmt.Sprint(tt.want)
			}
			require.Equal(t, tt.exit, j.outputs["exit-status"])
			require.Contains(t, j.log, tt.says)
			require.NoFileExists(t, filepath.Join(j.dir, "hurt"))
		})
	}
}

// TestActionIsNoShell puts text that a shell would run into every input: nothing
// of it may run. Free text arrives unchanged, the rest is refused.
func TestActionIsNoShell(t *testing.T) {
	matrixtest.Long(t)
	t.Parallel()
	g := newGitHub(t)
	const bad = "$(touch hurt)`touch hurt`';touch hurt;\"&& touch hurt #"
	program := filepath.Join(t.TempDir(), "program") // writes its report, and is always content
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nfor a; do case $a in --report=json=*) echo '{}' >\"${a#--report=json=}\" ;; esac; done\n"), 0o755))
	run := func(t *testing.T, inputs ...string) *job {
		t.Helper()
		with := map[string]string{"url": "http://127.0.0.1:1/", "baseline": "known.json", "comment": "true"}
		for _, name := range inputs {
			with[name] = bad
		}
		if strings.HasSuffix(inputs[0], "token-env") || strings.HasSuffix(inputs[0], "key-env") {
			with["suite"] = "service"
		}
		j := newJob(t, g, with)
		known, event := filepath.Join(j.dir, "known.json"), filepath.Join(j.dir, "event.json")
		require.NoError(t, os.WriteFile(known, []byte("{}"), 0o600))
		require.NoError(t, os.WriteFile(event, []byte(`{"pull_request":{"number":17}}`), 0o600))
		j.env["REAL"], j.env["GITHUB_EVENT_NAME"], j.env["GITHUB_EVENT_PATH"] = program, "pull_request", event
		j.run(t)
		require.NoFileExists(t, filepath.Join(j.dir, "hurt"))
		return j
	}
	free := []string{"url", "profile", "objects", "config", "waivers", "args", "report-dir", "comment-name", "comment-author"}
	t.Run("free text", func(t *testing.T) {
		j := run(t, free...)
		require.Equal(t, 0, j.status)
		for _, flag := range []string{"--profile=", "--object=", "--config=", "--waivers=", "", "--marker="} {
			require.Contains(t, readOrEmpty(j.env["ARGUMENTS"]), "\n"+flag+bad+"\n")
		}
		require.FileExists(t, filepath.Join(j.dir, bad, "report.json"))
	})
	t.Run("baseline", func(t *testing.T) {
		require.Contains(t, run(t, "baseline").log, "the file of the baseline is not there")
	})
	t.Run("github-token", func(t *testing.T) {
		require.Contains(t, run(t, "github-token").log, "github-token is empty or no token")
	})
	for name := range readAction(t).Inputs {
		if slices.Contains(free, name) || name == "baseline" || name == "github-token" {
			continue
		}
		t.Run(name, func(t *testing.T) { require.Equal(t, 2, run(t, name).status) })
	}
}

// TestActionJudgesAService runs the suite of services for real.
func TestActionJudgesAService(t *testing.T) {
	t.Parallel()
	g := newGitHub(t)
	for want, broken := range [][]string{nil, {"TOK-008.3"}} {
		t.Run(fmt.Sprint("exit ", want), func(t *testing.T) {
			t.Parallel()
			var config server.Config
			require.NoError(t, violation.Break(&config, broken...))
			service, err := server.New(t.Context(), config)
			require.NoError(t, err)
			api := httptest.NewServer(service)
			t.Cleanup(func() { api.Close(); service.Close() })
			tokens, err := service.NewOrganization(t.Context(), "action")
			require.NoError(t, err)
			j := newJob(t, g, map[string]string{"suite": "service", "url": api.URL + "/api/v1", "args": "--select=TOK-008", "profile": "strict", "require-clean": "true",
				"workspace-api-key-env": "KEY", "personal-access-token-env": "PAT"})
			j.env["KEY"], j.env["PAT"] = tokens.WorkspaceAPIKey, tokens.PersonalAccessToken
			j.run(t)
			require.Equal(t, want, j.status)
			require.Contains(t, j.log, "TOK-008")
			report, err := readReport(filepath.Join(j.dir, j.outputs["json"]))
			require.NoError(t, err)
			require.Equal(t, conformance.SuiteService, report.Suite)
			require.Contains(t, readOrEmpty(filepath.Join(j.dir, j.outputs["junit"])), `package="destkit.service"`)
			for _, token := range []string{tokens.WorkspaceAPIKey, tokens.PersonalAccessToken} {
				require.NotContains(t, j.log+j.summary+readOrEmpty(j.env["ARGUMENTS"]), token)
			}
		})
	}
}

// requireCommand demands that the program has this command with these flags.
func requireCommand(t *testing.T, words []string) *cobra.Command {
	t.Helper()
	cmd, rest, err := newRoot().Find(words)
	require.NoError(t, err)
	require.NotEqual(t, "destkit", cmd.Name(), "%q is no command", words)
	require.NoError(t, cmd.ParseFlags(rest), "%q", words)
	return cmd
}
