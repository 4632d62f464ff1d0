package executor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// millionEnv hands a child process of the benchmark its work.
const millionEnv = "DESTKIT_MILLION_CHILD"

// millionWork is what a child does: it makes the runs, in a separate process
// so that its memory is that of the executor alone.
type millionWork struct {
	Destination string                     // URL
	Kind        string                     // of the source
	Credentials map[string]json.RawMessage // of the source
	Object      source.Object
	Folder      string // of the ledger
	Passes      []string
}

// millionPass is how one pass went.
type millionPass struct {
	Name    string
	Rows    int64
	Seconds float64
	Calls   int64
	HighMB  float64 // most memory of the process up to its end
}

// millionColumns are the ten columns of the table.
var millionColumns = []string{"id", "name", "email", "city", "street", "level", "score", "active", "note", "created_at"}

// BenchmarkMillion runs a sync of ten columns over HTTP in batches of 1,000, with a durable commit for
// each, and compares with reading, mapping and fingerprinting alone. The destination, a separate process on
// the same processors, scans and answers each record and stores nothing. DESTKIT_BENCH_ROWS replaces
// the 1 M rows (10 M for the memory), DESTKIT_BENCH_ROUNDS the three rounds.
func BenchmarkMillion(b *testing.B) {
	rows, more := 1_000_000, 10_000_000
	if text := os.Getenv("DESTKIT_BENCH_ROWS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(b, err)
		rows, more = n, 10*n
	}
	for _, kind := range []struct {
		name  string
		table func(b *testing.B, rows int) (work millionWork, change func())
	}{{"SQLite", millionSQLite}, {"PostgreSQL", millionPostgres}} {
		for _, n := range []int{rows, more} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, n), func(b *testing.B) {
				work, change := kind.table(b, n)
				rounds := 3
				if n, err := strconv.Atoi(os.Getenv("DESTKIT_BENCH_ROUNDS")); err == nil {
					rounds = n
				}
				if n == more { // for the memory alone
					rounds = 1
				}
				benchmarkMillion(b, n, rounds, work, change)
			})
		}
	}
}

// millionSQLite makes the table in a file.
func millionSQLite(b *testing.B, rows int) (millionWork, func()) {
	w := newWorld(b, setup{table: "id INTEGER PRIMARY KEY, name TEXT, email TEXT, city TEXT, street TEXT, level INTEGER, score REAL, active BOOLEAN, note TEXT, created_at TEXT"})
	w.sql(`WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < ?)
		INSERT INTO people SELECT v, 'First Last ' || v, 'person' || v || '@example.com', 'Town ' || v % 1000, v || ' Long Street',
		v % 7, v * 0.25, v % 2, 'some words about this person', '2026-01-01T00:00:00Z' FROM n`, rows)
	return millionWork{Kind: "sqlite", Credentials: map[string]json.RawMessage{"path": api.Raw(w.file)}, Object: source.Object{Name: "people"}},
		func() { w.sql(millionChange) }
}

