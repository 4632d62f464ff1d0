package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
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

	"github.com/destkit/destkit/destsim"
)

// github stands for GitHub: the releases of destkit, and comments of one pull
// request.
type github struct {
	*httptest.Server
	roots string // PEM file with its certificate

	mu       sync.Mutex
	files    map[string][]byte // of the release v1.2.3
	comments []map[string]any
	calls    []string
	refuse   int // status of every call to the API, 0 for the right one
}

func newGitHub(t *testing.T) *github {
	t.Helper()
	g := &github{files: map[string][]byte{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /releases/latest", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/releases/tag/v1.2.3", http.StatusFound)
	})
	mux.HandleFunc("GET /releases/download/v1.2.3/{file}", g.file)
	mux.HandleFunc("GET /releases/latest/download/{file}", g.file)
	mux.HandleFunc("GET /api/repos/acme/crm/issues/17/comments", g.list)
	mux.HandleFunc("POST /api/repos/acme/crm/issues/17/comments", g.write)
	mux.HandleFunc("PATCH /api/repos/acme/crm/issues/comments/{id}", g.write)
	g.Server = httptest.NewTLSServer(mux)
	t.Cleanup(g.Close)
	g.roots = filepath.Join(t.TempDir(), "roots.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw})
	require.NoError(t, os.WriteFile(g.roots, block, 0o600))
	return g
}

