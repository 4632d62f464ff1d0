package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/testkit"
)

// The token of these tests, and what a terminal and a CI service must not get.
const (
	leakToken = "sk-live-Zq7RtY0pLm4Xw9Vb"
	acting    = "\n::error::owned\n  ::warning::owned\r##[error]owned ##vso[task.setvariable]owned \x1b[31mred\u202eright\u2066\u200b\u009b2J\x00\x7f\u2028"
)

// echo is an endpoint that repeats the token, in another encoding with each call and
// with another length before it, and acts on terminals.
type echo struct {
	forms []string
	calls atomic.Int64
	quiet atomic.Bool
}

func newEcho() *echo {
	all := testkit.Encodings(leakToken)
	e := &echo{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !strings.ContainsRune(all[name], 0) && name != "base64 three times" { // bodies are looked into two deep
			e.forms = append(e.forms, all[name])
		}
	}
	return e
}

// said is the present answer of the endpoint.
func (e *echo) said() string {
	n := int(e.calls.Add(1))
	return strings.Repeat("x", n%60) + " " + e.forms[n%len(e.forms)] + " " + acting + " " + e.forms[(n*7)%len(e.forms)]
}

// places are the parts of a response in which the endpoint speaks.
var places = map[string]func(e *echo, w http.ResponseWriter, method string, id any, answer []byte){
	"error": func(e *echo, w http.ResponseWriter, _ string, id any, _ []byte) {
		speak(w, map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": -32000, "message": e.said(), "data": e.said(), e.said(): 1}})
	},
	"labels": func(e *echo, w http.ResponseWriter, _ string, _ any, answer []byte) {
		_, _ = w.Write(bytes.ReplaceAll(answer, []byte(`"label":"`), []byte(`"label":"`+quoted(e.said()))))
	},
	"names": func(e *echo, w http.ResponseWriter, _ string, _ any, answer []byte) {
		_, _ = w.Write(bytes.ReplaceAll(answer, []byte(`_api_name":"`), []byte(`_api_name":"`+quoted(e.forms[3]+acting))))
	},
	"results": func(e *echo, w http.ResponseWriter, method string, id any, answer []byte) {
		var reply struct {
			Result struct {
				Results []map[string]any `json:"record_results"`
			} `json:"result"`
		}
		if method != "sync_batch" || json.Unmarshal(answer, &reply) != nil || reply.Result.Results == nil {
			_, _ = w.Write(answer)
			return
		}
		for _, r := range reply.Result.Results {
			r["success"], r["error_message"] = false, e.said()
		}
		speak(w, map[string]any{"jsonrpc": "2.0", "id": id, "result": map[string]any{"record_results": reply.Result.Results}, e.said(): true})
	},
	"text": func(e *echo, w http.ResponseWriter, method string, _ any, answer []byte) {
		if method != "get_sync_speed" {
			_, _ = w.Write(answer)
			return
		}
		_, _ = io.WriteString(w, e.said())
	},
	"page": func(e *echo, w http.ResponseWriter, _ string, _ any, _ []byte) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "<html>"+e.said())
	},
	"head": func(e *echo, w http.ResponseWriter, _ string, _ any, answer []byte) {
		word := clean(e.said())
		w.Header().Set("X-Echo", word)
		w.Header().Set("WWW-Authenticate", word)
		w.Header().Set("Retry-After", word)
		w.Header().Set("Trailer", "X-Late")
		_, _ = w.Write(answer)
		w.Header().Set("X-Late", word)
	},
	"refusal": func(e *echo, w http.ResponseWriter, _ string, _ any, _ []byte) {
		w.Header().Set("WWW-Authenticate", clean(e.said()))
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, e.said())
	},
	"redirect": func(e *echo, w http.ResponseWriter, _ string, _ any, _ []byte) {
		w.Header().Set("Location", "/"+clean(e.said()))
		w.WriteHeader(http.StatusTemporaryRedirect)
	},
	"status line": func(e *echo, w http.ResponseWriter, _ string, _ any, _ []byte) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 500 %s\r\n%s\r\n\r\n", clean(e.said()), clean(e.said()))
	},
}

// clean makes a text a header value.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b[1 : len(b)-1])
}

func speak(w io.Writer, v any) { _ = json.NewEncoder(w).Encode(v) }

