package source

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/api"
)

// credentials makes credentials from values.
func credentials(values map[string]any) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for key, v := range values {
		out[key] = api.Raw(v)
	}
	return out
}

// open opens a source that must open.
func open(t testing.TB, typ string, values map[string]any, o Options) Source {
	t.Helper()
	src, err := Open(t.Context(), typ, credentials(values), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, src.Close()) })
	return src
}

// readAll reads rows as one JSON array each.
func readAll(t testing.TB, src Source, object Object, columns, order []string) []string {
	t.Helper()
	rows, err := src.(Reader).Rows(t.Context(), object, columns, order)
	require.NoError(t, err)
	return testkit.Rows(t, rows)
}

// short writes columns as "name type kind".
func short(columns []api.Column) []string {
	out := []string{}
	for _, c := range columns {
		out = append(out, c.Name+" "+c.Type+" "+string(c.Kind))
	}
	return out
}

// names writes tables as catalog.schema.name.
func names(tables []api.Table) []string {
	out := []string{}
	for _, t := range tables {
		out = append(out, t.TableCatalog+"."+t.TableSchema+"."+t.TableName)
	}
	return out
}

// validCredentials are credentials of each type that pass the check.
func validCredentials() map[string]map[string]any {
	return map[string]map[string]any{
		"sqlite":    {"path": "/data/crm.sqlite"},
		"postgres":  {"host": "db.example.com", "port": 5433, "database": "crm", "username": "sync", "password": "pg-secret", "sslmode": "require"},
		"csv":       {"path": "/data/users.csv"},
		"jsonl":     {"path": "/data/users.jsonl"},
		"parquet":   {"path": "/data/users.parquet"},
		"generator": {"rows": 10, "seed": 3, "columns": []any{map[string]any{"name": "id", "type": "id"}}},
		"topic_log": {},
		"snowflake": {"account": "xy12345.eu-west-1", "warehouse": "WH", "database": "DEMO", "user": "SYNC", "password": "snow-secret"},
		"big_query": {"project_id": "my-project-123", "service_account_key": map[string]any{
			"type": "service_account", "project_id": "my-project-123", "private_key": "-----BEGIN\nbig-secret", "client_email": "a@example.com"}},
		"materialize": {"host": "mz.example.com", "port": 6875, "database": "materialize", "user": "sync", "password": "mz-secret"},
	}
}

func TestOpenRefuses(t *testing.T) {
	_, err := Open(t.Context(), "oracle", nil, Options{})
	require.ErrorIs(t, err, ErrType)
	require.EqualError(t, err, `open source "oracle": no such type of source`)

	_, err = Open(t.Context(), "sqlite", nil, Options{})
	var wrong *CredentialsError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, []api.Problem{{Field: "credentials.path", Message: "is required"}}, wrong.Problems)
	require.EqualError(t, err, "check credentials: credentials.path: is required")
}

func TestExecuteOnlyOnEmulated(t *testing.T) {
	for typ, values := range map[string]map[string]any{
		"generator": {"rows": 1},
		"sqlite":    {"path": testkit.WriteFile(t, "a.sqlite", "")},
		"csv":       {"path": testkit.WriteFile(t, "a.csv", "a\n")},
		"topic_log": {},
	} {
		require.ErrorIs(t, Execute(t.Context(), open(t, typ, values, Options{}), "DELETE FROM users"), ErrReadOnly, typ)
	}
}

func TestQueriesOnlyOfSQL(t *testing.T) {
	for typ, values := range map[string]map[string]any{
		"generator": {"rows": 1},
		"csv":       {"path": testkit.WriteFile(t, "a.csv", "a\n")},
		"topic_log": {},
	} {
		d, _ := Type(typ)
		require.False(t, d.SQL, typ)
		_, err := open(t, typ, values, Options{}).Columns(t.Context(), Object{Query: "SELECT 1"})
		var q *QueryError
		require.ErrorAs(t, err, &q, typ)
		require.Contains(t, q.Message, "takes no queries")
	}
}

// TestCancelled: every source stops where its caller does.
func TestCancelled(t *testing.T) {
	lines := "a\n" + strings.Repeat("1\n", 5000)
	for typ, values := range map[string]map[string]any{
		"generator": {"rows": 1_000_000},
		"csv":       {"path": testkit.WriteFile(t, "a.csv", lines)},
		"jsonl":     {"path": testkit.WriteFile(t, "a.jsonl", strings.Repeat(`{"a":1}`+"\n", 5000))},
		"sqlite":    {"path": database(t, "CREATE TABLE a (a); INSERT INTO a SELECT value FROM generate_series(1, 5000)")},
	} {
		t.Run(typ, func(t *testing.T) {
			src := open(t, typ, values, Options{})
			tables, err := src.Tables(t.Context())
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			rows, err := src.(Reader).Rows(ctx, Object{Name: tables[0].TableName}, nil, nil)
			require.NoError(t, err)
			defer rows.Close()
			_, err = rows.Next()
			require.NoError(t, err)
			cancel()
			for err == nil {
				_, err = rows.Next()
			}
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}
