package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/destkit/destkit/destsim"
)

// The transcripts in testdata/script run the real program in real processes.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"destkit": main})
}

func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      cmdExits,
			"destsim":    cmdDestsim,
			"endpoint":   cmdEndpoint,
			"interrupts": cmdInterrupts,
			"words":      cmdWords,
		},
	})
}

// cmdExits is `exits STATUS COMMAND ARG...`: the command must end with exactly
// that status.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	checkStatus(ts, ts.Exec(args[1], args[2:]...), want)
}

func checkStatus(ts *testscript.TestScript, err error, want int) {
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d instead of %d", got, want)
	}
}

// program prepares the program in the folder and environment of the script.
func program(ts *testscript.TestScript, args ...string) *exec.Cmd {
	cmd := exec.Command("destkit", args...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir)
	for _, name := range []string{"SIM_TOKEN", "CONTROL_TOKEN"} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	return cmd
}

// cmdDestsim is `destsim NAME ARG...`: it starts the simulator on a free port
// until the script ends and sets $NAME to its URL.
func cmdDestsim(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: destsim NAME ARG...")
	}
	cmd := program(ts, append([]string{"destsim", "--addr", "127.0.0.1:0"}, args[1:]...)...)
	cmd.Stderr = ts.Stderr()
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	ts.Check(err)
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening ")
	if !ok {
		ts.Fatalf("the first line of destsim is %q", line)
	}
	ts.Setenv(args[0], url)
}

// cmdEndpoint is `endpoint NAME KIND`: it serves one of the small endpoints
// below until the script ends and sets $NAME to its URL.
func cmdEndpoint(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: endpoint NAME KIND")
	}
	url, stop, err := startEndpoint(args[1])
	ts.Check(err)
	ts.Defer(stop)
	ts.Setenv(args[0], url)
}

func startEndpoint(kind string) (url string, stop func(), err error) {
	switch kind {
	case "closed": // nobody listens there any more
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", nil, err
		}
		url := "http://" + ln.Addr().String()
		return url, func() {}, ln.Close()
	case "hangs-up": // accepts and closes without a byte
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", nil, err
		}
		go func() {
			for {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				conn.Close()
			}
		}()
		return "http://" + ln.Addr().String(), func() { ln.Close() }, nil
	}
	handler, stopHandler, err := endpointHandler(kind)
	if err != nil {
		return "", nil, err
	}
	server := httptest.NewServer(handler)
	return server.URL, func() { server.CloseClientConnections(); stopHandler(); server.Close() }, nil
}

// fixed answers every request alike.
func fixed(status int, contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// unhealthy obeys the protocol and says that it cannot work.
func unhealthy() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			Method string          `json:"method"`
			ID     json.RawMessage `json:"id"`
		}
		w.Header().Set("Content-Type", "application/json")
		answer := `"error":{"code":-32000,"message":"the CRM is down"}`
		switch err := json.NewDecoder(r.Body).Decode(&call); {
		case err != nil:
			call.ID, answer = json.RawMessage("null"), `"error":{"code":-32700,"message":"not JSON"}`
		case call.Method == "test_connection":
			answer = `"result":{"success":false,"error_message":"the CRM is down"}`
		}
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(call.ID)+`,`+answer+`}`)
	})
}

func endpointHandler(kind string) (http.Handler, func(), error) {
	switch kind {
	case "proxy": // the page of a proxy in front of nothing
		return fixed(502, "text/html", "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"), func() {}, nil
	case "text":
		return fixed(200, "text/plain", "it works!"), func() {}, nil
	case "unhealthy":
		return unhealthy(), func() {}, nil
	case "slow-hook":
		release := make(chan struct{})
		var once sync.Once
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
			case <-release:
			}
		}), func() { once.Do(func() { close(release) }) }, nil
	case "lying-hook": // says that every record is there, also those never sent
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, ids, _ := bytes.Cut(body, []byte(`"identifiers":[`))
			ids, _, _ = bytes.Cut(ids, []byte("]"))
			var records []string
			for _, id := range bytes.Split(ids, []byte(",")) {
				records = append(records, `{"identifier":`+string(id)+`,"count":1,"fields":{}}`)
			}
			_, _ = io.WriteString(w, `{"records":[`+strings.Join(records, ",")+`],"complete":true}`)
		}), func() {}, nil
	}
	return nil, nil, errors.New("unknown kind of endpoint " + kind)
}

// holder passes everything on to a simulator and holds the first batch that
// carries records until the client has gone or release is closed.
type holder struct {
	next    http.Handler
	reached chan struct{}
	release chan struct{}
	once    sync.Once
}

func (h *holder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if bytes.Contains(body, []byte(`"sync_batch"`)) && bytes.Contains(body, []byte("zz-conf-")) {
		first := false
		h.once.Do(func() { first = true })
		if first {
			h.next.ServeHTTP(w, r) // what was written stays written
			close(h.reached)
			select {
			case <-r.Context().Done():
			case <-h.release:
			}
			return
		}
	}
	h.next.ServeHTTP(w, r)
}

// cmdInterrupts is `interrupts STATUS ARG...`: it starts a simulator, runs
// `destkit ARG...` on its URL ($URL in ARG), sends SIGINT while the first batch
// of records is on its way, and wants that exit status.
func cmdInterrupts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: interrupts STATUS ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	sim, err := destsim.New(destsim.Config{})
	ts.Check(err)
	defer sim.Close()
	h := &holder{next: sim, reached: make(chan struct{}), release: make(chan struct{})}
	server := httptest.NewServer(h)
	defer server.Close()
	defer server.CloseClientConnections()
	defer close(h.release)
	words := make([]string, len(args)-1)
	for i, arg := range args[1:] {
		words[i] = strings.ReplaceAll(arg, "URL", server.URL)
	}
	cmd := program(ts, words...)
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-h.reached:
	case err := <-ended:
		ts.Fatalf("the program ended before it wrote a record: %v", err)
	}
	ts.Check(cmd.Process.Signal(os.Interrupt))
	checkStatus(ts, <-ended, want)
}

// cmdWords is `words FILE TEXT...`: the file must hold every text as it is.
func cmdWords(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: words FILE TEXT...")
	}
	content := ts.ReadFile(args[0])
	for _, text := range args[1:] {
		if strings.Contains(content, text) == neg {
			ts.Fatalf("%s: %q found is %v", args[0], text, !neg)
		}
	}
}
