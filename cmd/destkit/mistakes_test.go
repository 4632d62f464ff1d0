package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/server"
)

// mistake is one row of docs/evidence/mistakes.md.
type mistake struct {
	line   string // what is typed; {NAME} is an address of mistakeWorld
	status int
	says   string // a part of the line that is shown
}

// mistakeGroup is a table of the page. env are variables of all its rows.
type mistakeGroup struct {
	title string
	env   map[string]string
	rows  []mistake
}

// mistakeFiles are the files that the rows name, with their content.
var mistakeFiles = map[string]string{
	"key.yaml":         "token-env: TOKEN\nwirte: true\n",
	"value.yaml":       "write: true\ntimeout: soon\n",
	"list.yaml":        "- write: true\n",
	"tabs.yaml":        "write: true\n\tobject: contact\n",
	"twice.yaml":       "write: true\nwrite: false\n",
	"fixture.yaml":     "object: contact\nfixtures: none\n",
	"no-reason.yaml":   "waivers:\n  - check: RES-002\n",
	"no-check.yaml":    "waivers:\n  - reason: known\n",
	"waiver-id.yaml":   "waivers:\n  - check: RES-02\n    reason: known\n",
	"waiver-date.yaml": "waivers:\n  - check: RES-002\n    reason: known\n    expires: tomorrow\n",
	"hooks.yaml":       "cleanup:\n  comand: ./clean.sh\n",
	"sim.yaml":         "objects:\n  - name: contact\n    fileds: []\n",
	"seed.yaml":        "organisation: Example\n",
	"report.json":      "{\"hello\": 1}\n",
	"judged.json":      "{\"schema_version\": \"1\", \"suite\": \"destination\"}\n",
	"page.json":        "<html></html>\n",
	"journal.ndjson":   "not a journal\n",
	"text.pem":         "nothing\n",
	"program.go":       "package main\n",
}

