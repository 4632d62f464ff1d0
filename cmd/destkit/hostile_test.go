package main

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
)

// mostMemory is what a command may hold at its highest, whatever the peer or a
// file does: 256 MiB.
const mostMemory = 256 << 20

// processEnd is what a process of the program came to.
type processEnd struct {
	status int
	text   string
	peak   int64 // bytes of memory at the highest
}

// usersEnvironment is that of the tests, with the collector as users have it.
func usersEnvironment() (env []string) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); name != "GOGC" && name != "GOMEMLIMIT" {
			env = append(env, v)
		}
	}
	return env
}

// runProgram runs the program in a separate process and watches its memory.
func runProgram(t *testing.T, args ...string) processEnd {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the highest memory of a process is read from /proc")
	}
	cmd := exec.Command("destkit", args...)
	cmd.Dir = t.TempDir()
	cmd.Env = usersEnvironment()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	ended, peak := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, highWater(cmd.Process.Pid))
			select {
			case <-tick.C:
			case <-ended:
				peak <- most
				return
			}
		}
	}()
	err := cmd.Wait()
	close(ended)
	r := processEnd{text: out.String(), peak: <-peak}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		r.status = exit.ExitCode()
	} else {
		require.NoError(t, err)
	}
	require.NotContains(t, r.text, "goroutine ", "the program broke down")
	require.Positive(t, r.peak)
	t.Logf("exit %d, %d MiB", r.status, r.peak>>20)
	return r
}

// highWater is VmHWM of a process, in bytes; 0 once it is gone.
func highWater(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseInt(number, 10, 64) // a zombie has none
	return n << 10
}

// sabotage is a good endpoint that answers one method ("": all) by writing on the
// connection itself. Its objects are those of the simulator where none are given.
func sabotage(t *testing.T, method string, write func(conn net.Conn, id string), objects ...destsim.ObjectConfig) string {
	t.Helper()
	good, err := destsim.New(destsim.Config{Objects: objects})
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var c struct {
			ID     json.RawMessage
			Method string
		}
		if method != "" && (json.Unmarshal(body, &c) != nil || c.Method != method) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			good.ServeHTTP(w, r)
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		write(conn, string(c.ID))
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close(); good.Close() })
	return server.URL + "/"
}

const okHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

// flood writes a part until the peer has had enough.
func flood(head, part string) func(net.Conn, string) {
	return func(conn net.Conn, id string) {
		_, err := io.WriteString(conn, strings.ReplaceAll(head, "$ID", id))
		for block := []byte(strings.Repeat(part, 256<<10/len(part)+1)); err == nil; {
			_, err = conn.Write(block)
		}
	}
}

// whole writes one reply of a length that it announces.
func whole(head, prefix, part string, times int, suffix string) func(net.Conn, string) {
	return func(conn net.Conn, id string) {
		prefix := strings.ReplaceAll(prefix, "$ID", id)
		_, err := fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", head, len(prefix)+len(part)*times+len(suffix), prefix)
		at := min(times, 4096) // parts in one block: a single one may be large
		block := []byte(strings.Repeat(part, at))
		for left := times; err == nil && left > 0; left -= at {
			_, err = conn.Write(block[:len(part)*min(left, at)])
		}
		if err == nil {
			_, _ = io.WriteString(conn, suffix)
		}
	}
}

var packed = sync.OnceValue(func() map[string]string {
	zeros := make([]byte, 8<<20)
	out := map[string]string{}
	for name, open := range map[string]func(io.Writer) io.WriteCloser{
		"gzip":    func(w io.Writer) io.WriteCloser { z, _ := gzip.NewWriterLevel(w, gzip.BestCompression); return z },
		"deflate": func(w io.Writer) io.WriteCloser { z, _ := flate.NewWriter(w, flate.BestCompression); return z },
	} {
		var b bytes.Buffer
		z := open(&b)
		for range 64 {
			_, _ = z.Write(zeros) // into memory: cannot fail
		}
		_ = z.Close()
		out[name] = b.String()
	}
	return out
})

