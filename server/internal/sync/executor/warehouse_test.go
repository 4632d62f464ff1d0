package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/postgrestest"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

var madeWarehouse sync.Once

// warehouseDatabase empties the database of these tests but for a table people.
func warehouseDatabase(t testing.TB, columns string) (credentials map[string]json.RawMessage, exec func(sql string)) {
	t.Helper()
	server := postgrestest.Start(t)
	in := func(database, sql string) {
		ctx := context.Background() // also after the test
		conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s", server.Folder, server.Port, postgrestest.User, postgrestest.Password, database))
		require.NoError(t, err)
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, sql)
		require.NoError(t, err)
	}
	madeWarehouse.Do(func() { in("postgres", "CREATE DATABASE warehouse") })
	exec = func(sql string) { in("warehouse", sql) }
	exec("DROP SCHEMA IF EXISTS destkit CASCADE; DROP TABLE IF EXISTS people; CREATE TABLE people (" + columns + ")")
	credentials = map[string]json.RawMessage{}
	for key, value := range server.Credentials() {
		credentials[key] = api.Raw(value)
	}
	credentials["database"] = api.Raw("warehouse")
	return credentials, exec
}

// fromPostgres gives a world another source.
func (w *world) fromPostgres(credentials map[string]json.RawMessage) {
	w.t.Helper()
	src, err := source.Open(w.t.Context(), "postgres", credentials, source.Options{})
	require.NoError(w.t, err)
	w.source = src
	w.t.Cleanup(func() { require.NoError(w.t, src.Close()) })
}

// advanced keeps the state of a world in its source.
func (w *world) advanced() *source.PostgresState {
	w.t.Helper()
	state, ok := source.StateIn(w.source, "test_7")
	require.True(w.t, ok)
	w.change = func(j *Job) { j.Warehouse = state }
	return state
}

// twins are two worlds with one source: with the basic engine, and the advanced.
type twins struct {
	*testing.T
	basic, advanced *world
	exec            func(sql string)
}

func newTwins(t *testing.T, columns string) *twins {
	credentials, exec := warehouseDatabase(t, columns)
	two := &twins{t, newWorld(t, setup{}), newWorld(t, setup{}), exec}
	two.basic.fromPostgres(credentials)
	two.advanced.fromPostgres(credentials)
	two.advanced.advanced()
	return two
}

func (two *twins) config(change func(c *api.SyncConfig)) {
	change(&two.basic.config)
	change(&two.advanced.config)
}

// sync makes a run with either engine: they count, send and fail alike.
func (two *twins) sync() Outcome {
	two.Helper()
	a, b := two.basic.sync(), two.advanced.sync()
	require.Equal(two, counts(a), counts(b), "%+v", b)
	require.Equal(two, [4]any{a.Status, a.Code, a.Calls, a.FullSync}, [4]any{b.Status, b.Code, b.Calls, b.FullSync}, "%+v", b)
	require.ElementsMatch(two, a.Samples, b.Samples)
	require.Equal(two, two.basic.stored(), two.advanced.stored())
	return b
}