var mistakeGroups = []mistakeGroup{
	{title: "The URL", rows: []mistake{
		{"conform 127.0.0.1:8080", 2, "did you mean http://127.0.0.1:8080?"},
		{"conform example.com/destination", 2, "did you mean https://example.com/…?"},
		{"conform htps://example.com", 2, "did you mean https://example.com?"},
		{"conform ftp://example.com", 2, "must start with https://"},
		{"conform http://", 2, "has no host"},
		{"conform http://127.0.0.1:port/", 2, "check the escapes, the port"},
		{"conform", 2, "missing the URL of the endpoint; give it, or set $DESTKIT_URL"},
		{"conform {SIM} {SIM}", 2, "too many arguments"},
		{"plan localhost:8080", 2, "did you mean http://localhost:8080?"},
		{"load localhost:8080 --write --object contact", 2, "did you mean http://localhost:8080?"},
		{"conform service 127.0.0.1:8080/api/v1", 2, "did you mean http://127.0.0.1:8080/…?"},
		{"sync watch 7 --once --url 127.0.0.1:8080", 2, "--url: the URL must begin with"},
		{"conform {SIM} --readback-url 127.0.0.1/rb", 2, "--readback-url: the URL must begin with"},
		{"conform {SIM} --replica localhost:8081", 2, "the URL of the replica must start"},
		{"init --existing example.com/destination", 2, "--existing: the URL must begin"},
	}},
	{title: "Who answers there", env: map[string]string{command.WorkspaceKeyVariable: "key"}, rows: []mistake{
		{"conform {CLOSED}", 3, "nothing listens at"},
		{"load {CLOSED} --write --object contact", 3, "nothing listens"},
		{"sync watch 7 --once --url {CLOSED} --patience 1ms", 3, "nothing listens"},
		{"conform http{TLSHOST}", 3, "TLS is spoken on this port"},
		{"conform https{SIMHOST}", 3, "plain http is spoken"},
		{"load http{TLSHOST} --write --object contact", 3, "TLS is spoken"},
		{"load https{SIMHOST} --write --object contact", 3, "plain http is spoken"},
		{"conform {SILENT}", 3, "closed the connection without responding"},
		{"conform {HANGSUP}", 3, "closed the connection without responding"},
		{"conform {PAGE}", 3, "a web page (HTML), not with JSON"},
		{"conform {NOTFOUND}", 3, "no endpoint under this path"},
		{"load {REDIRECT} --write --object contact", 3, "a redirect, which is not followed"},
		{"conform {UNHEALTHY}", 3, "reports that it is unhealthy"},
		{"conform service {SIM}", 2, "must end in /api/v1"},
		{"conform {SERVICE}/api/v1", 3, "no endpoint under this path"},
		{"GET {SERVICE}/api/v1/sync", 404, "did you mean /syncs?"},
		{"GET {SERVICE}/syncs", 404, "did you mean /api/v1/syncs?"},
	}},
	{title: "Tokens", env: map[string]string{"EMPTY": " ", "WRONG": "wrong", "LINES": "a\nb"}, rows: []mistake{
		{"conform {GUARDED}", 3, "no token was sent"},
		{"load {GUARDED} --write --object contact", 3, "no token was sent"},
		{"conform {GUARDED} --token-env WRONG", 3, "the token that was given is refused"},
		{"conform {SIM} --token-env '$TOKEN'", 2, "the name without $"},
		{"conform {SIM} --token-env NOT_SET", 2, "run 'export NOT_SET=…' first"},
		{"conform {SIM} --token-env EMPTY", 2, "is empty"},
		{"conform {SIM} --token-env LINES", 2, "a line break"},
		{"conform {SIM} --token-env s3cr3t.value", 2, "the name of an environment variable, not the token"},
		{"conform {SIM} --token abc", 2, "give --token-env NAME"},
		{"conform {SIM} --header 'Authorization Bearer s3cr3t'", 2, "'Name: value'"},
		{"conform {SIM} --header 'A: 1' --header 'A: 2'", 2, "given twice"},
		{"sync run 7 --url {SERVICE}", 2, "DESTKIT_WORKSPACE_API_KEY"},
		{"conform {SIM} --tls-roots no-such.pem", 2, "no-such.pem"},
		{"conform {SIM} --tls-roots text.pem", 2, "holds no certificate"},
	}},
	{title: "Commands and flags", rows: []mistake{
		{"confrom {SIM}", 2, "did you mean \"conform\"?"},
		{"conform {SIM} --wirte", 2, "did you mean --write?"},
		{"conform {SIM} --write", 2, "add --object NAME"},
		{"conform {SIM} --write contact", 2, "use --write --object contact"},
		{"conform {SIM} --write --object contcat", 2, "object \"contcat\" does not exist; list_objects names \"contact\""},
		{"conform {SIM} --object", 2, "needs an argument"},
		{"conform {SIM} --timeout 60", 2, "such as 60s"},
		{"conform {SIM} --timeout soon", 2, "such as 60s"},
		{"conform {SIM} --timeout 0s", 2, "longer than nothing"},
		{"conform {SIM} --max-records many", 2, "a whole number"},
		{"conform {SIM} --max-records 0", 2, "must be 1 or more"},
		{"conform {SIM} --serial true", 2, "--NAME=false turns it off"},
		{"conform {SIM} --profile strickt", 2, "use spec, v1 or strict"},
		{"conform {SIM} --development sometimes", 2, "use auto, on or off"},
		{"conform {SIM} --key-range 9:5", 2, "is empty"},
		{"conform {SIM} --key-template same", 2, "needs {run} and {n}"},
		{"conform {SIM} --skip-convention maybe", 2, "use failure, success"},
		{"conform {SIM} --url-secret cookie:x", 2, "use query:NAME"},
		{"conform {SIM} --exec 'node server.js'", 2, "need --watch"},
		{"conform {SIM} --watch --watch-path no-such", 2, "no such folder"},
	}},
	{title: "Checks, violations and other names", rows: []mistake{
		{"conform {SIM} --select RES", 2, "did you mean 'RES-*'?"},
		{"conform {SIM} --select res-2", 2, "did you mean 'RES-002'?"},
		{"conform {SIM} --select ZEBRA", 2, "'destkit checks' lists them"},
		{"conform {SIM} --select 'RES-['", 2, "is not a pattern"},
		{"explain RES-02", 2, "did you mean RES-002?"},
		{"checks ZEBRA", 2, "'destkit checks' lists them"},
		{"checks --suite servcie", 2, "use destination or service"},
		{"destsim --violate RES-02", 2, "did you mean"},
		{"destsim --preset cmr", 2, "crm"},
		{"serve --dialect alive", 2, "neither spec nor live"},
		{"protocol sync-batch", 2, "did you mean \"sync_batch\"?"},
		{"schema confg", 2, "did you mean \"config\"?"},
		{"init shop --lang pyhton", 2, "did you mean python?"},
		{"init shop --lang go --store mysql", 2, "choose memory"},
	}},
	{title: "Files", rows: []mistake{
		{"conform {SIM} --config no-such.yaml", 2, "no such file"},
		{"conform {SIM} --config key.yaml", 2, "key.yaml:2:1"},
		{"conform {SIM} --config value.yaml", 2, "value.yaml:2:10"},
		{"conform {SIM} --config list.yaml", 2, "list.yaml:1:1"},
		{"conform {SIM} --config tabs.yaml", 2, "indented with spaces"},
		{"conform {SIM} --config twice.yaml", 2, "twice.yaml:2:1"},
		{"conform {SIM} --config fixture.yaml", 2, "fixture.yaml:2:11"},
		{"conform {SIM} --waivers no-reason.yaml", 2, "has no reason"},
		{"conform {SIM} --waivers no-check.yaml", 2, "has no check"},
		{"conform {SIM} --waivers waiver-id.yaml --select RPC-001", 4, "names no check"},
		{"conform {SIM} --waivers waiver-date.yaml", 2, "unknown key \"expires\""},
		{"conform {SIM} --hooks hooks.yaml", 2, "did you mean \"command\"?"},
		{"conform {SIM} --features text.pem", 2, "give the folder"},
		{"destsim --config sim.yaml", 2, "did you mean \"fields\"?"},
		{"serve --seed seed.yaml", 2, "did you mean \"organizations\"?"},
		{"init --lang go", 2, "overwrite with --force"},
		{"replay report.json", 2, "not a JSON report"},
		{"diff report.json page.json", 2, "not a JSON report"},
		{"clean --journal journal.ndjson --url {SIM}", 2, "line 1, column 1: not JSON"},
		{"clean report.json", 2, "did you mean --journal report.json?"},
		{"load compare page.json page.json", 2, "expected the JSON result of a load"},
		{"load compare judged.json judged.json", 2, "schema_version must be a whole number, not a string"},
		{"conform {SIM} --report jsn=r.json", 2, "did you mean json?"},
		{"conform {SIM} --report out.pdf", 2, "names no format"},
		{"conform {SIM} --report json=no/such/r.json", 2, "no folder no/such"},
	}},
	{title: "Servers and load", rows: []mistake{
		{"destsim --addr {SIMADDR}", 3, "is in use: pass --addr"},
		{"serve --addr {SIMADDR}", 3, "is in use: pass --addr"},
		{"destsim --addr 8080", 2, "did you mean 127.0.0.1:8080?"},
		{"destsim --store mysql://db/x", 2, "use memory or sqlite:FILE"},
		{"load {SIM} --object contact", 2, "say so with --write"},
		{"load {SIM} --write", 2, "--object NAME"},
		{"load {SIM} --write --object contact --rate fast", 2, "such as 500"},
		{"load {SIM} --write --object contact --closed --rate 5", 2, "exclude each other"},
		{"load {SIM} --write --object contact --fail-if 'p99<1ms'", 2, "give 'p99>1ms'"},
		{"load {SIM} --write --object contact --fail-if latency", 2, "such as"},
		{"load {SIM} --write --object contact --fail-if 'p(95)>1s'", 2, "write p95 for p(95)"},
		{"load {SIM} --write --object contcat", 2, "has no object"},
		{"load run {SIM} --write --object contact", 2, "write the URL alone"},
		{"load {SIM} --write --object contact --vus 9", 2, "write --connections N"},
		{"load {SIM} --write --object contact -c 9", 2, "write --connections 9"},
		{"load {SIM} --write --object contact -d 3s", 2, "write --duration 30s"},
		{"load {SIM} --write --object contact --qps 5", 2, "write --rate N"},
		{"load {SIM} --write --object contact -q 5", 2, "takes no value"},
		{"load {SIM} --write --object contact --requests 3", 2, "write --count N"},
		{"load {SIM} --write --object contact --threshold p99<1s", 2, "write --fail-if 'p99>500ms'"},
		{"load {SIM} --write --object contact --out json=x", 2, "write --report json=FILE"},
		{"load {SIM} --write --object contact --insecure", 2, "write --tls-roots FILE"},
		{"load {SIM} --write --object contact --stages 2s:10", 2, "write 2s@10"},
	}},
}

