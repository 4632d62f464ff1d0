package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/destsim"
)

// TestPrintedCommandsWorkInTheShellOfTheRun pastes what a run has shown into a shell with
// the environment of the run, and looks at what comes in.
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
		curl, access string // what the commands say
		unset        string // the variable that the shell asks for
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
		go func() { writer.CloseWithError(report.Write(format, writer, r)) }()
		text, err := io.ReadAll(reader)
		require.NoError(t, err)
		if said := string(text); strings.Contains(said, "curl -sS") {
			found := strings.Contains(strings.Join(strings.Fields(said), " "), words) || strings.Contains(said, strings.Trim(string(quoted), `"`)) || strings.Contains(said, escaped)
			require.True(t, found, "%s does not say %s", format, words)
		}
	}
}