// refuse lets the destinations refuse a record, until the result is called.
func (two *twins) refuse(identifier any) (heal func()) {
	two.Helper()
	var ends []func()
	for _, w := range []*world{two.basic, two.advanced} {
		id, err := w.sim.ArmFault(destsim.Fault{Kind: "record_failure", When: destsim.Trigger{Identifier: api.Raw(identifier)}})
		require.NoError(two, err)
		ends = append(ends, func() { require.NoError(two, w.sim.DisarmFault(id)) })
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

const (
	peopleColumns = "id integer, name text, level integer, at timestamptz"
	fillPeople    = "INSERT INTO people SELECT v, 'name ' || v, v %% 7, '2026-01-01'::timestamptz + v * interval '1 hour' FROM generate_series(%d, %d) v"
)

// TestMatrixEnginesDecideAlike: one table of histories, run with both engines.
func TestMatrixEnginesDecideAlike(t *testing.T) {
	matrixtest.Long(t)
	for i, c := range operationCases {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && i%3 != 0 {
				t.Skip("takes long under the race detector")
			}
			two := newTwins(t, peopleColumns)
			two.config(c.config)
			two.exec(fmt.Sprintf(fillPeople, 1, 60))
			heal := two.refuse(4)
			first := two.sync()
			two.exec("UPDATE people SET name = 'changed' WHERE id IN (2, 4, 30)")
			two.exec("DELETE FROM people WHERE id IN (5, 6, 50)")
			two.exec("INSERT INTO people VALUES (7, 'twice', 1, now()), (7, 'thrice', 1, now()), (100, 'new', 1, now()), (NULL, 'none', 1, now()), (NULL, 'none', 1, now()), (200, 'a', 1, now()), (200, 'b', 1, now())")
			second := two.sync()
			heal()
			two.exec("UPDATE people SET level = NULL WHERE id = 8")
			two.exec("UPDATE people SET at = '2026-03-01' WHERE id IN (9, 10)")
			heal = two.refuse(51)
			two.exec("DELETE FROM people WHERE id = 51")
			two.sync()
			heal()
			two.sync()
			two.exec("DELETE FROM people WHERE id = 7 AND name <> 'thrice'")
			two.config(func(c *api.SyncConfig) { c.Mappings = c.Mappings[:2] })
			two.sync()
			last := two.sync()
			if two.basic.config.Operation == api.OperationMirror && *two.basic.config.MirrorStrategy != api.MirrorNulls {
				two.exec("DELETE FROM people WHERE id IS NOT NULL")
				require.Equal(t, CodeEmptySource, two.sync().Code)
				two.config(func(c *api.SyncConfig) {
					c.AdvancedConfiguration = map[string]json.RawMessage{"allow_empty_source": api.Raw(true)}
				})
				two.sync()
				require.Empty(t, two.advanced.stored())
			}
			require.Equal(t, c.updates, [3]int64{first.SourceUpdates, second.SourceUpdates, last.SourceUpdates})
		})
	}
}

// operationCases are the operations with the records to write in the first,
// second and last run.
var operationCases = []struct {
	name    string
	config  func(*api.SyncConfig)
	updates [3]int64
}{
	{"upsert", func(*api.SyncConfig) {}, [3]int64{60, 4, 0}},
	{"insert", func(c *api.SyncConfig) { c.Operation = api.OperationInsert }, [3]int64{60, 2, 0}},
	// Nothing is there to be updated, so everything is refused in every run.
	{"update", func(c *api.SyncConfig) { c.Operation = api.OperationUpdate }, [3]int64{60, 57, 57}},
	{"mirror", mirror(api.MirrorDeletes), [3]int64{60, 4, 0}},
	{"mirror nulls", mirror(api.MirrorNulls), [3]int64{60, 4, 0}},
	{"mirror swap", mirror(api.MirrorSwap), [3]int64{60, 57, 57}},
	{"mirror whole deletes", func(c *api.SyncConfig) {
		mirror(api.MirrorDeletes)(c)
		c.AdvancedConfiguration = map[string]json.RawMessage{"delete_records": api.Raw("full")}
	}, [3]int64{60, 4, 0}},
	{"append", func(c *api.SyncConfig) { c.Operation = api.OperationAppend }, [3]int64{60, 2, 0}},
	{"append skip", func(c *api.SyncConfig) {
		c.Operation, c.HistoricalSyncOperation = api.OperationAppend, api.Ptr(api.HistorySkip)
	}, [3]int64{0, 1, 0}},
	{"append by mark", func(c *api.SyncConfig) {
		c.Operation, c.HighWaterMarkAttribute = api.OperationAppend, api.Ptr("at")
	}, [3]int64{59, 2, 2}}, // two events of keys that are there, which the destination refuses
}

func mirror(strategy string) func(*api.SyncConfig) {
	return func(c *api.SyncConfig) { c.Operation, c.MirrorStrategy = api.OperationMirror, api.Ptr(strategy) }
}