// mistakeWorld starts what the rows call, and returns the addresses by their names,
// and by these the ones that the page shows.
func mistakeWorld(t *testing.T) (names, shown map[string]string) {
	t.Helper()
	names, shown = map[string]string{}, map[string]string{}
	add := func(name, address, port string) {
		_, host, _ := strings.Cut(address, "://")
		host = strings.TrimSuffix(host, "/")
		names[name], names[name+"ADDR"], names[name+"HOST"] = address, host, "://"+host
		shown[host] = "127.0.0.1:" + port
		_, real, _ := strings.Cut(host, ":")
		shown["port "+real] = "port " + port
	}
	serve := func(name, port string, start func(http.Handler) *httptest.Server, handler http.Handler) {
		s := start(handler)
		t.Cleanup(s.Close)
		add(name, s.URL, port)
	}
	sim := func(config destsim.Config) http.Handler {
		s, err := destsim.New(config)
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	serve("SIM", "8090", httptest.NewServer, sim(destsim.Config{}))
	serve("TLS", "8443", quietTLS, sim(destsim.Config{}))
	serve("GUARDED", "8091", httptest.NewServer, sim(destsim.Config{Token: "right"}))
	world, err := server.New(t.Context(), server.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = world.Close() })
	serve("SERVICE", "8080", httptest.NewServer, world)
	serve("REDIRECT", "8092", httptest.NewServer, http.RedirectHandler("https://example.com/login", http.StatusFound))
	for port, kind := range map[string]string{
		"8093": "closed", "8094": "hangs-up", "8095": "silent", "8097": "not-found", "8098": "unhealthy", "8099": "proxy",
	} {
		address, stop, err := startEndpoint(kind)
		require.NoError(t, err)
		t.Cleanup(stop)
		name := strings.ToUpper(strings.ReplaceAll(kind, "-", ""))
		if kind == "proxy" {
			name = "PAGE"
		}
		add(name, address, port)
	}
	return names, shown
}

