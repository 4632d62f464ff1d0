package main

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/destsim"
)

// inFile is a command in a report: of a page, in JSON and SARIF, or a line of Markdown.
var inFile = regexp.MustCompile(`(?m)(?:<code>|"replay": "|^)(destkit [a-z][^<"\n]*)`)

// hintsInFile lists the commands that a report offers, each once.
func hintsInFile(text string) []string {
	var all []string
	for _, m := range inFile.FindAllStringSubmatch(text, -1) {
		if command := html.UnescapeString(m[1]); !slices.Contains(all, command) {
			all = append(all, command)
		}
	}
	return all
}

// cmdHints is `hints LEAST [REPORT]`: every command that the last output, or the report,
// offers, at least so many, is run by a new shell in the folder of the script, with nothing of the
// environment but PATH and HOME. Status 0 or 1 (a finding) is what each must have.
func cmdHints(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: hints LEAST [REPORT]")
	}
	least, err := strconv.Atoi(args[0])
	ts.Check(err)
	var hints []string
	if len(args) == 2 {
		hints = hintsInFile(ts.ReadFile(args[1]))
	} else {
		hints = hintsIn(ts.ReadFile("stdout") + ts.ReadFile("stderr"))
	}
	for _, command := range hints {
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = ts.MkAbs(".")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir}
		out, err := cmd.CombinedOutput()
		ts.Logf("%.200s: %v", command, err)
		if status := cmd.ProcessState.ExitCode(); status != 0 && (status != 1 || strings.HasPrefix(command, "curl")) {
			ts.Fatalf("pasted %q: exit status %d\n%s", command, status, out)
		}
	}
	if len(hints) < least {
		ts.Fatalf("%d commands are offered, not %d", len(hints), least)
	}
}

func TestRerunWordsHoldNoSecret(t *testing.T) {
	t.Setenv("TOK", "t0ken-of-the-run")
	var words, access string
	j := &judgement{}
	cmd := conformCommand(j)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		target, _, err := j.resolve(cmd, args[0])
		shown := j.commands(cmd, target)
		words, access = shown.rerun, shown.access
		return err
	}
	cmd.SetArgs([]string{
		"https://example.com/d?key=s3cr3t", "--write", "--object", "a b", "--object", "c", "--token-env", "TOK", "--select", "RES-*", "--report", "json=r.json",
		"--header", "X-Key: s3cr3t", "--readback-url", "https://example.com/rb?key=s3cr3t", "--batch-timeout", "5s",
	})
	require.NoError(t, cmd.Execute())
	require.Equal(t, ` --token-env TOK --url "${DESTKIT_URL:?}" --header "X-Key: ${DESTKIT_HEADER_X_KEY:?}"`, access)
	require.Equal(t, `conform "${DESTKIT_URL:?}" --token-env TOK --batch-timeout 5s --write --object 'a b' --object c --readback-url "${DESTKIT_READBACK_URL:?}" --header "X-Key: ${DESTKIT_HEADER_X_KEY:?}"`, words)

	cmd.SetArgs([]string{"https://example.com/s3cr3t/d", "--url-secret", "path:0"})
	for _, name := range []string{"write", "object", "token-env", "header", "readback-url", "batch-timeout"} {
		cmd.Flags().Lookup(name).Changed = false
	}
	require.NoError(t, cmd.Execute())
	require.NotContains(t, words, "s3cr3t")
	require.Contains(t, words, `conform "${DESTKIT_URL:?}" `)
	require.Contains(t, words, " --url-secret path:0")
}