// TestEnginesReadAlike: identifiers of every kind, also those that the warehouse
// cannot compute, and records that depend on more than their row.
func TestEnginesReadAlike(t *testing.T) {
	matrixtest.Long(t)
	liquid := func(field, text string) func(*api.SyncConfig) {
		return func(c *api.SyncConfig) {
			for i := range c.Mappings {
				if c.Mappings[i].To == field {
					c.Mappings[i].From = api.MappingFrom{Type: api.FromLiquid, Data: api.Raw(api.Template{Text: text})}
				}
			}
		}
	}
	for name, c := range map[string]struct {
		columns, value string // of the identifier; v is a number
		field          string
		config         func(*api.SyncConfig)
		query          string
	}{
		"integer":            {columns: "id integer", value: "v", field: "id"},
		"bigint":             {columns: "id bigint", value: "v - 9007199254740999", field: "id"},
		"integer as text":    {columns: "id smallint", value: "v", field: "code"},
		"text":               {columns: "id text", value: `'k' || v || E' "\\\n\u0001\u00e9' || chr(127)`, field: "code"},
		"text by a locale":   {columns: `id text COLLATE "und-x-icu"`, value: "CASE WHEN v % 2 = 0 THEN 'A' ELSE 'a' END || v", field: "code"},
		"uuid":               {columns: "id uuid", value: "md5(v::text)::uuid", field: "code"},
		"domain":             {columns: "id information_schema.cardinal_number", value: "v", field: "id"},
		"merged: text":       {columns: "id text", value: "v", field: "id"},
		"merged: char":       {columns: "id char(9)", value: "v", field: "code"},
		"merged: decimal":    {columns: "id numeric", value: "v", field: "id"},
		"merged: template":   {columns: "id integer", value: "v", field: "code", config: liquid("code", "{{ record['id'] | prepend: 'k' }}")},
		"merged: the time":   {columns: "id integer", value: "v", field: "id", config: liquid("name", "{{ record['name'] }}{{ 'now' | date: '%Y' }}")},
		"template":           {columns: "id integer", value: "v", field: "id", config: liquid("name", "{{ record['name'] | slice: 0, 3 }}")},
		"query":              {columns: "id integer", value: "v", field: "id", query: "SELECT id, upper(name) AS name, level FROM people WHERE level < 6;"},
		"query that changes": {columns: "id integer", value: "v", field: "id", query: "SELECT id, name, level, random() FROM people"},
	} {
		t.Run(name, func(t *testing.T) {
			two := newTwins(t, c.columns+", name text, level integer")
			two.config(func(config *api.SyncConfig) {
				fields := config.Mappings
				fields[0].To = c.field
				config.Operation = api.OperationMirror
				if c.config != nil {
					c.config(config)
				}
			})
			if c.query != "" {
				for _, w := range []*world{two.basic, two.advanced} {
					inner := w.change
					w.change = func(j *Job) {
						if inner != nil {
							inner(j)
						}
						j.Object = source.Object{Query: c.query}
					}
				}
			}
			two.exec("INSERT INTO people SELECT " + c.value + ", 'name ' || v, v % 7 FROM generate_series(1, 80) v")
			n := two.sync()
			require.Positive(t, n.Updated)
			require.Zero(t, two.sync().Processed)
			two.exec("UPDATE people SET name = 'other' || name WHERE level = 2")
			two.exec("DELETE FROM people WHERE level = 3")
			o := two.sync()
			require.Positive(t, o.SourceUpdates)
			require.Positive(t, o.SourceDeletes)
			require.Zero(t, two.sync().Processed)
		})
	}
}