// quietTLS is a server with TLS that does not complain of its callers.
func quietTLS(handler http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	return s
}

// TestMistakesPage makes every mistake of the page and keeps the output; -update
// writes the page.
func TestMistakesPage(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the messages of the system are those of Unix")
	}
	pages, err := filepath.Abs(repository)
	require.NoError(t, err)
	names, shown := mistakeWorld(t)
	t.Chdir(t.TempDir())
	t.Setenv("HOME", t.TempDir())
	for _, name := range []string{command.URLVariable, command.TokenVariable, command.AccessTokenVariable, command.WorkspaceKeyVariable, "GITHUB_ACTIONS", "FORCE_COLOR"} {
		t.Setenv(name, "")
		require.NoError(t, os.Unsetenv(name)) // back again after the test
	}
	here, err := os.Getwd()
	require.NoError(t, err)
	shown[here] = "."
	for name, content := range mistakeFiles {
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	}
	show := func(text string) string {
		for _, real := range slices.Sorted(maps.Keys(shown)) {
			text = strings.ReplaceAll(text, real, shown[real])
		}
		return text
	}
	var page strings.Builder
	page.WriteString(mistakesIntroduction)
	rows := 0
	for _, group := range mistakeGroups {
		fmt.Fprintf(&page, "\n## %s\n\n| typed | printed | exit status |\n|---|---|--:|\n", group.title)
		for name, value := range group.env {
			t.Setenv(name, value)
		}
		for _, row := range group.rows {
			line := row.line
			for name, address := range names {
				line = strings.ReplaceAll(line, "{"+name+"}", address)
			}
			status, output := makeMistake(t, line)
			said := lineWith(output, row.says)
			if row.says == "" || status != row.status || said == "" {
				t.Errorf("%s\n  status %d, %q; want %d, %q", row.line, status, show(output), row.status, row.says)
			}
			require.NotContains(t, output, "s3cr3t")
			fmt.Fprintf(&page, "| `%s`%s | %s | %d |\n", show(typed(line)), fileOf(line), tableCell(show(said)), status)
			rows++
		}
		for name := range group.env {
			require.NoError(t, os.Unsetenv(name))
		}
	}
	require.GreaterOrEqual(t, rows, 75)
	t.Chdir(filepath.Join(pages, "cmd", "destkit"))
	requirePage(t, "evidence/mistakes.md", page.String())
}