// millionPostgres makes it in a server.
func millionPostgres(b *testing.B, rows int) (millionWork, func()) {
	server := testkit.StartPostgres(b)
	conn, err := pgx.Connect(b.Context(), fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=postgres", server.Folder, server.Port, testkit.PostgresUser, testkit.PostgresPassword))
	require.NoError(b, err)
	sql := func(text string, args ...any) {
		_, err := conn.Exec(context.Background(), text, args...)
		require.NoError(b, err)
	}
	b.Cleanup(func() {
		sql("DROP TABLE people")
		require.NoError(b, conn.Close(context.Background()))
	})
	sql("CREATE TABLE people (id bigint PRIMARY KEY, name text, email text, city text, street text, level integer, score double precision, active boolean, note text, created_at timestamptz)")
	sql(`INSERT INTO people SELECT v, 'First Last ' || v, 'person' || v || '@example.com', 'Town ' || v % 1000, v || ' Long Street',
		v % 7, v * 0.25, v % 2 = 0, 'some words about this person', '2026-01-01T00:00:00Z' FROM generate_series(1, $1) v`, rows)
	sql("VACUUM ANALYZE people")
	credentials := map[string]json.RawMessage{}
	for key, value := range server.Credentials() {
		credentials[key] = api.Raw(value)
	}
	return millionWork{Kind: "postgres", Credentials: credentials, Object: source.Object{Schema: "public", Name: "people"}}, func() { sql(millionChange) }
}

// millionChange changes one row in a hundred.
const millionChange = "UPDATE people SET level = level + 1 WHERE id % 100 = 0"

// millionResults are the passes by their names.
type millionResults map[string][]millionPass

// benchmarkMillion makes the passes in turns, a new ledger for each round.
func benchmarkMillion(b *testing.B, rows, rounds int, work millionWork, change func()) {
	work.Destination = startMillionDestination(b)
	all := millionResults{}
	for range b.N * rounds {
		work.Folder = b.TempDir()
		for _, passes := range [][]string{{"full", "alone", "unchanged"}, {"changed", "alone", "unchanged"}} {
			if passes[0] == "changed" {
				change()
			}
			work.Passes = passes
			for _, p := range runMillion(b, work) {
				require.EqualValues(b, rows, p.Rows, p.Name)
				all[p.Name] = append(all[p.Name], p)
			}
		}
		require.NoError(b, os.RemoveAll(work.Folder))
	}
	for _, name := range []string{"alone", "full", "unchanged", "changed"} {
		b.ReportMetric(float64(rows)/all.seconds(name)/1e6, name+"-Mrows/s")
	}
	all.ratio(b, "alone", "full", "full/alone")
	all.ratio(b, "alone", "unchanged", "unchanged/alone")
	all.ratio(b, "unchanged", "changed", "changed/unchanged")
	b.ReportMetric(slices.Max(all.values("unchanged", func(p millionPass) float64 { return float64(p.Calls) })), "unchanged-batches")
	b.ReportMetric(all.high(), "MB")
	b.ReportMetric(0, "ns/op")
}

func (r millionResults) values(name string, of func(millionPass) float64) (values []float64) {
	for _, p := range r[name] {
		values = append(values, of(p))
	}
	return values
}

// ratio reports how the rates of two passes compare, by their medians.
func (r millionResults) ratio(b *testing.B, against, name, unit string) {
	b.ReportMetric(r.seconds(against)/r.seconds(name), unit)
}

// seconds are the median of a pass.
func (r millionResults) seconds(name string) float64 {
	values := slices.Sorted(slices.Values(r.values(name, func(p millionPass) float64 { return p.Seconds })))
	return values[len(values)/2]
}

// high is the most memory of any process.
func (r millionResults) high() (most float64) {
	for _, passes := range r {
		for _, p := range passes {
			most = max(most, p.HighMB)
		}
	}
	return most
}

// child starts this program again with work to do.
func child(b testing.TB, env string, work any) *exec.Cmd {
	b.Helper()
	text, err := json.Marshal(work)
	require.NoError(b, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env+"="+string(text))
	cmd.Stderr = os.Stderr
	return cmd
}

func runMillion(b *testing.B, work millionWork) (passes []millionPass) {
	b.Helper()
	out, err := child(b, millionEnv, work).Output()
	require.NoError(b, err)
	require.NoError(b, json.Unmarshal(out, &passes), "%s", out)
	return passes
}

// startMillionDestination starts the destination in a separate process.
func startMillionDestination(b *testing.B) (url string) {
	b.Helper()
	cmd := child(b, millionEnv, millionWork{})
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	return strings.TrimSpace(line)
}

// do is the child.
func (w millionWork) do() error {
	if len(w.Passes) == 0 {
		return serveMillion()
	}
	ctx := context.Background()
	src, err := source.Open(ctx, w.Kind, w.Credentials, source.Options{})
	if err != nil {
		return err
	}
	columns, err := src.Columns(ctx, w.Object)
	if err != nil {
		return err
	}
	opened, err := ledger.Open(ledger.Options{Dir: w.Folder})
	if err != nil {
		return err
	}
	job, err := w.job(ctx, src, columns)
	if err != nil {
		return err
	}
	e := New(Options{Clock: clock.New(nil), Ledger: opened, Payloads: true})
	meta, err := opened.Sync(job.Sync).Meta()
	if err != nil {
		return err
	}
	var done []millionPass
	for _, name := range w.Passes {
		p := millionPass{Name: name}
		start := time.Now()
		if name == "alone" {
			p.Rows, err = w.alone(ctx, job)
		} else {
			meta.Run++
			job.Run = meta.Run
			o := e.Run(ctx, job)
			p.Rows, p.Calls = o.SourceRecords, o.Calls
			want := map[string]int64{"full": o.SourceRecords, "changed": o.SourceRecords / 100}[name]
			if o.Status != api.RunCompleted || o.Updated != want {
				err = fmt.Errorf("pass %s: %+v", name, o)
			}
		}
		if err != nil {
			return err
		}
		p.Seconds, p.HighMB = time.Since(start).Seconds(), highMB()
		done = append(done, p)
	}
	if err := opened.Close(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(done)
}

func (w millionWork) job(ctx context.Context, src source.Source, columns []api.Column) (Job, error) {
	credentials := destination.Credentials{"webhook_url": api.Raw(w.Destination), "api_version": api.Raw(1)}
	gate := destination.New(destination.Options{})
	connection, err := gate.Open(1, api.TypeCustomAPI, credentials)
	if err != nil {
		return Job{}, err
	}
	objects, err := connection.Objects(ctx)
	if err != nil {
		return Job{}, err
	}
	sender, err := gate.Sender(1, api.TypeCustomAPI, credentials)
	pairs := make([]string, len(millionColumns))
	for i, name := range millionColumns {
		pairs[i] = name + ":" + name
	}
	job := Job{
		Sync: 7, Config: config(api.OperationUpsert, pairs...), Source: src.(source.Reader), Object: w.Object, Columns: columns,
		Destination: sender, DestinationObject: objects[0], DestinationType: api.TypeCustomAPI, Connection: 1,
	}
	return job, err
}

// alone reads, maps and fingerprints all rows in key order, and does nothing
// with them: the lower bound of a run in one goroutine.
func (w millionWork) alone(ctx context.Context, job Job) (n int64, err error) {
	plan, problems := mapping.Compile(job.Config, job.DestinationObject, job.Columns, mapping.Env{RunID: 1, SyncID: 1, Now: time.Now(), DestinationType: job.DestinationType})
	if len(problems) > 0 {
		return 0, errors.New(problems[0].String())
	}
	rows, err := job.Source.Rows(ctx, job.Object, plan.Columns(), []string{plan.KeyColumn()})
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var record []byte
	var sum byte
	for {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		record, _, _ = plan.AppendRecord(record[:0], row)
		print := printOf(record)
		sum ^= print[0]
		n++
	}
}

// highMB is the most memory that the process has had; 0 where the system does
// not say.
func highMB() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kb, _ := strconv.ParseFloat(fields[0], 64)
	return kb / 1024
}

// serveMillion is the destination: it ends with its standard input.
func serveMillion() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, &millionDestination{})
}

