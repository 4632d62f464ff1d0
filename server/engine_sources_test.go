//go:build unix

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/api"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunWithPostgres(m)) }

// customer is a row of the source of these tests.
type customer struct {
	Email string `parquet:"email"`
	Name  string `parquet:"name"`
}

// origin is a real source: its content can be replaced.
type origin struct {
	connection, object map[string]any
	put                func(rows []customer)
}

// postgresOrigin is a table in its own database.
func postgresOrigin(w *world) (o origin, exec func(sql string)) {
	t := w.t
	server := testkit.StartPostgres(t)
	ctx := context.Background() // also after the test
	connect := func(database string) *pgx.Conn {
		conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s", server.Folder, server.Port, testkit.PostgresUser, testkit.PostgresPassword, database))
		require.NoError(t, err)
		return conn
	}
	run := func(database, sql string) {
		conn := connect(database)
		defer conn.Close(ctx)
		must(conn.Exec(ctx, sql))(t)
	}
	run("postgres", "DROP DATABASE IF EXISTS shop WITH (FORCE)")
	run("postgres", "CREATE DATABASE shop")
	exec = func(sql string) { run("shop", sql) }
	exec("CREATE TABLE customers (email text, name text)")
	credentials := server.Credentials()
	credentials["database"] = "shop"
	o.connection = map[string]any{"name": "Shop", "type": "postgres", "credentials": credentials}
	o.object = map[string]any{"type": "table", "table_catalog": "shop", "table_schema": "public", "table_name": "customers"}
	o.put = func(rows []customer) {
		exec("TRUNCATE customers")
		conn := connect("shop")
		defer conn.Close(ctx)
		must(conn.CopyFrom(ctx, pgx.Identifier{"customers"}, []string{"email", "name"}, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
			return []any{rows[i].Email, rows[i].Name}, nil
		})))(t)
	}
	return o, exec
}

// parquetOrigin is a file, which is rewritten.
func parquetOrigin(w *world) (o origin) {
	t := w.t
	file := filepath.Join(w.t.(interface{ TempDir() string }).TempDir(), "customers.parquet")
	o.put = func(rows []customer) { require.NoError(t, parquet.WriteFile(file, rows)) }
	o.put([]customer{{"x", "x"}})
	o.connection = map[string]any{"name": "Shop", "type": "parquet", "credentials": map[string]any{"path": file}}
	o.object = map[string]any{"type": "table", "table_catalog": "main", "table_schema": "main", "table_name": "customers"}
	return o
}

// customers are so many rows from a number on.
func customers(from, n int, suffix string) (rows []customer) {
	for i := range n {
		rows = append(rows, customer{fmt.Sprintf("user%05d@example.com", from+i), fmt.Sprintf("User %d%s", from+i, suffix)})
	}
	return rows
}

// stored are all people of the destination.
func (w *world) stored() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for after := int64(0); ; {
		list, _ := w.records("person", after)
		for _, record := range list {
			var fields map[string]any
			require.NoError(w.t, json.Unmarshal(record.Fields, &fields))
			email := fields["email"].(string)
			_, twice := out[email]
			require.False(w.t, twice, email)
			out[email] = fields["last_name"].(string)
			after = record.ID
		}
		if len(list) == 0 {
			return out
		}
	}
}

func expected(rows ...[]customer) map[string]string {
	out := map[string]string{}
	for _, list := range rows {
		for _, c := range list {
			out[c.Email] = c.Name
		}
	}
	return out
}

// TestMainJobFromEachSource: a first run sends all, a second nothing, a third
// the changes, and a mirror removes missing rows, from every kind of source
// (spec 1, 2.9).
func TestMainJobFromEachSource(t *testing.T) {
	const n = 5000
	for name, open := range map[string]func(*world) origin{
		"postgres": func(w *world) origin { o, _ := postgresOrigin(w); return o },
		"parquet":  parquetOrigin,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := open(w)
			id := w.syncFrom(o, nil)
			o.put(customers(0, n, ""))
			first := w.runs(id).ended("completed")
			require.Equal(t, [7]int64{n, n, 0, 0, n, n, 0}, first.counts())
			require.Equal(t, expected(customers(0, n, "")), w.stored())
			require.Equal(t, [7]int64{n}, w.runs(id).counts(), "nothing has changed")

			changed, more := customers(70, 30, " changed"), customers(n, 20, "")
			o.put(append(append(append(customers(0, 70, ""), changed...), customers(100, n-100, "")...), more...))
			require.Equal(t, [7]int64{n + 20, 50, 0, 0, 50, 50, 0}, w.runs(id).counts())
			require.Equal(t, expected(customers(0, n, ""), changed, more), w.stored())

			mirror := w.syncFrom(o, map[string]any{"operation": "mirror"})
			require.Equal(t, [7]int64{n + 20, n + 20, 0, 0, n + 20, n + 20, 0}, w.runs(mirror).counts())
			o.put(append(customers(0, n-40, ""), customer{"new@example.com", "New"}))
			last := w.runs(mirror).ended("completed")
			require.Equal(t, [7]int64{n - 39, 31, 60, 0, 91, 91, 0}, last.counts())
			require.Equal(t, expected(customers(0, n-40, ""), []customer{{"new@example.com", "New"}}), w.stored())
			require.Equal(t, false, last.at("data.full_sync"))
			report := flawless(t, (&syncWorld{world: w}).audits(mirror, nil))
			require.EqualValues(t, n-39, report.Checked.Destination)
		})
	}
}

// syncFrom makes a source and a sync of its table.
func (w *world) syncFrom(o origin, changes map[string]any) int64 {
	w.t.Helper()
	created := w.do("POST", "/sources", w.key, connection(o.connection)).want(201)
	require.Equal(w.t, true, created.at("data.last_test_succeeded"), created.header)
	body := syncBody(created.id("data.id"), w.newDestination())
	body["source_attributes"].(map[string]any)["object"] = o.object
	maps.Copy(body, changes)
	return w.do("POST", "/syncs", w.key, body).want(200).id("data.sync_id")
}

// TestEnginesKeepStateInTheService: whatever the engine and the retention of a source, the
// ledger of the service has the state of its syncs, and nothing is written into the source.
func TestEnginesKeepStateInTheService(t *testing.T) {
	w := newWorld(t)
	o, exec := postgresOrigin(w)
	o.connection["sync_engine"], o.connection["warehouse_writeback_retention_in_days"] = api.EngineAdvanced, 14
	id := w.syncFrom(o, nil)
	shown := w.do("GET", "/sources", w.key, nil).want(200)
	shown.is("data.0.sync_engine", api.EngineAdvanced, "data.0.warehouse_writeback_retention_in_days", 14)
	o.put(customers(0, 3, ""))
	require.Equal(t, [7]int64{3, 3, 0, 0, 3, 3, 0}, w.runs(id).counts())
	meta := must(w.s.ledger.Sync(id).Meta())(t)
	require.EqualValues(t, 3, meta.Rows)
	exec("DO $$ BEGIN ASSERT (SELECT count(*) FROM pg_class WHERE relkind = 'r' AND oid >= 16384) = 1; END $$")
}
