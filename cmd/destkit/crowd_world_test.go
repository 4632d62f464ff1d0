//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/syncs"
	"github.com/destkit/destkit/cmd/destkit/testdata/crowd"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

// crowded is one process of the real program that a crowd meets.
type crowded struct {
	t      *testing.T
	cmd    *exec.Cmd
	api    *syncs.Client
	data   string // the data directory
	source string // a SQLite file
	said   *saying
	ended  chan struct{}
	err    error // of the process, once it has ended

	// idleEnds is after how long a destination ends a connection without calls; 0: never,
	// so that the service does, after a minute and a half.
	idleEnds time.Duration

	honest []string // where the syncs that are kept write to
	others []string // what the crowd connects
	syncs  map[int64]string
}

// newCrowded starts the program.
func newCrowded(t *testing.T) *crowded {
	t.Helper()
	w := &crowded{t: t, data: t.TempDir(), source: filepath.Join(t.TempDir(), "shop.db"), said: &saying{}, ended: make(chan struct{}), syncs: map[int64]string{}}
	const key, token = "5ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7", "secret-token:crowd"
	args := []string{"serve", "--addr", "127.0.0.1:0", "--data", w.data, "--allow-files", filepath.Dir(w.source), "--log-level", "error", "--batch-timeout", "2s", "--request-timeout", "2s", "--connect-timeout", "2s"}
	env := append(usersEnvironment(), command.MasterKeyVariable+"="+key, command.WorkspaceKeyVariable+"="+token, "HOME="+t.TempDir())
	w.cmd = exec.Command("destkit", args...)
	w.cmd.Env, w.cmd.Stderr = env, w.said
	out, err := w.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, w.cmd.Start())
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		<-w.ended
		if t.Failed() {
			t.Logf("said:\n%s", tail(w.said.String(), 20_000))
		}
	})
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	go func() {
		defer close(w.ended)
		_, _ = io.Copy(io.Discard, lines)
		w.err = w.cmd.Wait()
	}()
	require.NoError(t, err, "%s", w.said)
	url, listening := strings.CutPrefix(strings.TrimSpace(line), "listening ")
	require.True(t, listening, "%s", line)
	w.api = &syncs.Client{Root: url, Token: token, HTTP: &http.Client{Timeout: 10 * time.Minute}}
	w.rows()
	return w
}

func tail(text string, most int) string {
	if len(text) > most {
		return "…" + text[len(text)-most:]
	}
	return text
}

// rows is the source of all syncs.
func (w *crowded) rows() {
	conn, err := sqlite.OpenConn(w.source)
	require.NoError(w.t, err)
	defer conn.Close()
	require.NoError(w.t, sqlitex.ExecuteScript(conn, `CREATE TABLE rows (id INTEGER PRIMARY KEY, first TEXT, second TEXT);
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20) INSERT INTO rows SELECT i, 'first ' || i, 'second ' || i FROM n;`, nil))
}

// objectsEach is how many objects a destination has: one sync writes to each.
const objectsEach = 25

// endpoints are the destinations: some that store everything, and some that do not
// answer as a destination should.
func (w *crowded) endpoints(honest int) {
	for range honest + 1 {
		sim, err := destsim.New(destsim.Config{Objects: things(objectsEach)})
		require.NoError(w.t, err)
		server := httptest.NewUnstartedServer(sim)
		w.endsIdle(server)
		server.Start()
		w.t.Cleanup(func() { server.Close(); require.NoError(w.t, sim.Close()) })
		w.honest = append(w.honest, server.URL)
	}
	// The last one is for the crowd, whose syncs may write what they like.
	w.others, w.honest = w.honest[honest:], w.honest[:honest]
	serve := func(handle http.HandlerFunc) {
		server := httptest.NewUnstartedServer(handle)
		w.endsIdle(server)
		server.Start()
		w.t.Cleanup(server.Close)
		w.others = append(w.others, server.URL)
	}
	serve(func(rw http.ResponseWriter, r *http.Request) { // never answers
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	serve(func(rw http.ResponseWriter, _ *http.Request) { // sends too much
		for range 1000 {
			if _, err := rw.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	serve(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	serve(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "1000000000")
		rw.WriteHeader(http.StatusTooManyRequests)
	})
	serve(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, `{"jsonrpc":"2.0","id":"x","result":{"objects":[{"object_api_name":"thing_0"}],"fields":null}}`)
	})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	w.others = append(w.others, "http://"+closed.Addr().String())
	require.NoError(w.t, closed.Close())
}

// endsIdle lets a destination end connections without calls: those that have had one, and
// those that were opened for a call which took another one.
func (w *crowded) endsIdle(server *httptest.Server) {
	server.Config.IdleTimeout, server.Config.ReadHeaderTimeout = w.idleEnds, 5*w.idleEnds
}

// keep makes the syncs that are kept, each to its own object.
func (w *crowded) keep(c *crowd.Crowd, many int) {
	id := func(path string, body any) int64 {
		var made struct {
			ID   int64 `json:"id"`
			Sync int64 `json:"sync_id"`
		}
		require.NoError(w.t, w.api.Post(w.t.Context(), path, body, &made))
		return max(made.ID, made.Sync)
	}
	from := id("/sources", map[string]any{"connection": map[string]any{"name": "Shop", "type": "sqlite", "credentials": map[string]any{"path": w.source}}})
	var to []int64
	for i, url := range w.honest {
		to = append(to, id("/destinations", map[string]any{"service_connection": map[string]any{
			"name": fmt.Sprintf("Honest %d", i), "type": "custom_api", "credentials": map[string]any{"api_version": 1, "webhook_url": url + "/"}}}))
	}
	for i := range many {
		at := i % len(to)
		body := crowd.SyncBody(from, to[at], thing(i/len(to)), []string{api.OperationUpsert, api.OperationMirror}[i%2])
		made := id("/syncs", body)
		w.syncs[made] = w.honest[at]
		c.Keep(made, body)
	}
}

// stand is the state of a process at a moment.
type stand struct {
	memory      int64 // resident, in bytes
	descriptors int64
	goroutines  int64
	files       map[string]bool // in its data directory
}

func (w *crowded) measure() (s stand) {
	proc := fmt.Sprintf("/proc/%d/", w.cmd.Process.Pid)
	if fds, err := os.ReadDir(proc + "fd"); err == nil {
		s.descriptors = int64(len(fds))
	}
	text, _ := os.ReadFile(proc + "statm")
	if fields := strings.Fields(string(text)); len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		s.memory = pages * int64(os.Getpagesize())
	}
	return s
}

// metric is a number of the service, the sum of those whose labels have part.
func (w *crowded) metric(name, part string) (sum int64, err error) {
	answer, err := w.api.HTTP.Get(w.api.Root + "/metrics")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), name); ok && strings.Contains(rest, part) {
			value, err := strconv.ParseFloat(rest[strings.LastIndex(rest, " ")+1:], 64)
			if err != nil {
				return 0, err
			}
			sum += int64(value)
		}
	}
	return sum, lines.Err()
}

