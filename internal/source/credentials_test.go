package source

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

func TestCheckCredentialsAccepts(t *testing.T) {
	for typ, values := range validCredentials() {
		require.Empty(t, CheckCredentials(typ, credentials(values)), typ)
	}
	for name, change := range map[string]map[string]any{
		"socket":       {"host": "/var/run/postgresql"},
		"address":      {"host": "::1"},
		"no port":      {"port": nil},
		"no password":  {"password": nil},
		"whole float":  {"port": json.RawMessage("5432.0")},
		"unicode name": {"database": "données"},
	} {
		values := maps.Clone(validCredentials()["postgres"])
		maps.Copy(values, change)
		require.Empty(t, CheckCredentials("postgres", credentials(values)), name)
	}
	values := validCredentials()["big_query"]
	values["service_account_key"] = string(api.Raw(values["service_account_key"]))
	require.Empty(t, CheckCredentials("big_query", credentials(values)), "the key file as text")
}

func TestCheckCredentialsRefuses(t *testing.T) {
	for _, c := range []struct {
		typ   string
		set   map[string]any
		field string
		says  string
	}{
		{"sqlite", map[string]any{"path": nil}, "path", "is required"},
		{"sqlite", map[string]any{"path": ""}, "path", "must not be empty"},
		{"sqlite", map[string]any{"path": 7}, "path", "must be a string"},
		{"sqlite", map[string]any{"path": "a\x00b"}, "path", "NUL"},
		{"sqlite", map[string]any{"path": "a\nb"}, "path", "must match"},
		{"sqlite", map[string]any{"file": "x"}, "file", "is not a field of sqlite; its fields are path"},
		{"sqlite", map[string]any{"path": strings.Repeat("x", 70000)}, "path", "must not be longer than"},
		{"postgres", map[string]any{"host": "a,b"}, "host", "must match"},
		{"postgres", map[string]any{"host": "a b"}, "host", "must match"},
		{"postgres", map[string]any{"port": "5432"}, "port", "must be a whole number, such as 5432, without quotes"},
		{"postgres", map[string]any{"port": 5432.5}, "port", "must be a whole number"},
		{"postgres", map[string]any{"port": 0}, "port", "1 to 65535"},
		{"postgres", map[string]any{"port": 65536}, "port", "1 to 65535"},
		{"postgres", map[string]any{"port": -1}, "port", "1 to 65535"},
		{"postgres", map[string]any{"sslmode": "on"}, "sslmode", "must be one of disable, allow"},
		{"postgres", map[string]any{"username": []string{"a"}}, "username", "must be a string"},
		{"topic_log", map[string]any{"path": "x"}, "path", "is not a field of topic_log, which has none"},
		{"generator", map[string]any{"rows": nil}, "rows", "is required"},
		{"generator", map[string]any{"rows": -1}, "rows", "0 to 10000000000"},
		{"generator", map[string]any{"rows": 10_000_000_001}, "rows", "0 to 10000000000"},
		{"generator", map[string]any{"seed": "x"}, "seed", "must be a whole number"},
		{"generator", map[string]any{"columns": "id"}, "columns", "must be a list of columns"},
		{"generator", map[string]any{"columns": []any{}}, "columns", "must hold 1 to 1000 columns"},
		{"generator", map[string]any{"columns": []any{7}}, "columns[0]", "must be an object"},
		{"generator", map[string]any{"columns": []any{map[string]any{"name": "a", "type": "int"}}}, "columns[0].type", "must be one of array, boolean"},
		{"generator", map[string]any{"columns": []any{map[string]any{"name": "", "type": "id"}}}, "columns[0].name", "must be a string of 1 to 255"},
		{"generator", map[string]any{"columns": []any{map[string]any{"name": "a", "type": "date", "distinct": 0}}}, "columns[0].distinct", "1 to 10000000000"},
		{"generator", map[string]any{"columns": []any{map[string]any{"name": "a", "type": "date", "null_percent": 101}}}, "columns[0].null_percent", "0 to 100"},
		{"generator", map[string]any{"columns": []any{map[string]any{"name": "a", "type": "id", "null_percent": 1}}}, "columns[0].null_percent", "unique and never null"},
		{"generator", map[string]any{"columns": []any{map[string]any{"name": "a", "type": "id", "nulls": 1}}}, "columns[0].nulls", "is not known"},
		{"generator", map[string]any{"columns": []any{map[string]any{"name": "a", "type": "id"}, map[string]any{"name": "a", "type": "id"}}}, "columns[1].name", "earlier column"},
		{"snowflake", map[string]any{"account": "https://x"}, "account", "must match"},
		{"snowflake", map[string]any{"password": nil}, "password", "is required"},
		{"big_query", map[string]any{"project_id": "UPPER"}, "project_id", "must match"},
		{"big_query", map[string]any{"service_account_key": "not a key"}, "service_account_key", "must be the key file"},
		{"big_query", map[string]any{"service_account_key": []int{1}}, "service_account_key", "must be the key file"},
		{"big_query", map[string]any{"service_account_key": map[string]any{"type": "user", "project_id": "p", "private_key": "k", "client_email": "e"}}, "service_account_key.type", "must be service_account"},
		{"big_query", map[string]any{"service_account_key": map[string]any{"type": "service_account", "project_id": "p", "client_email": "e"}}, "service_account_key.private_key", "is required"},
		{"materialize", map[string]any{"host": nil}, "host", "is required"},
	} {
		values := maps.Clone(validCredentials()[c.typ])
		maps.Copy(values, c.set)
		problems := CheckCredentials(c.typ, credentials(values))
		require.Len(t, problems, 1, "%s %v: %v", c.typ, c.set, problems)
		require.Equal(t, "credentials."+c.field, problems[0].Field)
		require.Contains(t, problems[0].Message, c.says)
	}
}

