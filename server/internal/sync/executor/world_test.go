package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// world is a SQLite table, a simulated destination over HTTP, and an executor
// between them.
type world struct {
	t        testing.TB
	sim      *destsim.Sim
	clock    *clock.Clock
	ledger   *ledger.Ledger
	executor *Executor
	gate     *destination.Gate
	file     string
	conn     *sqlite.Conn
	source   source.Source
	sender   destination.Sender
	object   *api.DestinationObject
	config   api.SyncConfig
	run      int64
	change   func(*Job)
}

// setup changes what a world is made of; nil fields take what suits most tests.
type setup struct {
	sim     destsim.Config
	options Options
	gate    destination.Options
	table   string // the columns; "" is id, name, level
}

const person = "person"

// people is an object with a field for each type that the tests need.
func people() destsim.Config {
	return destsim.Config{
		Speed: rpc.Speed{MaximumBatchSize: 10, MaximumParallelBatches: 4, MaximumRecordsPerSecond: 1_000_000},
		Objects: []destsim.ObjectConfig{{
			Name: person, Label: "Person", Operations: []string{rpc.OperationUpsert, rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationMirror},
			Fields: []destsim.FieldConfig{
				{Name: "id", Type: rpc.TypeInteger, Identifier: true},
				{Name: "code", Type: rpc.TypeString, Identifier: true},
				{Name: "name", Type: rpc.TypeString},
				{Name: "level", Type: rpc.TypeInteger},
			},
		}},
	}
}

func newWorld(t testing.TB, s setup) *world {
	t.Helper()
	if s.sim.Objects == nil {
		speed, rest := s.sim.Speed, s.sim
		s.sim = people()
		s.sim.EnforceLimits, s.sim.SkipConvention = rest.EnforceLimits, rest.SkipConvention
		if speed != (rpc.Speed{}) {
			s.sim.Speed = speed
		}
	}
	w := &world{t: t}
	var err error
	w.sim, err = destsim.New(s.sim)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.sim.Close()) })
	server := httptest.NewServer(w.sim)
	t.Cleanup(server.Close)
	w.clock = clock.New(nil)
	t.Cleanup(w.clock.Close)
	if s.options.Clock != nil {
		w.clock = s.options.Clock
	}
	if s.options.Ledger == nil {
		s.options.Ledger, err = ledger.Open(ledger.Options{})
		require.NoError(t, err)
	}
	s.options.Clock, w.ledger = w.clock, s.options.Ledger
	if s.options.Backoff.First == 0 {
		s.options.Backoff.First = time.Millisecond
	}
	s.options.Scratch = t.TempDir()
	w.executor = New(s.options)
	w.gate = destination.New(s.gate)
	t.Cleanup(func() { require.NoError(t, w.gate.Close()) })
	credentials := destination.Credentials{"webhook_url": api.Raw(server.URL), "api_version": api.Raw(1)}
	connection, err := w.gate.Open(1, api.TypeCustomAPI, credentials)
	require.NoError(t, err)
	objects, err := connection.Objects(t.Context())
	require.NoError(t, err)
	w.object = objects[0]
	w.sender, err = w.gate.Sender(1, api.TypeCustomAPI, credentials)
	require.NoError(t, err)
	if s.table == "" {
		s.table = "id INTEGER, name TEXT, level INTEGER"
	}
	w.openSource(s.table)
	w.config = config(api.OperationUpsert, "id:id", "name:name", "level:level")
	return w
}

func (w *world) openSource(columns string) {
	w.t.Helper()
	w.file = filepath.Join(w.t.TempDir(), "source.sqlite")
	var err error
	w.conn, err = sqlite.OpenConn(w.file, sqlite.OpenReadWrite|sqlite.OpenCreate)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, w.conn.Close()) })
	w.sql("PRAGMA synchronous = OFF")
	w.sql("CREATE TABLE people (" + columns + ")")
	w.source, err = source.Open(w.t.Context(), "sqlite", map[string]json.RawMessage{"path": api.Raw(w.file)}, source.Options{})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, w.source.Close()) })
}

