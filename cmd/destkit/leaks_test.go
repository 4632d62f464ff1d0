package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
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
func serveEcho(t *testing.T, place string) string {
	sim, err := destsim.New(destsim.Config{})
	require.NoError(t, err)
	e, alter := newEcho(), places[place]
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
		alter(e, w, call.Method, call.ID, answer.Body.Bytes())
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/rpc"
}

// written is everything that a command wrote: screens and files.
type written struct{ out, err string }

// inProcess runs the program in this process.
func inProcess(t *testing.T, args ...string) written {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(&errs)
	command.Execute(t.Context(), root, args)
	return written{out.String(), errs.String()}
}

// requireSilent demands that a text holds the token in no encoding.
func requireSilent(t *testing.T, what, text string) {
	t.Helper()
	for _, h := range []string{text, strings.Join(stringsOf(text), "\n")} {
		for name, form := range testkit.Encodings(leakToken) {
			if at := strings.Index(h, form); at >= 0 {
				t.Fatalf("%s: the token as %s: …%s", what, name, h[max(0, at-80):at+len(form)])
			}
		}
		require.NotContains(t, h, leakToken[:10], "%s: most of the token", what)
	}
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
// a response to every command that talks to one, and looks through all they write.
func TestMatrixNoOutputHoldsTheToken(t *testing.T) {
	matrixtest.Long(t)
	t.Setenv("LEAK_TOKEN", leakToken)
	for place := range places {
		t.Run(place, func(t *testing.T) {
			dir := t.TempDir()
			url := serveEcho(t, place)
			run := func(args ...string) {
				t.Helper()
				got := inProcess(t, args...)
				what := place + ": " + args[0]
				require.NotEmpty(t, got.out+got.err, what)
				for name, text := range map[string]string{" stdout": got.out, " stderr": got.err} {
					requireSilent(t, what+name, text)
					requireQuiet(t, what+name, text)
				}
			}
			with := func(args ...string) []string { return append(args, url, "--token-env", "LEAK_TOKEN") }
			reports := []string{"--object", "contact", "--write", "--journal", filepath.Join(dir, "journal"), "--select", "RPC-*", "--select", "ERR-*", "--select", "RES-*", "--select", "HTTP-*", "--select", "AUTH-*", "--select", "OBJ-*", "--select", "SPD-*", "--verbose"}
			for _, format := range report.Formats() {
				reports = append(reports, "--report", format+"="+filepath.Join(dir, "report."+format))
			}
			run(with(append([]string{"conform"}, reports...)...)...)
			run(with("plan")...)
			run(with("plan", "--object", "contact", "--write")...)
			run(with("plan", "--json")...)
			run(with("clean", "--journal", filepath.Join(dir, "journal"))...)
			run(with("load", "--write", "--object", "contact", "--count", "80", "--closed", "--connections", "2", "--batch-size", "1", "--journal", filepath.Join(dir, "load.journal"),
				"--json", filepath.Join(dir, "load.json"), "--html", filepath.Join(dir, "load.html"), "--csv", filepath.Join(dir, "load.csv"))...)
			if kept := filepath.Join(dir, "load.journal"); place != "names" && place != "error" && exists(kept) {
				run(with("load", "clean", "--journal", kept)...)
				run("load", "compare", filepath.Join(dir, "load.json"), filepath.Join(dir, "load.json"), "--html", filepath.Join(dir, "compare.html"))
			}
			if kept := filepath.Join(dir, "report.json"); place != "names" {
				run("diff", kept, kept)
				run("diff", kept, kept, "--json")
				run("diff", kept, kept, "--markdown")
				run("replay", kept, "--url", url, "--write", "--token-env", "LEAK_TOKEN")
				run("replay", kept, "--url", url, "--token-env", "LEAK_TOKEN", "--json")
			}
			files, err := os.ReadDir(dir)
			require.NoError(t, err)
			for _, f := range files {
				text, err := os.ReadFile(filepath.Join(dir, f.Name()))
				require.NoError(t, err)
				requireSilent(t, place+": "+f.Name(), string(text))
			}
		})
	}
}

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