// file serves a file of the release.
func (g *github) file(w http.ResponseWriter, r *http.Request) {
	b, ok := g.files[r.PathValue("file")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(b)
}

// allowed notes a call and tells whether it goes on.
func (g *github) allowed(w http.ResponseWriter, r *http.Request) bool {
	g.calls = append(g.calls, r.Method)
	status := g.refuse
	if status == 0 && r.Header.Get("Authorization") != "Bearer ghs_of_the_job" {
		status = http.StatusUnauthorized
	}
	if status != 0 {
		http.Error(w, `{"message":"no"}`, status)
	}
	return status == 0
}

func (g *github) list(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.allowed(w, r) {
		return
	}
	var page int
	_, _ = fmt.Sscan(r.URL.Query().Get("page"), &page)
	from := min(100*(page-1), len(g.comments))
	list := g.comments[from:min(from+100, len(g.comments))]
	if list == nil {
		list = []map[string]any{}
	}
	_ = json.NewEncoder(w).Encode(list)
}

func (g *github) write(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.allowed(w, r) {
		return
	}
	var in struct {
		Body string `json:"body"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Body == "" {
		http.Error(w, `{"message":"bad"}`, http.StatusUnprocessableEntity)
		return
	}
	for _, x := range g.comments {
		if fmt.Sprint(x["id"]) == r.PathValue("id") {
			x["body"] = in.Body
			_ = json.NewEncoder(w).Encode(x)
			return
		}
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(g.comment("github-actions[bot]", in.Body))
}

// comment adds one; the caller holds the lock or is alone.
func (g *github) comment(author, body string) map[string]any {
	x := map[string]any{"id": 4000 + len(g.comments), "user": map[string]any{"login": author}, "body": body}
	g.comments = append(g.comments, x)
	return x
}

// platform is that of this machine, as release names it.
var platform = runtime.GOOS + "/" + runtime.GOARCH

// released are the files of a release for this machine, packed as `make release`
// packs them. Its program hands everything on to the real one and notes the
// arguments.
var released = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "released")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "program")
	const script = "#!/bin/sh\nprintf '%s\\n' \"$@\" >>\"$ARGUMENTS\"\nexec \"${REAL:-destkit}\" \"$@\"\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "run", filepath.Join(".ci", "release.go"), "-output", dir, "-platform", platform, "-binary", program)
	cmd.Dir = repository
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pack release: %w: %s", err, out)
	}
	files := map[string][]byte{}
	names, err := filepath.Glob(filepath.Join(dir, "*[Sz]"))
	for _, name := range names {
		if files[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			break
		}
	}
	return files, err
})

// newJob is a use of the action against the released program.
func newJob(t *testing.T, g *github, with map[string]string) *job {
	t.Helper()
	files, err := released()
	require.NoError(t, err)
	for name, content := range files {
		g.files[name] = content
	}
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

func TestActionPassesTheStatusOn(t *testing.T) {
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
		{"no baseline to compare with", map[string]string{"url": broken, "fail-on": "regression"}, 1, "FAIL  RPC-002", ""},
		{"a profile that is none", map[string]string{"url": clean, "profile": "v9"}, 2, "v9", ""},
		{"no URL", map[string]string{"url": ""}, 2, "::error title=destkit::url is empty", ""},
		{"no suite", map[string]string{"url": clean, "suite": "page"}, 2, "suite must be destination or service", ""},
		{"no boolean", map[string]string{"url": clean, "write": "yes"}, 2, "write must be true or false", ""},
		{"a comment that is no boolean", map[string]string{"url": clean, "comment": "yes"}, 2, "comment must be true or false", ""},
		{"no way to fail", map[string]string{"url": clean, "fail-on": "never"}, 2, "fail-on must be", ""},
		{"no format", map[string]string{"url": clean, "reports": "junit pdf"}, 2, "reports must be words of", ""},
		{"a token and not its name", map[string]string{"url": clean, "token-env": "a[$(touch hurt)]"}, 2, "token-env must be the name", ""},
		{"a variable that is not set", map[string]string{"url": clean, "suite": "service", "workspace-api-key-env": "NO_KEY"}, 2, "NO_KEY is not set", ""},
		{"nobody there", map[string]string{"url": "http://127.0.0.1:1/"}, 3, "::error title=destkit%3A unreachable", ""},
		{"nobody there, whatever fails", map[string]string{"url": "http://127.0.0.1:1/", "fail-on": "untested"}, 3, "unreachable", ""},
		{"an expired waiver", map[string]string{"url": clean, "waivers": "expired.yaml"}, 4, "::error title=destkit%3A waiver", ""},
		{"an undecided MUST", map[string]string{"url": clean, "require-complete": "true", "args": "--select=RES-002"}, 6, "conformant in part", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, g, tt.with)
			require.NoError(t, os.WriteFile(filepath.Join(j.dir, "expired.yaml"), []byte(expired), 0o600))
			if _, given := tt.with["args"]; !given {
				tt.with["args"] = "--select=RPC-00*"
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
// of it may run. What is free text arrives as it is, the rest is refused.
func TestActionIsNoShell(t *testing.T) {
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

// TestActionSuites holds the command lines of both suites against the program:
// each flag is one that the command has.
func TestActionSuites(t *testing.T) {
	t.Parallel()
	g := newGitHub(t)
	for suite, want := range map[string][]string{
		"destination": {"conform"},
		"service":     {"conform", "service"},
	} {
		t.Run(suite, func(t *testing.T) {
			j := newJob(t, g, map[string]string{
				"suite": suite, "url": "http://127.0.0.1:8080/api/v1", "profile": "strict", "waivers": "w.yaml", "require-clean": "true",
				"personal-access-token-env": "PAT", "workspace-api-key-env": "KEY",
			})
			// This one notes what it was called with, and ends like a run with a finding.
			note := filepath.Join(t.TempDir(), "note")
			require.NoError(t, os.WriteFile(note, []byte("#!/bin/sh\n[ \"$1\" != version ] || exit 0\n"+
				"env | grep ^DESTKIT_ >environment\nexit 1\n"), 0o755))
			j.env["REAL"], j.env["PAT"], j.env["KEY"] = note, "pat_of_the_test", "secret-token:of_the_test"
			j.run(t)
			require.Equal(t, 1, j.status)
			lines := strings.Split(strings.TrimSpace(readOrEmpty(j.env["ARGUMENTS"])), "\n")
			require.Equal(t, "version", lines[0])
			lines = lines[1:]
			require.Equal(t, want, lines[:len(want)])
			for _, line := range lines {
				require.NotContains(t, line, "of_the_test")
			}
			environment := readOrEmpty(filepath.Join(j.dir, "environment"))
			if suite == "service" {
				require.Equal(t, []string{"--", j.with["url"]}, lines[len(lines)-2:])
				require.Contains(t, environment, "DESTKIT_PERSONAL_ACCESS_TOKEN=pat_of_the_test\n")
				require.Contains(t, environment, "DESTKIT_WORKSPACE_API_KEY=secret-token:of_the_test\n")
			} else {
				require.Contains(t, environment, "DESTKIT_URL="+j.with["url"]+"\n")
			}
			requireCommand(t, lines)
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

func TestActionCompares(t *testing.T) {
	t.Parallel()
	g := newGitHub(t)
	clean, broken := startSimulator(t), startSimulator(t, "RPC-002")
	baseline := newJob(t, g, map[string]string{"url": clean, "args": "--select=RPC-00*"})
	baseline.run(t)
	known := newJob(t, g, map[string]string{"url": broken, "args": "--select=RPC-00*"})
	known.run(t)
	event := filepath.Join(t.TempDir(), "event.json")
	require.NoError(t, os.WriteFile(event, []byte(`{"pull_request":{"number":17}}`), 0o600))

	compare := func(t *testing.T, url, with string, more map[string]string) *job {
		t.Helper()
		j := newJob(t, g, map[string]string{"url": url, "args": "--select=RPC-00*", "comment": "true", "fail-on": "regression", "baseline": with})
		j.env["GITHUB_EVENT_NAME"], j.env["GITHUB_EVENT_PATH"] = "pull_request", event
		for name, value := range more {
			j.env[name] = value
		}
		j.run(t)
		return j
	}
	good := filepath.Join(baseline.dir, baseline.outputs["json"])
	bad := filepath.Join(known.dir, known.outputs["json"])
	const marker = "<!-- destkit diff: judge -->\n"
	// Others may write the marker; and there are more comments than fit on a page.
	g.comment("mallory", marker+"mine")
	for range 120 {
		g.comment("ada", "a word")
	}

	t.Run("a regression", func(t *testing.T) {
		j := compare(t, broken, good, nil)
		require.Equal(t, 1, j.status)
		require.Equal(t, "true", j.outputs["regressed"])
		require.Contains(t, j.summary, "#### Got worse (1)")
		require.FileExists(t, filepath.Join(j.dir, j.outputs["diff"]))
		require.Len(t, g.comments, 122)
		require.Contains(t, g.comments[121]["body"], marker+"### destkit: non-conformant, was conformant in part")
		require.NotContains(t, j.log+readOrEmpty(j.env["ARGUMENTS"]), "ghs_of_the_job")
	})
	t.Run("known findings pass, and the comment is the same one", func(t *testing.T) {
		j := compare(t, broken, bad, nil)
		require.Equal(t, 0, j.status)
		require.Equal(t, "1", j.outputs["exit-status"])
		require.Equal(t, "false", j.outputs["regressed"])
		require.Len(t, g.comments, 122)
		require.Contains(t, g.comments[121]["body"], "non-conformant, as before")
		require.Equal(t, marker+"mine", g.comments[0]["body"])
	})
	t.Run("no comment outside of pull requests", func(t *testing.T) {
		g.calls = nil
		compare(t, broken, good, map[string]string{"GITHUB_EVENT_NAME": "schedule"})
		require.Empty(t, g.calls)
	})
	t.Run("a comment that is refused changes nothing", func(t *testing.T) {
		g.refuse = http.StatusForbidden
		defer func() { g.refuse = 0 }()
		j := compare(t, broken, bad, nil)
		require.Equal(t, 0, j.status)
		require.Contains(t, j.log, `::warning title=destkit::the comment was not written: GitHub answered with status 403; does the job have the permission "pull-requests: write"?`)
	})
	t.Run("a baseline that is none", func(t *testing.T) {
		j := compare(t, broken, filepath.Join(baseline.dir, baseline.outputs["junit"]), nil)
		require.Equal(t, 1, j.status, "without a comparison every finding counts")
		require.Contains(t, j.log, "::warning title=destkit::the baseline cannot be compared")
	})
	t.Run("an event without a pull request", func(t *testing.T) {
		j := compare(t, clean, good, map[string]string{"GITHUB_EVENT_PATH": os.DevNull})
		require.Equal(t, 0, j.status)
		require.Contains(t, j.log, "the event names no pull request")
	})
}

func TestActionKeepsSecrets(t *testing.T) {
	t.Parallel()
	g := newGitHub(t)
	var seen string
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.URL.RawQuery + r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"echo":"`+seen+`"}`)
	}))
	t.Cleanup(endpoint.Close)
	// Whatever the action calls notes its arguments.
	shims := t.TempDir()
	curl, err := exec.LookPath("curl")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(shims, "curl"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" >>\"$ARGUMENTS\"\nexec "+curl+" \"$@\"\n"), 0o755))
	j := newJob(t, g, map[string]string{"url": endpoint.URL + "/?key=hush-hush-9925", "token-env": "CRM_TOKEN", "args": "--url-secret=query:key\n--select=RPC-0*",
		"reports": "text junit html markdown sarif har badge", "comment": "true", "baseline": "baseline.json"})
	event := filepath.Join(j.dir, "event.json")
	require.NoError(t, os.WriteFile(event, []byte(`{"pull_request":{"number":17}}`), 0o600))
	files, err := os.ReadFile(filepath.Join(repository, "conformance", "report", "testdata", "sample.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(j.dir, "baseline.json"), files, 0o600))
	j.env["CRM_TOKEN"], j.env["PATH"] = "open-sesame-7431", shims+string(os.PathListSeparator)+os.Getenv("PATH")
	j.env["GITHUB_EVENT_NAME"], j.env["GITHUB_EVENT_PATH"] = "pull_request", event
	j.run(t)
	require.Equal(t, 1, j.status)
	require.Contains(t, seen, "hush-hush-9925")
	require.Contains(t, seen, "open-sesame-7431")
	require.Len(t, g.comments, 1)
	left := j.log + j.summary + fmt.Sprint(g.comments, j.outputs) + readOrEmpty(j.env["ARGUMENTS"])
	reports, err := filepath.Glob(filepath.Join(j.dir, "destkit-reports", "*"))
	require.NoError(t, err)
	require.Greater(t, len(reports), 8)
	for _, file := range reports {
		left += readOrEmpty(file)
	}
	require.Contains(t, left, "issues/17/comments", "the calls of curl were seen")
	for _, secret := range []string{"hush-hush-9925", "open-sesame-7431", "ghs_of_the_job"} {
		require.NotContains(t, left, secret)
	}
}
