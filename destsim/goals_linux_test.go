package destsim

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// What the processes that are measured find in their environment: which server
// to be, and for the floor the sizes of request and reply.
const (
	serverVariable = "DESTSIM_MEASURED_SERVER"
	sizesVariable  = "DESTSIM_MEASURED_SIZES"
)

// TestMain lets the test program be the server of its own benchmark, in a
// separate process.
func TestMain(m *testing.M) {
	kind := os.Getenv(serverVariable)
	if kind == "" {
		os.Exit(m.Run())
	}
	if err := serveMeasured(kind); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveMeasured(kind string) error {
	go func() { // ends with the benchmark
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if kind == "floor" {
		var size, reply int
		if _, err := fmt.Sscan(os.Getenv(sizesVariable), &size, &reply); err != nil {
			return err
		}
		head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", reply)
		return serveFloor(size, []byte(head+strings.Repeat("x", reply)), func(address string) { fmt.Println(address) })
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	if kind == "json" {
		return http.Serve(ln, http.HandlerFunc(answerWithMaps))
	}
	s, err := New(Config{})
	if err != nil {
		return err
	}
	if kind == "nothing" {
		s.store = forgetful{}
	}
	return (&Server{Sim: s, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}).Serve(ln)
}

// answerWithMaps is the obvious version in Go: net/http, encoding/json, maps,
// nothing checked and nothing stored.
func answerWithMaps(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var q map[string]any
	if err != nil || json.Unmarshal(body, &q) != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	params := q["params"].(map[string]any)
	results := []map[string]any{}
	for _, record := range params["records"].([]any) {
		results = append(results, map[string]any{"identifier": record.(map[string]any)["email"], "success": true})
	}
	out, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": q["id"], "result": map[string]any{"record_results": results}})
	if err != nil {
		http.Error(w, "no answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(out)))
	_, _ = w.Write(out)
}

// forgetful is a store without records: the cost of checking and answering.
type forgetful struct{ store.Store }

var _ store.Upserter = forgetful{} // or batches would take the long way

func (forgetful) Begin() (store.Unit, error) { return forgetful{}, nil }
func (forgetful) Commit() error              { return nil }
func (forgetful) Rollback()                  {}
func (forgetful) With(_ *store.Table, _, _ []byte, fn func(store.Rows) error) error {
	return fn(forgetful{})
}
func (forgetful) Find(_, _ []byte) ([]*store.Row, error) { return nil, nil }
func (forgetful) Put(*store.Row, []byte) error           { return nil }
func (forgetful) Remove(*store.Row) error                { return nil }
func (forgetful) Shape([][]byte) *store.Shape            { return &store.Shape{} }
func (forgetful) Upsert(_ *store.Table, list []store.Upsert) {
	for i := range list {
		list[i].Verdict = store.Stored
	}
}

// measured is one server process.
type measured struct {
	address string
	process *os.Process
	stop    func()
}

func startMeasured(b *testing.B, kind, sizes string) *measured {
	b.Helper()
	exe, err := os.Executable()
	require.NoError(b, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), serverVariable+"="+kind, sizesVariable+"="+sizes)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	return &measured{strings.TrimSpace(line), cmd.Process, func() {
		_ = in.Close()
		_ = cmd.Wait()
	}}
}

// cpu is the time of the processor that the process has taken so far.
func (m *measured) cpu(b *testing.B) time.Duration {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.process.Pid))
	require.NoError(b, err)
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	user, err := strconv.Atoi(fields[11])
	require.NoError(b, err)
	system, err := strconv.Atoi(fields[12])
	require.NoError(b, err)
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100 everywhere
}

// goalWork makes requests of so many records each and the replies to them. One
// record in a hundred has an age that is no integer and must be refused.
func goalWork(tb testing.TB, requests, size int) (bodies, replies [][]byte) {
	s := newSim(tb, Config{})
	n := 0
	for range requests {
		records := make([]string, size)
		for j := range records {
			age := strconv.Itoa(20 + n%60)
			if n%100 == 99 {
				age = `"x"`
			}
			records[j] = fmt.Sprintf(`{"email":"user%08d@example.com","last_name":"Lovelace%d","first_name":"Ada%d","age":%s,`+
				`"score":%d.25,"balance":"12%d.50","subscribed":true,"birth_date":"1815-12-%02d","last_seen_at":"2021-03-29T16:32:%02dZ","tags":["a","b"]}`,
				n, n%1000, n%100, age, n%50, n%90, 1+n%28, n%60)
			n++
		}
		params := planOf(s, "contact", "upsert", "email", records...)
		body := rpc.EncodeRequest(nil, rpc.MethodSyncBatch, []byte(params), "d06835ea44ee2e9eb1f5dcd8bbfbe5c6")
		var c call
		head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: hammer\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body))
		r, err := http.NewRequest(http.MethodPost, "/", nil)
		require.NoError(tb, err)
		s.run(&c, r, body)
		replies = append(replies, slices.Clone(c.reply.sent))
		s.finish(&c)
		bodies = append(bodies, append([]byte(head), body...))
	}
	return bodies, replies
}