var millionMemories sync.Pool

// millionDestination answers every record as stored.
type millionDestination struct{}

type millionMemory struct {
	body, out []byte
	batch     codec.Batch
}

// ServeHTTP implements http.Handler.
func (d *millionDestination) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m, _ := millionMemories.Get().(*millionMemory)
	if m == nil {
		m = &millionMemory{}
	}
	defer millionMemories.Put(m)
	m.body = slices.Grow(m.body[:0], int(r.ContentLength))[:r.ContentLength]
	_, err := io.ReadFull(r.Body, m.body)
	var call rpc.Request
	if err == nil {
		err = codec.DecodeCall(m.body, &call, &m.batch)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.out = rpc.AppendResponse(m.out[:0], call.RawID, m.answer(call.Method))
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(m.out)
}

func (m *millionMemory) answer(method string) []byte {
	switch method {
	case rpc.MethodListObjects:
		return []byte(`{"objects":[{"object_api_name":"person","label":"Person"}]}`)
	case rpc.MethodListFields:
		var fields []string
		for _, name := range millionColumns {
			typ := map[string]string{"id": rpc.TypeInteger, "level": rpc.TypeInteger, "score": rpc.TypeFloat, "active": rpc.TypeBoolean}[name]
			if typ == "" {
				typ = rpc.TypeString
			}
			fields = append(fields, fmt.Sprintf(`{"field_api_name":%q,"label":%q,"identifier":%t,"required":%[3]t,"createable":true,"updateable":true,"type":%q,"array":false}`, name, name, name == "id", typ))
		}
		return []byte(`{"fields":[` + strings.Join(fields, ",") + `]}`)
	case rpc.MethodSupportedOperations:
		return []byte(`{"operations":["upsert","insert","update","mirror"]}`)
	case rpc.MethodGetSyncSpeed:
		return []byte(`{"maximum_batch_size":1000,"maximum_parallel_batches":4,"maximum_records_per_second":100000000}`)
	}
	result := []byte(`{"record_results":[`)
	for i := range m.batch.Len() {
		if i > 0 {
			result = append(result, ',')
		}
		id, _ := m.batch.Record(i).Field("id")
		result = codec.AppendRecordResult(result, id, true, "")
	}
	return append(result, "]}"...)
}