// attacks are replies without bounds.
func attacks() map[string]func(net.Conn, string) {
	const result = `{"jsonrpc":"2.0","id":$ID,"result":{`
	return map[string]func(net.Conn, string){
		"endless chunks":          flood(okHead+"Transfer-Encoding: chunked\r\n\r\n", "4000\r\n"+strings.Repeat(" ", 0x4000)+"\r\n"),
		"one endless chunk":       flood(okHead+"Transfer-Encoding: chunked\r\n\r\n7fffffff\r\n", " "),
		"endless until the close": flood(okHead+"Connection: close\r\n\r\n", "[],"),
		"a length of terabytes":   flood(okHead+"Content-Length: 9000000000000\r\n\r\n", " "),
		"endless headers":         flood(okHead, "X-Header: value\r\n"),
		"an endless header":       flood(okHead+"X-Header: ", "v"),
		"endless trailers":        flood(okHead+"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", "T: value\r\n"),
		"endless 103":             flood("", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"),
		"gzip":                    whole(okHead+"Content-Encoding: gzip\r\n", "", packed()["gzip"], 1, ""),
		"deflate":                 whole(okHead+"Content-Encoding: deflate\r\n", "", packed()["deflate"], 1, ""),
		"an endless status line":  flood("", "HTTP/1.1 200 OK "),
		"an endless chunk size":   flood(okHead+"Transfer-Encoding: chunked\r\n\r\n", "0"),
		"deep nesting":            whole(okHead, result+`"a":`, "[", 5<<20, ""),
		"many objects":            whole(okHead, result+`"objects":[0`, `,{"object_api_name":"o","label":"o"}`, 200_000, `]}}`),
		"a million members":       whole(okHead, result+`"a":0`, `,"member":1`, 1<<20, `}}`),
		"20 MiB of small values":  whole(okHead, result+`"record_results":[0`, `,1`, 10<<20, `]}}`),
		"a million results":       whole(okHead, result+`"record_results":[0`, `,{"identifier":"x","success":false,"error_message":"no"}`, 1<<19, `]}}`),
		"an error of 30 MiB":      whole(okHead, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"`, `x`, 30<<20, `"}}`),
		"a status with 30 MiB":    whole("HTTP/1.1 500 Broken\r\nContent-Type: text/html\r\n", "<html>", `x`, 30<<20, ``),
	}
}

// sampleOfAttacks are the replies that are tried.
func sampleOfAttacks(t *testing.T) map[string]bool {
	t.Helper()
	names := slices.Sorted(maps.Keys(attacks()))
	var cells []matrixtest.Cell
	for _, name := range names {
		cells = append(cells, matrixtest.Cell{Name: name})
	}
	runs := map[string]bool{}
	for i, run := range matrixtest.Sample(t, []string{"conformance/internal/wire/", "loadgen/internal/wire/"}, cells) {
		runs[names[i]] = run
	}
	return runs
}

// TestMatrixOfTheJudgesMemory: whichever reply has no bound, the judge stays below
// 256 MiB, writes its reports, and reports what is wrong.
func TestMatrixOfTheJudgesMemory(t *testing.T) {
	matrixtest.NotEveryDay(t)
	all := attacks()
	runs := sampleOfAttacks(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		write := all[name]
		for _, method := range []string{"", "sync_batch"} {
			if !runs[name] {
				continue
			}
			t.Run(name+"/"+method, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "r.json")
				r := runProgram(t, "conform", sabotage(t, method, write), "--write", "--object", "contact", "--timeout", "8s",
					"--planning-timeout", "2s", "--batch-timeout", "2s", "--report", "json="+file)
				if method == "" { // else the run may end before it has judged a batch
					require.Contains(t, []int{exit.GateFailed, exit.NotTested}, r.status, r.text)
				}
				require.Less(t, r.peak, int64(mostMemory))
				info, err := os.Stat(file)
				require.NoError(t, err)
				require.Less(t, info.Size(), int64(64<<20), "a report that nobody can read")
				again := runProgram(t, "diff", file, file)
				require.Zero(t, again.status, again.text)
				require.Less(t, again.peak, int64(mostMemory))
			})
		}
	}
}

// TestMatrixOfALoadsMemory: many connections at once, and each reply without bound.
func TestMatrixOfALoadsMemory(t *testing.T) {
	matrixtest.NotEveryDay(t)
	all := attacks()
	runs := sampleOfAttacks(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		write := all[name]
		for _, method := range []string{"list_objects", "sync_batch"} {
			for _, client := range []string{"own", "standard"} {
				if client == "standard" && method == "list_objects" {
					continue // its planning calls are the same
				}
				if !runs[name] {
					continue
				}
				t.Run(name+"/"+method+"/"+client, func(t *testing.T) {
					r := runProgram(t, "load", sabotage(t, method, write), "--write", "--object", "contact", "--closed", "--connections", "50", "--batch-size", "10",
						"--duration", "1s", "--planning-timeout", "2s", "--batch-timeout", "2s", "--quiet", "--compress", "--http-client", client)
					require.Contains(t, []int{exit.GateFailed, exit.NotTested}, r.status, r.text)
					require.Less(t, r.peak, int64(mostMemory))
					require.Less(t, len(r.text), 64<<10)
				})
			}
		}
	}
}

// TestEverythingIsPrintedByOneWriter: all output of a command goes through package foreign,
// which shows each value from outside on one line and in full sight.
func TestEverythingIsPrintedByOneWriter(t *testing.T) {
	var files []string
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "testdata" {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".go" {
			files = append(files, filepath.ToSlash(path))
		}
		return err
	}))
	set := token.NewFileSet()
	calls := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := s.X.(*ast.Ident)
			if !ok {
				return true
			}
			calls++
			what := pkg.Name + "." + s.Sel.Name
			switch {
			case pkg.Name == "fmt" && (strings.HasPrefix(s.Sel.Name, "Fprint") || strings.HasPrefix(s.Sel.Name, "Print")),
				what == "os.Stdout", what == "os.Stderr", what == "io.WriteString":
				// A page of HTML is no screen, and escapes by itself; that of the protocol
				// holds our own text alone.
				if name != "internal/command/profiles.go" && name != "internal/protocol/page.go" {
					t.Errorf("%s: %s prints past the one writer: use foreign.Printf", set.Position(s.Pos()), what)
				}
			case what == "foreign.Raw":
				require.Contains(t, []string{"internal/command/execute.go", "internal/outputs/progress.go", "internal/command/terminal.go", "internal/loads/display.go", "internal/syncs/display.go", "internal/outputs/outputs.go", "internal/loads/files.go", "internal/serve/key.go", "conform_watch_screen.go"},
					name, "who else goes past the net says here why")
			}
			return true
		})
	}
	require.NotZero(t, calls)
}