// run is one measurement.
type goalRun struct{ rate, cpu []float64 } // requests per second, CPU µs per request

// BenchmarkGoals measures the simulator against the floor and against net/http
// with encoding/json, in turns, and reports the ratios of the medians. Each
// server is a separate process; -benchtime is the length of one turn, and
// DESTKIT_BENCH_ROUNDS takes another number of turns than five.
func BenchmarkGoals(b *testing.B) {
	turn := time.Second
	if d, err := time.ParseDuration(benchTime()); err == nil {
		turn = d
	}
	one, oneReplies := goalWork(b, 20000, 1)
	many, manyReplies := goalWork(b, 1000, 1000)
	type contender struct {
		name, kind        string
		requests, replies [][]byte
		connections       int
	}
	contenders := []contender{
		{"floor f1", "floor", one, nil, 32},
		{"simulator f1", "simulator", one, oneReplies, 32},
		{"encoding/json f1", "json", one, nil, 32},
		{"simulator b1000, no store", "nothing", many, manyReplies, 8},
		{"simulator b1000, 1 M keys", "simulator", many, manyReplies, 8},
		{"encoding/json b1000", "json", many, nil, 8},
	}
	runs := map[string]*goalRun{}
	var ready []func()
	for _, c := range contenders {
		server := startMeasured(b, c.kind, fmt.Sprint(len(one[0]), len(oneReplies[0])))
		defer server.stop()
		h := &hammer{requests: c.requests, replies: c.replies}
		require.NoError(b, h.dial(server.address, c.connections))
		defer h.close()
		// All keys are there before anything is measured; and a client without
		// a request is not waited for as long as others have their turn.
		if c.kind == "simulator" || c.kind == "nothing" {
			_, _, err := h.run(time.Minute, len(c.requests))
			require.NoError(b, err)
		}
		run := &goalRun{}
		runs[c.name] = run
		ready = append(ready, func() {
			before := server.cpu(b)
			n, took, err := h.run(turn, 0)
			require.NoError(b, err, c.name)
			run.rate = append(run.rate, float64(n)/took.Seconds())
			run.cpu = append(run.cpu, float64((server.cpu(b)-before).Microseconds())/float64(n))
		})
	}
	rounds := 5
	if n, err := strconv.Atoi(os.Getenv("DESTKIT_BENCH_ROUNDS")); err == nil {
		rounds = n
	}
	for range rounds {
		for _, measure := range ready {
			measure()
		}
	}
	fmt.Println() // a log of a benchmark is cut after ten lines
	for _, c := range contenders {
		fmt.Printf("%-28s %9.0f requests/s %10.2f CPU µs per request in the server\n", c.name, median(runs[c.name].rate), median(runs[c.name].cpu))
	}
	ratio := func(name, x, y string, goal float64) {
		v := median(runs[x].rate) / median(runs[y].rate)
		reportSpread(b, name, runs[x].over(runs[y]))
		fmt.Printf("%-28s %9.2f (goal %.2f), by CPU time of the servers %.2f\n", name, v, goal, median(runs[y].cpu)/median(runs[x].cpu))
		b.ReportMetric(v, name)
	}
	ratio("f1/floor", "simulator f1", "floor f1", 0.70)
	ratio("f1/encoding-json", "simulator f1", "encoding/json f1", 6)
	ratio("b1000/encoding-json", "simulator b1000, no store", "encoding/json b1000", 15)
	ratio("b1000-stored/not-stored", "simulator b1000, 1 M keys", "simulator b1000, no store", 0.65)
	perM := median(runs["simulator b1000, 1 M keys"].cpu) / 1000
	fmt.Printf("%-28s %9.2f (goal 0.40)\n", "CPU s per M records, stored", perM)
	b.ReportMetric(perM, "CPU-s/M")
	stored := runs["simulator b1000, 1 M keys"]
	reportSpread(b, "CPU-s/M", scaled(stored.cpu, 1e-3))
	b.ReportMetric(median(stored.rate)*1000, "b1000-records/s")
	reportSpread(b, "b1000-records/s", scaled(stored.rate, 1000))
	b.ReportMetric(median(runs["simulator f1"].rate), "f1-req/s")
	reportSpread(b, "f1-req/s", runs["simulator f1"].rate)
}

// over are the ratios of two that were measured in turns, turn by turn.
func (r *goalRun) over(other *goalRun) []float64 {
	list := slices.Clone(r.rate)
	for i := range list {
		list[i] /= other.rate[i]
	}
	return list
}

func scaled(list []float64, by float64) []float64 {
	list = slices.Clone(list)
	for i := range list {
		list[i] *= by
	}
	return list
}

// reportSpread reports the least and the most next to a metric.
func reportSpread(b *testing.B, name string, list []float64) {
	b.ReportMetric(slices.Min(list), name+"-low")
	b.ReportMetric(slices.Max(list), name+"-high")
}

func benchTime() string {
	f := flag.Lookup("test.benchtime")
	if f == nil {
		return ""
	}
	return f.Value.String()
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