// watch measures until stop is called, which gives the peaks.
func (w *crowded) watch() (stop func() stand) {
	ctx, cancel := context.WithCancel(context.Background())
	var peaks stand
	var both sync.WaitGroup
	every := func(pause time.Duration, look func()) {
		both.Go(func() {
			for {
				look()
				select {
				case <-ctx.Done():
					return
				case <-time.After(pause):
				}
			}
		})
	}
	every(20*time.Millisecond, func() {
		now := w.measure()
		peaks.memory, peaks.descriptors = max(peaks.memory, now.memory), max(peaks.descriptors, now.descriptors)
	})
	every(500*time.Millisecond, func() {
		if n, err := w.metric("go_goroutines", ""); err == nil {
			peaks.goroutines = max(peaks.goroutines, n)
		}
	})
	return func() stand { cancel(); both.Wait(); return peaks }
}

// rest is the state when nothing runs and no connection is open that the crowd
// has made.
func (w *crowded) rest() stand {
	now := w.measure()
	var err error
	now.goroutines, err = w.metric("go_goroutines", "")
	require.NoError(w.t, err)
	now.files = map[string]bool{}
	require.NoError(w.t, filepath.WalkDir(w.data, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed while this looks
		case err != nil:
			return err
		case !entry.IsDir():
			now.files[strings.TrimPrefix(path, w.data)] = true
		}
		return nil
	}))
	return now
}

// stacks are where the goroutines of the process are, the most frequent places first.
func (w *crowded) stacks() string {
	answer, err := w.api.HTTP.Get(w.api.Root + "/_control/pprof/goroutine?debug=1")
	require.NoError(w.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 20_000))
	require.NoError(w.t, err)
	return string(text)
}

// control calls /_control as this test needs it to answer.
func (w *crowded) control(method, path string, body, into any) {
	w.t.Helper()
	if err := w.api.Control(w.t.Context(), method, path, body, into); err != nil {
		var clock json.RawMessage
		if none := w.api.Control(w.t.Context(), "GET", "/clock", nil, &clock); none != nil {
			clock = fmt.Appendf(nil, "%q", none.Error())
		}
		require.NoError(w.t, err, "%s %s\nthe clock: %s\nat work:\n%s", method, path, clock, w.stacks())
	}
}

// settle lets the clock run until no run is active; the last retry of a run comes
// long before the end of it.
func (w *crowded) settle() (active int64) {
	w.control("POST", "/clock", json.RawMessage(`{"freeze":false}`), nil)
	for range 48 {
		w.control("POST", "/clock", json.RawMessage(`{"advance":"30m"}`), nil)
		active = 0
		for _, status := range []string{api.RunQueued, api.RunWorking} {
			n, err := w.metric("destkit_sync_runs", `"`+status+`"`)
			require.NoError(w.t, err)
			active += n
		}
		if active == 0 {
			return 0
		}
	}
	return active
}

// terminate ends the process as an operator does, and returns how long it took.
func (w *crowded) terminate() (time.Duration, error) {
	began := time.Now()
	_ = w.cmd.Process.Signal(syscall.SIGTERM)
	<-w.ended
	return time.Since(began), w.err
}

// saying is what a process has written so far.
type saying struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *saying) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *saying) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// thing is the name of an object that is a number with two texts.
func thing(number int) string { return fmt.Sprintf("thing_%d", number) }

func things(count int) (objects []destsim.ObjectConfig) {
	for i := range count {
		objects = append(objects, destsim.ObjectConfig{
			Name: thing(i), Label: thing(i), Operations: []string{rpc.OperationUpsert, rpc.OperationMirror}, Fields: []destsim.FieldConfig{
				{Name: "id", Label: "Id", Type: rpc.TypeInteger, Identifier: true, Required: true, Unique: true},
				{Name: "first", Label: "First", Type: rpc.TypeString}, {Name: "second", Label: "Second", Type: rpc.TypeString},
			},
		})
	}
	return objects
}