// serveEcho is a simulator whose responses are altered in one place.
func serveEcho(t *testing.T, place string) (e *echo, at string) {
	sim, err := destsim.New(destsim.Config{})
	require.NoError(t, err)
	alter := places[place]
	e = newEcho()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var call struct {
			Method string `json:"method"`
			ID     any    `json:"id"`
		}
		_ = json.Unmarshal(body, &call)
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		sim.ServeHTTP(answer, r)
		if e.quiet.Load() {
			_, _ = w.Write(answer.Body.Bytes())
			return
		}
		alter(e, w, call.Method, call.ID, answer.Body.Bytes())
	}))
	t.Cleanup(srv.Close)
	return e, srv.URL + "/rpc"
}

// written is everything that a command wrote: screens and files.
type written struct {
	out, err string
	status   int
}

// inProcess runs the program in this process.
func inProcess(t *testing.T, args ...string) written {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(&errs)
	status := command.Execute(t.Context(), root, args)
	return written{out.String(), errs.String(), status}
}

// inBackground runs a server in this process until stop, and gives its first line.
func inBackground(t *testing.T, args ...string) (first command.FirstLine, stop func() written) {
	t.Helper()
	var errs bytes.Buffer
	in, ends := io.Pipe()
	read, out := io.Pipe()
	root, ended := newRoot(), make(chan struct{})
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(&errs)
	go func() {
		defer close(ended)
		command.Execute(context.WithoutCancel(t.Context()), root, append(args, "--addr", "127.0.0.1:0", "--json", "--exit-with-stdin"))
		_ = out.Close()
	}()
	lines := json.NewDecoder(read)
	require.NoError(t, lines.Decode(&first))
	rest := make(chan []byte, 1)
	go func() {
		text, _ := io.ReadAll(io.MultiReader(lines.Buffered(), read))
		rest <- text
	}()
	return first, func() written {
		_ = ends.Close()
		<-ended
		return written{out: string(<-rest), err: errs.String()}
	}
}

// crawl gives all pages that are linked from one of this machine, up to sixty, as one text.
func crawl(t *testing.T, at string) string {
	t.Helper()
	links := regexp.MustCompile(`(?:href|data-live)="([^"#]+)`)
	base, err := url.Parse(at)
	require.NoError(t, err)
	var all strings.Builder
	seen, queue := map[string]bool{}, []string{base.String()}
	for len(queue) > 0 && len(seen) < 60 {
		page := queue[0]
		queue = queue[1:]
		if seen[page] {
			continue
		}
		seen[page] = true
		ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
		require.NoError(t, err)
		ask.Header.Set("Accept", "text/html")
		res, err := http.DefaultClient.Do(ask)
		require.NoError(t, err)
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		_ = res.Body.Close()
		all.Write(text)
		for _, m := range links.FindAllStringSubmatch(string(text), -1) {
			if to, err := res.Request.URL.Parse(html.UnescapeString(m[1])); err == nil && to.Host == base.Host && !strings.Contains(to.Path, "/live") {
				queue = append(queue, to.String())
			}
		}
	}
	require.Greater(t, len(seen), 3, at)
	return all.String()
}

// searched are what was looked through: of each place how often the token and the endpoint's
// other words were found.
type searched struct {
	mu   sync.Mutex
	rows map[string]map[string][2]int
}