const mistakesIntroduction = `# Mistakes and what is printed

<!-- written by: go test ./cmd/destkit -run TestMistakesPage -update -->

The mistakes that people make most with each command. A test makes every one of them, and
keeps the line that is printed and the exit status. On the ports of the examples: 8080 a
service, 8090 a simulated destination, 8091 one that wants a token, 8443 one with TLS,
8092 a redirect, 8093 nothing, 8094 and 8095 servers that hang up, 8097 a server without
that path, 8098 an endpoint that calls itself unhealthy, 8099 the error page of a proxy.
`

// makeMistake runs one line and returns its exit status with all that it prints.
func makeMistake(t *testing.T, line string) (int, string) {
	t.Helper()
	if address, get := strings.CutPrefix(line, "GET "); get {
		response := httptest.NewRecorder()
		reply, err := http.Get(address)
		require.NoError(t, err)
		defer reply.Body.Close()
		_, err = response.Body.ReadFrom(reply.Body)
		require.NoError(t, err)
		return reply.StatusCode, response.Body.String()
	}
	args, err := command.Split(line)
	require.NoError(t, err)
	var out, screen bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(&screen)
	status := command.Execute(context.Background(), root, args)
	return status, screen.String() + out.String()
}

// typed is a line as it is typed.
func typed(line string) string {
	if strings.HasPrefix(line, "GET ") {
		return line
	}
	return "destkit " + line
}

// lineWith is the first line that has the text.
func lineWith(output, text string) string {
	for line := range strings.Lines(output) {
		if strings.Contains(line, text) {
			return strings.TrimRight(line, "\n")
		}
	}
	return ""
}

// fileOf is the content of the file that a line names, for a cell.
func fileOf(line string) string {
	for word := range strings.FieldsSeq(line) {
		if content, ok := mistakeFiles[word]; ok {
			return "<br>" + word + ": " + strings.ReplaceAll("`"+strings.ReplaceAll(strings.TrimSuffix(content, "\n"), "\n", "`<br>`")+"`", "\t", "⇥")
		}
	}
	return ""
}

// tableCell is a text in a cell of a table.
func tableCell(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "*", "\\*", "[", "\\[", "_", "\\_").Replace(text)
}
