package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/api"
)

// steps writes results as "step status message".
func steps(r api.TestResults) []string {
	var out []string
	for _, s := range r.Steps {
		line := s.Step + " " + s.Status
		if s.Error != nil {
			line += " " + s.Error.Message
		}
		out = append(out, line)
	}
	return out
}

func TestProbe(t *testing.T) {
	valid := validCredentials()
	with := func(typ, key string, v any) map[string]any { valid[typ][key] = v; return valid[typ] }
	wrongKey := map[string]any{"type": "service_account", "project_id": "p", "private_key": "wrong", "client_email": "e"}
	notDB := testkit.WriteFile(t, "a.sqlite", "this is a text and by far no database")
	missing := t.TempDir() + "/none.csv"
	for _, c := range []struct {
		name, typ string
		values    map[string]any
		want      []string
	}{
		{"generator", "generator", valid["generator"], []string{"credentials passed", "connect passed", "read passed"}},
		{"topics", "topic_log", nil, []string{"credentials passed", "connect passed", "read passed"}},
		{"csv", "csv", map[string]any{"path": testkit.WriteFile(t, "a.csv", "a\n1\n")}, []string{"credentials passed", "connect passed", "read passed"}},
		{"missing file", "csv", map[string]any{"path": missing}, []string{"credentials passed", "connect failed open " + missing + ": there is no such file", "read skipped"}},
		{"empty csv", "csv", map[string]any{"path": testkit.WriteFile(t, "e.csv", "")}, nil},
		{"not a database", "sqlite", map[string]any{"path": notDB}, []string{"credentials passed", "connect failed read " + notDB + ": the file is not a SQLite database", "read skipped"}},
		{"credentials", "sqlite", map[string]any{"pat": "x"}, []string{"credentials failed credentials.path: is required; credentials.pat: is not a field of sqlite; its fields are path", "connect skipped", "read skipped"}},
		{"type", "oracle", nil, []string{"credentials failed source type: is not a type of source; use one of sqlite, postgres, csv, jsonl, parquet, generator, topic_log, azure_synapse, big_query, databricks, materialize, mysql, redshift, snowflake, sql_server"}},
		{"snowflake", "snowflake", valid["snowflake"], []string{"credentials passed", "connect passed", "authenticate passed", "read passed"}},
		{"wrong password", "materialize", with("materialize", "password", "wrong"), []string{"credentials passed", "connect passed", "authenticate failed log in to materialize: password is refused", "read skipped"}},
		{"wrong key", "big_query", with("big_query", "service_account_key", wrongKey), []string{"credentials passed", "connect passed", "authenticate failed log in to big_query: service_account_key is refused", "read skipped"}},
		{"no host", "postgres", with("postgres", "host", "nowhere.invalid"), []string{"credentials passed", "address failed find address of nowhere.invalid: no such host", "connect skipped", "authenticate skipped", "read skipped"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := steps(BuiltIn().Test(t.Context(), c.typ, credentials(c.values), Options{Key: t.Name()}))
			if c.want == nil {
				require.Contains(t, fmt.Sprint(got), "read failed")
				require.Contains(t, fmt.Sprint(got), "the file is empty")
				return
			}
			require.Equal(t, c.want, got)
		})
	}
	_, err := Open(t.Context(), "materialize", credentials(with("materialize", "password", "wrong")), Options{})
	require.EqualError(t, err, "open materialize source: log in to materialize: password is refused")
}

func TestDetails(t *testing.T) {
	valid := validCredentials()
	require.Equal(t, map[string]any{"host": "db.example.com", "port": int64(5433), "database": "crm", "username": "sync", "sslmode": "require"},
		Details("postgres", credentials(valid["postgres"])))
	require.Equal(t, map[string]any{"project_id": "my-project-123", "location": "US", "service_account": "a@example.com", "location_editable": true}, Details("big_query", credentials(valid["big_query"])))
	require.Equal(t, map[string]any{}, Details("topic_log", nil))
	require.Equal(t, map[string]any{}, Details("oracle", nil))
	got := Details("generator", map[string]json.RawMessage{"rows": json.RawMessage("1"), "seed": json.RawMessage("1152921504606846977"), "columns": json.RawMessage("null"), "x": json.RawMessage("1")})
	require.Equal(t, map[string]any{"rows": int64(1), "seed": int64(1<<60 + 1)}, got, "exact, and only what is known")
}

func TestSecrets(t *testing.T) {
	valid := validCredentials()
	require.Equal(t, []string{"pg-secret"}, Secrets("postgres", credentials(valid["postgres"])))
	require.Empty(t, Secrets("sqlite", credentials(valid["sqlite"])))
	require.Empty(t, Secrets("oracle", nil))
	require.ElementsMatch(t, []string{`a\"b`, `a"b`}, Secrets("postgres", credentials(map[string]any{"password": `a"b`})), "escaped too")

	for _, key := range []any{valid["big_query"]["service_account_key"], string(mustJSON(t, valid["big_query"]["service_account_key"]))} {
		got := Secrets("big_query", credentials(map[string]any{"service_account_key": key}))
		require.Contains(t, got, "-----BEGIN\nbig-secret")
		require.Contains(t, got, `-----BEGIN\nbig-secret`)
		require.NotContains(t, got, "service_account")
		require.NotContains(t, got, "a@example.com")
	}
}

func mustJSON(t *testing.T, v any) []byte {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}

func TestClean(t *testing.T) {
	secrets := []string{"longer-secret", "secret", "abc"}
	require.NoError(t, clean(nil, secrets))
	plain := errors.New("abc is too short to be looked for")
	require.Same(t, plain, clean(plain, secrets))

	err := clean(fmt.Errorf("open with longer-secret: %w", ErrNoTable), secrets)
	require.EqualError(t, err, "open with [secret]: no such table")
	require.ErrorIs(t, err, ErrNoTable)
	require.NotErrorIs(t, err, ErrNoColumn)

	var q *QueryError
	require.ErrorAs(t, clean(&QueryError{Message: "no secret here", Position: 3}, secrets), &q)
	require.Equal(t, &QueryError{Message: "no [secret] here", Position: 3}, q)
}