func (w *world) sql(text string, args ...any) {
	w.t.Helper()
	require.NoError(w.t, sqlitex.ExecuteTransient(w.conn, text, &sqlitex.ExecOptions{Args: args}))
}

// fill adds n rows from id on.
func (w *world) fill(from, n int) {
	w.t.Helper()
	w.sql("WITH RECURSIVE n(v) AS (SELECT ? UNION ALL SELECT v + 1 FROM n WHERE v < ?) INSERT INTO people (id, name, level) SELECT v, 'name ' || v, v % 7 FROM n", from, from+n-1)
}

// config maps "column:field" pairs, the first of which is the identifier.
func config(operation string, pairs ...string) api.SyncConfig {
	c := api.SyncConfig{Operation: operation, DestinationAttributes: api.DestinationAttributes{ConnectionID: 1, Object: person}}
	for i, pair := range pairs {
		column, field, _ := strings.Cut(pair, ":")
		c.Mappings = append(c.Mappings, api.Mapping{
			From: api.MappingFrom{Type: api.FromColumn, Data: api.Raw(column)}, To: field, IsPrimaryIdentifier: i == 0,
		})
	}
	return c
}

func (w *world) job() Job {
	w.t.Helper()
	object := source.Object{Name: "people"}
	columns, err := w.source.Columns(w.t.Context(), object)
	require.NoError(w.t, err)
	job := Job{
		Run: w.run, Sync: 7, Config: w.config, Source: w.source.(source.Reader), Object: object, Columns: columns,
		Destination: w.sender, DestinationObject: w.object, DestinationType: api.TypeCustomAPI, Connection: 1,
	}
	if w.change != nil {
		w.change(&job)
	}
	return job
}

// sync makes the next run.
func (w *world) sync() Outcome {
	w.t.Helper()
	w.run++
	if _, measured := w.t.(*testing.B); measured || matrixtest.Whole() { // the cells of the matrix are about failures
		return w.again(context.Background())
	}
	dry, err := w.executor.DryRun(context.Background(), w.job(), 3)
	o := w.again(context.Background())
	requireForeseen(w.t, w.executor, dry, err, o)
	return o
}

// again makes a run of the same number.
func (w *world) again(ctx context.Context) Outcome {
	w.t.Helper()
	o := w.executor.Run(ctx, w.job())
	if o.Status == api.RunCompleted {
		require.Equal(w.t, o.SourceUpdates+o.SourceDeletes, o.Processed, "%+v", o)
	}
	require.Equal(w.t, o.Updated+o.Failed, o.Processed, "%+v", o)
	return o
}

// stored is what the destination holds, as "id name level" by the identifier.
func (w *world) stored() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for after := int64(0); ; {
		list, _, err := w.sim.Records(w.object.FullName, after, 10_000)
		require.NoError(w.t, err)
		for _, record := range list {
			var fields map[string]json.RawMessage
			require.NoError(w.t, json.Unmarshal(record.Fields, &fields))
			id := string(fields[w.identifier()])
			require.NotContains(w.t, out, id, "stored twice")
			out[id] = fmt.Sprintf("%s %s", fields["name"], fields["level"])
			after = record.ID
		}
		if len(list) == 0 {
			return out
		}
	}
}

func (w *world) identifier() string {
	for _, m := range w.config.Mappings {
		if m.IsPrimaryIdentifier {
			return m.To
		}
	}
	return ""
}

// rows is what the source holds, in the same form.
func (w *world) rows() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	require.NoError(w.t, sqlitex.ExecuteTransient(w.conn, "SELECT id, json_quote(name), coalesce(level, 'null') FROM people", &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error {
			out[stmt.ColumnText(0)] = stmt.ColumnText(1) + " " + stmt.ColumnText(2)
			return nil
		},
	}))
	return out
}

func (w *world) arm(f destsim.Fault) {
	w.t.Helper()
	_, err := w.sim.ArmFault(f)
	require.NoError(w.t, err)
}

// counts are the counters in the order of spec 2.9.
func counts(o Outcome) [8]int64 {
	c := o.Counters
	return [8]int64{c.SourceRecords, c.SourceUpdates, c.SourceDeletes, c.SourceInvalids, c.Processed, c.Updated, c.Failed, c.Invalid}
}