// in looks for the token in a text that a command wrote.
func (s *searched) in(t *testing.T, place, what, text string) {
	t.Helper()
	found := requireSilent(t, place+": "+what, text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows[what] == nil {
		s.rows[what] = map[string][2]int{}
	}
	was := s.rows[what][place]
	s.rows[what][place] = [2]int{was[0] + found, was[1] + strings.Count(text, "owned")}
}

// table is the page of it.
func (s *searched) table() string {
	var b strings.Builder
	columns := append(slices.Sorted(maps.Keys(places)), "caller")
	fmt.Fprintf(&b, leaksHead, len(testkit.Encodings(leakToken)))
	fmt.Fprintf(&b, "\n| | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, what := range slices.Sorted(maps.Keys(s.rows)) {
		b.WriteString("| " + what + " |")
		for _, place := range columns {
			if of, looked := s.rows[what][place]; looked {
				fmt.Fprintf(&b, " %d of %d |", of[0], of[1])
			} else {
				b.WriteString(" |")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

const leaksHead = `# Where a token may not be

An endpoint repeats the token in one place of its responses (a column), each time in another one of
%d encodings and after another number of characters, and every command runs against it. "0 of 12":
what a command wrote has the token in none of the encodings, and twelve times a word that the
endpoint said with it; empty: nothing is written there. In the last column a caller says it to a
simulator.
` + "`TestMatrixNoOutputHoldsTheToken` looks, `make docs` writes the page.\n"

// requireSilent demands that a text holds the token in no encoding; found is how often it does.
func requireSilent(t *testing.T, what, text string) (found int) {
	t.Helper()
	for _, h := range []string{text, strings.Join(stringsOf(text), "\n")} {
		for name, form := range testkit.Encodings(leakToken) {
			if at := strings.Index(h, form); at >= 0 {
				t.Errorf("%s: the token as %s: …%s", what, name, h[max(0, at-80):at+len(form)])
				found++
			}
		}
		require.NotContains(t, h, leakToken[:10], "%s: most of the token", what)
	}
	return found
}

// requireQuiet demands that a text does not act on a terminal or a CI service.
func requireQuiet(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		require.False(t, strings.HasPrefix(strings.TrimSpace(line), "::"), "%s: %q", what, line)
		require.NotContains(t, line, "##[", what)
		require.NotContains(t, line, "##vso[", what)
		require.Less(t, len(line), 64<<10, what)
		for _, r := range line {
			require.False(t, r != '\t' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || r == '\u2028'), "%s: %U in %q", what, r, line)
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// stringsOf are the names and texts of JSON, up to where it is none.
func stringsOf(text string) (all []string) {
	for dec := json.NewDecoder(strings.NewReader(text)); ; {
		token, err := dec.Token()
		if err != nil {
			return all
		}
		if s, ok := token.(string); ok {
			all = append(all, s)
		}
	}
}

// TestMatrixNoOutputHoldsTheToken puts an endpoint that repeats the token in every place of
// a response to every command that talks to one, and looks through all they write and show.
func TestMatrixNoOutputHoldsTheToken(t *testing.T) {
	matrixtest.Long(t)
	t.Setenv("LEAK_TOKEN", leakToken)
	t.Setenv(command.WorkspaceKeyVariable, "workspace-key-of-the-walk-1")
	all := &searched{rows: map[string]map[string][2]int{}}
	for place := range places {
		t.Run(place, func(t *testing.T) { all.walk(t, place) })
	}
	t.Run("caller", func(t *testing.T) {
		sim, stop := inBackground(t, "destsim", "--keep-bodies", "--token-env", "LEAK_TOKEN")
		e := newEcho()
		for i := range 60 {
			said := quoted(e.said())
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s","method":"sync_batch","params":{"%[1]s":1,"sync_plan":{"object":{"object_api_name":"contact"},"operation":"%[1]s"},"records":[{"email":"%[1]s"}]}}`, said)
			ask, err := http.NewRequestWithContext(t.Context(), http.MethodPost, sim.URL+"/?said="+url.QueryEscape(e.said()), strings.NewReader(body[:len(body)-i%2]))
			require.NoError(t, err)
			ask.Header = http.Header{"Authorization": {"Bearer " + leakToken}, "Content-Type": {"application/json"}, "X-Said": {clean(e.said())}, "User-Agent": {clean(e.said())}}
			res, err := http.DefaultClient.Do(ask)
			require.NoError(t, err)
			_ = res.Body.Close()
		}
		all.in(t, "caller", "destsim, pages", crawl(t, sim.Control+"/console/"))
		got := stop()
		all.in(t, "caller", "destsim", got.out+got.err)
	})
	if *updateFiles && !t.Failed() {
		require.NoError(t, os.WriteFile(filepath.Join(matrixtest.Root(t), "docs", "evidence", "secrets.md"), []byte(all.table()), 0o644))
	}
}

// walk runs all commands against an endpoint that repeats the token in one place.
func (s *searched) walk(t *testing.T, place string) {
	dir := t.TempDir()
	e, target := serveEcho(t, place)
	look := func(what string, got written) {
		t.Helper()
		require.NotEmpty(t, got.out+got.err, what)
		require.False(t, got.status == exit.BadUsage && place != "names" && !strings.Contains(got.err, "no finding"), "%s: %s", what, got.err)
		for _, text := range []string{got.out, got.err} {
			s.in(t, place, what, text)
			requireQuiet(t, place+": "+what, text)
		}
	}
	run := func(what string, args ...string) {
		t.Helper()
		look(what, inProcess(t, args...))
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	with := func(args ...string) []string { return append(args, target, "--token-env", "LEAK_TOKEN") }
	formats := func(flag, name string) (args []string) {
		for _, format := range report.Formats() {
			args = append(args, flag, format+"="+file(name+"."+format))
		}
		return args
	}
	few := []string{"--object", "contact", "--write", "--select", "RPC-*", "--select", "ERR-*", "--select", "RES-*", "--select", "HTTP-*", "--select", "AUTH-*", "--select", "OBJ-*", "--select", "SPD-*", "--verbose"}
	run("conform", with(slices.Concat([]string{"conform", "--journal", file("journal")}, few, formats("--report", "report"))...)...)
	run("plan", with("plan")...)
	run("plan", with("plan", "--object", "contact", "--write")...)
	run("plan --json", with("plan", "--json")...)
	run("init --existing", with("init", file("made"), "--ci", "none", "--existing")...)
	if exists(file("journal")) {
		run("clean", with("clean", "--journal", file("journal"))...)
	}
	run("load", with("load", "--write", "--object", "contact", "--count", "80", "--closed", "--connections", "2", "--batch-size", "1", "--journal", file("load.journal"),
		"--json", file("load.json"), "--html", file("load.html"), "--csv", file("load.csv"))...)
	if kept := file("load.journal"); place != "names" && place != "error" && exists(kept) {
		run("load clean", with("load", "clean", "--journal", kept)...)
		run("load compare", "load", "compare", file("load.json"), file("load.json"), "--html", file("compare.html"))
	}
	if kept := file("report.json"); place != "names" {
		run("diff", "diff", kept, kept)
		run("diff --json", "diff", kept, kept, "--json")
		run("diff --markdown", "diff", kept, kept, "--markdown")
		run("replay REPORT", "replay", kept, "--url", target, "--write", "--token-env", "LEAK_TOKEN")
		run("replay REPORT --json", "replay", kept, "--url", target, "--token-env", "LEAK_TOKEN", "--json")
	}

	proxy, stop := inBackground(t, slices.Concat([]string{"proxy", "--to", target, "--control-addr", "127.0.0.1:0", "--verbose", "--journal", file("calls.ndjson"), "--har", file("calls.har")},
		formats("--report", "proxied"), formats("--caller-report", "caller"))...)
	run("conform through proxy", append([]string{"conform", proxy.URL + "/", "--token-env", "LEAK_TOKEN"}, few[:7]...)...)
	s.in(t, place, "proxy, pages", crawl(t, proxy.Control))
	look("proxy", stop())
	run("conform --from", slices.Concat([]string{"conform", "--from", file("calls.ndjson"), "--verbose"}, formats("--report", "from"), formats("--caller-report", "from-caller"))...)
	run("replay RECORDING", "replay", file("calls.ndjson"), "--url", target, "--write", "--object", "contact", "--token-env", "LEAK_TOKEN")

	service, stop := inBackground(t, "serve", "--log-level", "debug")
	e.quiet.Store(true)
	res, err := http.Post(service.Control+"/seed", "application/yaml", strings.NewReader(fmt.Sprintf(leaksSeed, leakToken, target)))
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, res.StatusCode)
	_ = res.Body.Close()
	e.quiet.Store(false)
	run("sync run", "sync", "run", "1", "--url", service.URL, "--interval", "1ms")
	run("sync plan", "sync", "plan", "1", "--url", service.URL)
	run("explain-record", "explain-record", "--sync", "1", "ada@example.com", "--url", service.URL)
	s.in(t, place, "serve, pages", crawl(t, service.Control+"/console/"))
	look("serve, log", stop())

	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		name := file(f.Name())
		if f.IsDir() { // what init has made
			name = filepath.Join(name, "destkit.yaml")
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		s.in(t, place, "file "+f.Name(), string(text))
	}
}

const leaksSeed = `organizations:
  - first: true
    workspaces:
      - name: First workspace
        sources:
          - name: Shop
            type: snowflake
            credentials: {account: xy12345, warehouse: LOADING, database: SHOP, user: reader, password: p}
            execute: |
              CREATE TABLE PEOPLE (EMAIL TEXT, LAST_NAME TEXT);
              INSERT INTO PEOPLE VALUES ('ada@example.com', 'Lovelace'), ('alan@example.com', 'Turing');
        destinations:
          - name: Endpoint
            type: custom_api
            credentials: {api_version: 1, auth_token: %q, webhook_url: %q}
        syncs:
          - label: People
            source: Shop
            source_object: {table: PEOPLE}
            destination: Endpoint
            object: contact
            operation: upsert
            mappings:
              - {from: {type: column, data: EMAIL}, to: email, is_primary_identifier: true}
              - {from: {type: column, data: LAST_NAME}, to: last_name}
`

// TestNoServiceActsOnTheScreen: the same with a service that repeats the key of the
// workspace, for the commands that talk to one.
func TestNoServiceActsOnTheScreen(t *testing.T) {
	for i := range 40 {
		e := newEcho()
		e.calls.Store(int64(i) * 11)
		said := quoted(e.said())
		sync := fmt.Sprintf(`200 {"status":"success","data":{"id":1,"label":"%s","status":"%[1]s"}}`, said)
		run := strings.ReplaceAll(testkit.OneRun("working", "STEP", 5, 3, 1, 0, `,"error_code":"STEP"`), "STEP", said)
		end := strings.ReplaceAll(testkit.OneRun("failed", "STEP", 5, 3, 1, 0, `,"error_code":"STEP","error_message":"STEP","error_detail":"STEP"`), "STEP", said)
		odd := strings.ReplaceAll(testkit.OneRun("STEP", "STEP", 5, 3, 1, 0, ""), "STEP", said)
		way := "200 " + strings.ReplaceAll(testkit.RecordWay, `\u001b[2J`, said)
		refused := fmt.Sprintf(`500 {"status":"error","message":"%s"}`, said)
		for name, tc := range map[string]struct {
			answers map[string][]string
			args    []string
		}{
			"sync run":            {map[string][]string{"GET /api/v1/syncs/1": {sync}, "GET /api/v1/sync_runs/4": {odd, run, end}}, []string{"sync", "run", "1", "--interval", "1ms"}},
			"sync run, json":      {map[string][]string{"GET /api/v1/syncs/1": {sync}, "GET /api/v1/sync_runs/4": {run, end}}, []string{"sync", "run", "1", "--interval", "1ms", "--json"}},
			"sync run, refused":   {map[string][]string{"POST /api/v1/syncs/1/trigger": {strings.Replace(refused, "500", "422", 1)}}, []string{"sync", "run", "1"}},
			"sync cancel":         {map[string][]string{"POST /api/v1/sync_runs/4/cancel": {strings.Replace(refused, "500", "409", 1)}}, []string{"sync", "cancel", "4"}},
			"sync plan":           {map[string][]string{"POST /_control/syncs/1/plan": {`200 {"sync_id":1,"label":"` + said + `","refused":[{"rows":1,"reason":"` + said + `"}],"failure":{"code":"x","message":"` + said + `","detail":"` + said + `"},"sample":[{"action":"` + said + `","identifier":"` + said + `"}]}`}}, []string{"sync", "plan", "1", "--control-token-env", command.WorkspaceKeyVariable}},
			"explain-record":      {map[string][]string{"GET /_control/explain": {way}}, []string{"explain-record", "--sync", "1", "a", "--control-token-env", command.WorkspaceKeyVariable}},
			"explain-record json": {map[string][]string{"GET /_control/explain": {way}}, []string{"explain-record", "--sync", "1", "a", "--json", "--control-token-env", command.WorkspaceKeyVariable}},
		} {
			s, url := testkit.Answering(t, tc.answers)
			s.Key = leakToken
			t.Setenv(command.WorkspaceKeyVariable, leakToken)
			got := inProcess(t, append(tc.args, "--url", url)...)
			require.Contains(t, got.out+got.err, "owned", "%s: the service is heard", name)
			for screen, text := range map[string]string{" stdout": got.out, " stderr": got.err} {
				requireSilent(t, name+screen, text)
				requireQuiet(t, name+screen, text)
			}
		}
	}
}