func TestCheckCredentialsReportsAllTogether(t *testing.T) {
	got := CheckCredentials("postgres", credentials(map[string]any{"port": "x", "sslmode": "on", "zebra": 1, "alpha": 1}))
	var fields []string
	for _, p := range got {
		fields = append(fields, strings.TrimPrefix(p.Field, "credentials."))
	}
	require.Equal(t, []string{"host", "port", "database", "username", "sslmode", "alpha", "zebra"}, fields)

	got = CheckCredentials("oracle", nil)
	require.Len(t, got, 1)
	require.Equal(t, "type", got[0].Field)

	got = CheckCredentials("sqlite", map[string]json.RawMessage{"path": json.RawMessage(`"open`)})
	require.Equal(t, []api.Problem{{Field: "credentials.path", Message: "is not JSON"}}, got)
}

// FuzzCheckCredentials: no input panics, and no message quotes a value.
func FuzzCheckCredentials(f *testing.F) {
	for _, seed := range []string{`{"path":"x"}`, `{"rows":1e3,"columns":[{"name":"a","type":"id"}]}`, `{"password":"hunter22"}`, `{"service_account_key":{"private_key":"x"}}`, `{"port":null}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var given map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &given) != nil {
			return
		}
		const secret = "Zq9-marker-of-a-secret"
		for _, typ := range BuiltIn().order {
			with := maps.Clone(given)
			for _, field := range BuiltIn().types[typ].ConfigurationFields.Fields {
				if field.IsPasswordTypeField {
					with[field.ID] = api.Raw(secret)
				}
			}
			for _, p := range CheckCredentials(typ, with) {
				require.NotContains(t, p.Message, secret)
			}
			shown, err := json.Marshal(Details(typ, with))
			require.NoError(t, err)
			require.NotContains(t, string(shown), secret)
			for _, s := range Secrets(typ, with) {
				require.NotEmpty(t, s)
			}
		}
	})
}