// TestAcknowledgementsWaitForTheWarehouse: a warehouse that cannot be written
// ends the run and loses nothing; the next run applies what it missed.
func TestAcknowledgementsWaitForTheWarehouse(t *testing.T) {
	credentials, exec := warehouseDatabase(t, peopleColumns)
	w := newWorld(t, setup{})
	w.fromPostgres(credentials)
	state := w.advanced()
	w.config.Operation = api.OperationMirror
	exec(fmt.Sprintf(fillPeople, 1, 30))
	require.Equal(t, api.RunCompleted, w.sync().Status)
	exec("DELETE FROM people WHERE id <= 3")
	exec("UPDATE people SET name = 'changed' WHERE id = 10")
	exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the disk is full'; END $$;
		CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON destkit.syncs FOR EACH ROW EXECUTE FUNCTION refuse()`)
	o := w.sync()
	require.Equal(t, [3]string{api.RunFailed, CodeState}, [3]string{o.Status, o.Code})
	require.Contains(t, o.Message, "the disk is full")
	require.True(t, o.Transient)
	require.Equal(t, [8]int64{27, 1, 3, 0, 4, 4, 0, 0}, counts(o))
	require.Len(t, wholeOf(t, state), 30, "nothing of it is in the warehouse")
	require.Equal(t, CodeState, w.sync().Code)
	exec("DROP TRIGGER refuse ON destkit.syncs")
	o = w.sync()
	require.Equal(t, [8]int64{27}, counts(o), "what was acknowledged is not sent again: %+v", o)
	require.False(t, o.FullSync)
	require.Len(t, wholeOf(t, state), 27)
	require.Len(t, w.stored(), 27)
}

// TestScanStateBeforeItIsApplied: what the ledger has and the warehouse does not
// counts, for whoever looks at the state from outside.
func TestScanStateBeforeItIsApplied(t *testing.T) {
	credentials, exec := warehouseDatabase(t, peopleColumns)
	w := newWorld(t, setup{})
	w.fromPostgres(credentials)
	state := w.advanced()
	w.config.Operation = api.OperationMirror
	scan := func() (all []string) {
		entries, err := ScanState(t.Context(), w.ledger.Sync(7), state)
		require.NoError(t, err)
		defer entries.Close()
		for {
			e, err := entries.Next()
			if errors.Is(err, io.EOF) {
				return all
			}
			require.NoError(t, err)
			all = append(all, fmt.Sprint(string(e.Key), " ", e.Known, " ", e.Verdict, " ", e.Deleted))
		}
	}
	require.Empty(t, scan(), "nothing was ever made")
	exec(fmt.Sprintf(fillPeople, 1, 5))
	w.arm(destsim.Fault{Kind: "record_failure", When: destsim.Trigger{Identifier: api.Raw(4)}})
	require.EqualValues(t, 1, w.sync().Failed)
	first := []string{"1 true succeeded false", "2 true succeeded false", "3 true succeeded false", "4 false rejected false", "5 true succeeded false"}
	require.Equal(t, first, scan())
	exec("ALTER TABLE destkit.syncs ADD CHECK (false) NOT VALID; DELETE FROM people WHERE id IN (1, 4); UPDATE people SET level = 9 WHERE id = 3; INSERT INTO people VALUES (0)")
	require.Equal(t, CodeState, w.sync().Code)
	want := append([]string{"0 true succeeded false"}, first[1:3]...)
	want = append(want, "4 false rejected true", first[4])
	require.Equal(t, want, scan())
	require.Len(t, wholeOf(t, state), 5)
}

// wholeOf are the entries of a state.
func wholeOf(t *testing.T, state Warehouse) (all []ledger.Entry) {
	t.Helper()
	rows, err := state.Read(t.Context(), nil)
	require.NoError(t, err)
	defer rows.Close()
	for {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		row.Entry.Key = slices.Clone(row.Entry.Key)
		all = append(all, entryOf(&row.Entry))
	}
}

// TestWarehouseInDoubt: whatever is wrong with the state in the warehouse,
// everything is sent again, once, and the run says why (spec 7.2.5).
func TestWarehouseInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		sql    string
		change func(*world)
		reason string
		merged bool // nothing is left over: the state was kept
	}{
		"the schema is gone":     {sql: "DROP SCHEMA destkit CASCADE", reason: "the state in the warehouse is gone"},
		"entries are gone":       {sql: "DELETE FROM destkit.state_test_7 WHERE key = '5'", reason: "the state in the warehouse has 29 of 30 entries", merged: true},
		"a column is gone":       {sql: "ALTER TABLE destkit.state_test_7 DROP COLUMN key", reason: "the table of the state in the warehouse was changed"},
		"an older state":         {sql: "UPDATE destkit.syncs SET stamp = 'older'", reason: "the state in the warehouse is not the one that this service left", merged: true},
		"the ledger is gone":     {change: func(w *world) { require.NoError(w.t, w.ledger.Sync(7).Forget()) }, reason: "the service does not know the state in the warehouse", merged: true},
		"the type of a column":   {sql: "ALTER TABLE people ALTER COLUMN level TYPE bigint", reason: "the mappings, the types of the columns or the version of the warehouse have changed", merged: true},
		"another identifier":     {change: func(w *world) { w.config.Mappings[0].To = "code" }, reason: "the identifier or the destination object has changed"},
		"back to the basic one":  {change: func(w *world) { w.change = nil }, reason: engineChanged},
		"the URL of destination": {change: func(w *world) { w.full("the URL of the destination has changed") }, reason: "the URL of the destination has changed", merged: true},
	} {
		t.Run(name, func(t *testing.T) {
			credentials, exec := warehouseDatabase(t, peopleColumns)
			w := newWorld(t, setup{})
			w.fromPostgres(credentials)
			w.advanced()
			w.config.Operation = api.OperationMirror
			exec(fmt.Sprintf(fillPeople, 1, 30))
			require.False(t, w.sync().FullSync)
			require.Zero(t, w.sync().Processed)
			if c.sql != "" {
				exec(c.sql)
			} else {
				c.change(w)
			}
			exec("DELETE FROM people WHERE id = 1")
			o := w.sync()
			require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
			require.True(t, o.FullSync)
			require.Equal(t, c.reason, o.FullReason)
			require.EqualValues(t, 29, o.SourceUpdates)
			require.Equal(t, c.merged, o.SourceDeletes == 1, "%+v", o)
			if inner := w.change; inner != nil {
				w.change = func(j *Job) { inner(j); j.Full = false }
			}
			o = w.sync()
			require.False(t, o.FullSync)
			require.Zero(t, o.Processed)
		})
	}
}

// full forces full runs.
func (w *world) full(reason string) {
	inner := w.change
	w.change = func(j *Job) {
		inner(j)
		j.Full, j.FullReason = true, reason
	}
}

// TestFromTheLedgerToTheWarehouse: what the basic engine knows goes with the
// sync, so that a mirror still removes what it sent.
func TestFromTheLedgerToTheWarehouse(t *testing.T) {
	credentials, exec := warehouseDatabase(t, peopleColumns)
	w := newWorld(t, setup{})
	w.fromPostgres(credentials)
	w.config.Operation = api.OperationMirror
	exec(fmt.Sprintf(fillPeople, 1, 30))
	require.Equal(t, api.RunCompleted, w.sync().Status)
	exec("DELETE FROM people WHERE id = 1")
	state := w.advanced()
	o := w.sync()
	require.Equal(t, [8]int64{29, 29, 1, 0, 30, 30, 0, 0}, counts(o), "%+v", o)
	require.Equal(t, engineChanged, o.FullReason)
	require.Zero(t, w.sync().Processed)
	require.Len(t, wholeOf(t, state), 29)
	require.Len(t, w.stored(), 29)
}

// TestReadOnlyWarehouse is refused before anything is sent.
func TestReadOnlyWarehouse(t *testing.T) {
	credentials, exec := warehouseDatabase(t, peopleColumns)
	exec("CREATE ROLE observer LOGIN PASSWORD '" + postgrestest.Password + "'; GRANT SELECT ON people TO observer")
	t.Cleanup(func() { exec("DROP OWNED BY observer; DROP ROLE observer") })
	exec(fmt.Sprintf(fillPeople, 1, 3))
	credentials["username"] = api.Raw("observer")
	w := newWorld(t, setup{})
	w.fromPostgres(credentials)
	w.advanced()
	o := w.sync()
	require.Equal(t, [2]string{api.RunFailed, CodeConfiguration}, [2]string{o.Status, o.Code})
	require.Contains(t, o.Message, "CREATE SCHEMA destkit AUTHORIZATION")
	require.NotContains(t, strings.ToLower(o.Message+o.Detail), postgrestest.Password)
	require.Zero(t, o.Calls)
}