// TestPrintedCommandsWorkInTheShellOfTheRun pastes the commands of a run into a shell
// with the environment of the run, and checks the requests.
func TestPrintedCommandsWorkInTheShellOfTheRun(t *testing.T) {
	const token, key = "t0ken-of-the-run", "k3y-of-the-run"
	sim, err := destsim.New(destsim.Config{Violate: []string{"RPC-002"}})
	require.NoError(t, err)
	defer sim.Close()
	var mu sync.Mutex
	var seen []*http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r)
		mu.Unlock()
		sim.ServeHTTP(w, r)
	}))
	defer server.Close()
	plain, withKey := server.URL+"/d", server.URL+"/d?key="+key
	for name, tt := range map[string]struct {
		env, args    []string
		curl, access string // words of the commands
		unset        string // the variable that the shell requires
	}{
		"the token":               {[]string{"CRM_TOKEN=" + token}, []string{plain, "--token-env", "CRM_TOKEN"}, `"Authorization: Bearer $CRM_TOKEN"`, " --token-env CRM_TOKEN", ""},
		"the token's own name":    {[]string{"DESTKIT_TOKEN=" + token}, []string{plain}, `"Authorization: Bearer $DESTKIT_TOKEN"`, "", ""},
		"a URL of the shell":      {[]string{"DESTKIT_URL=" + withKey}, nil, `curl -sS "$DESTKIT_URL"`, "", ""},
		"a URL of another name":   {[]string{"CRM_URL=" + withKey}, []string{withKey}, `curl -sS "$CRM_URL"`, ` --url "$CRM_URL"`, ""},
		"a URL of no variable":    {nil, []string{withKey}, `curl -sS "${DESTKIT_URL:?}"`, ` --url "${DESTKIT_URL:?}"`, "DESTKIT_URL"},
		"a header of a variable":  {[]string{"KEY=" + key}, []string{plain, "--header", "X-Key: " + key}, `-H "X-Key: $KEY"`, ` --header "X-Key: $KEY"`, ""},
		"a header with a scheme":  {[]string{"KEY=" + key}, []string{plain, "--header", "Authorization: Basic " + key}, `-H "Authorization: Basic $KEY"`, ` --header "Authorization: Basic $KEY"`, ""},
		"a header of no variable": {nil, []string{plain, "--header", "X-Key: " + key}, `-H "X-Key: ${DESTKIT_HEADER_X_KEY:?}"`, ` --header "X-Key: ${DESTKIT_HEADER_X_KEY:?}"`, "DESTKIT_HEADER_X_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			env := append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C"}, tt.env...)
			run := func(command string) (string, error) {
				mu.Lock()
				seen = nil
				mu.Unlock()
				cmd := exec.Command("sh", "-c", command)
				cmd.Dir, cmd.Env = dir, env
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			args := []string{"destkit", "conform", "--select", "RPC-002", "--quiet", "--seed", "7", "--report", "json=r.json"}
			for _, arg := range tt.args {
				args = append(args, "'"+arg+"'")
			}
			shown, err := run(strings.Join(args, " "))
			require.Error(t, err, "the rule is broken")
			require.NotContains(t, shown, key)
			require.NotContains(t, shown, token)
			old, err := readReport(filepath.Join(dir, "r.json"))
			require.NoError(t, err)
			curl := findingOf(t, old, "RPC-002").Curl
			require.Contains(t, curl, tt.curl)
			require.Regexp(t, regexp.QuoteMeta("again:  destkit replay r.json RPC-002"+tt.access)+`\s+explain:`, shown)
			requireEveryFormatSays(t, old, tt.curl)

			for _, command := range []string{curl, "destkit replay r.json RPC-002" + tt.access} {
				out, err := run(command)
				if tt.unset != "" {
					require.Error(t, err, command)
					require.Contains(t, out, tt.unset+": parameter ")
					require.Empty(t, seen, command)
					continue
				}
				require.NotEmpty(t, seen, "%s\n%s", command, out)
				for _, r := range seen {
					switch {
					case strings.Contains(strings.Join(tt.env, " "), token):
						require.Equal(t, "Bearer "+token, r.Header.Get("Authorization"))
					case strings.Contains(strings.Join(tt.env, " "), "URL="):
						require.Equal(t, key, r.URL.Query().Get("key"))
					default:
						require.Contains(t, r.Header.Get("Authorization")+r.Header.Get("X-Key"), key)
					}
				}
			}
		})
	}
}

func findingOf(t *testing.T, r *conformance.Report, id string) conformance.Finding {
	t.Helper()
	for _, check := range r.Checks {
		if check.ID == id && len(check.Findings) > 0 {
			return check.Findings[0]
		}
	}
	require.Fail(t, "no finding of "+id)
	return conformance.Finding{}
}

// requireEveryFormatSays: each format that shows a command has the same one.
func requireEveryFormatSays(t *testing.T, r *conformance.Report, words string) {
	t.Helper()
	quoted, err := json.Marshal(words)
	require.NoError(t, err)
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&#34;").Replace(words)
	for _, format := range report.Formats() {
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(report.Options{}.Write(format, writer, r)) }()
		text, err := io.ReadAll(reader)
		require.NoError(t, err)
		if said := string(text); strings.Contains(said, "curl -sS") {
			found := strings.Contains(strings.Join(strings.Fields(said), " "), words) || strings.Contains(said, strings.Trim(string(quoted), `"`)) || strings.Contains(said, escaped)
			require.True(t, found, "%s does not say %s", format, words)
		}
	}
}
