//go:build unix

package source

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
)

// TestOpenAt: it opens what Open opens, for the same reasons not, and reads the
// columns that Columns reads; an object that cannot be described is no fault of the
// source.
func TestOpenAt(t *testing.T) {
	const script = `CREATE TABLE users (id integer PRIMARY KEY, email varchar(20), score decimal(10,2)); INSERT INTO users VALUES (1, 'a@x', 2.5)`
	users, all := Object{Name: "users"}, Object{Query: "SELECT id, email AS mail FROM users -- of now\n;"}
	for name, tc := range map[string]struct {
		typ         string
		credentials map[string]any
		objects     []Object
		missing     []Object
	}{
		"sqlite": {"sqlite", map[string]any{"path": database(t, script)}, []Object{users, all, {Catalog: "main", Schema: "main", Name: "USERS"}},
			[]Object{{Name: "nobody"}, {Query: "SELECT nothing FROM users"}, {Query: "SELECT * FROM nobody"}}},
		"postgres": {"postgres", postgresDatabase(t, "described", script), []Object{users, all, {Catalog: "described", Schema: "public", Name: "users"}},
			[]Object{{Name: "nobody"}, {Query: "SELECT nothing FROM users"}, {Query: "SELECT * FROM nobody"}}},
		"csv": {"csv", map[string]any{"path": testkit.WriteFile(t, "users.csv", "id,email\n1,a@x\n")}, []Object{users}, []Object{{Name: "nobody"}, all}},
	} {
		t.Run(name, func(t *testing.T) {
			given := credentials(tc.credentials)
			src := open(t, tc.typ, tc.credentials, Options{})
			for _, object := range tc.objects {
				want, err := src.Columns(t.Context(), object)
				require.NoError(t, err)
				at, columns, missing, err := OpenAt(t.Context(), tc.typ, given, Options{}, object)
				require.NoError(t, err)
				require.NoError(t, missing)
				require.Equal(t, want, columns)
				require.Len(t, readAll(t, at, object, nil, nil), 1)
				require.NoError(t, at.Close())
			}
			for _, object := range tc.missing {
				_, want := src.Columns(t.Context(), object)
				require.Error(t, want)
				at, columns, missing, err := OpenAt(t.Context(), tc.typ, given, Options{}, object)
				require.NoError(t, err, "the source is well")
				require.EqualError(t, missing, want.Error())
				require.Empty(t, columns)
				require.NoError(t, at.Close())
			}
		})
	}
}

// TestOpenAtRefuses: the words are those of Open, and hold no secret.
func TestOpenAtRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		typ         string
		credentials map[string]any
	}{
		"unknown type":      {"paper", map[string]any{}},
		"no path":           {"sqlite", map[string]any{}},
		"no such file":      {"sqlite", map[string]any{"path": "/nowhere/crm.sqlite"}},
		"no database":       {"sqlite", map[string]any{"path": testkit.WriteFile(t, "crm.sqlite", "this is a letter, and quite a long one, so that it fills a header of a database. "+"It goes on for a while.")}},
		"wrong password":    {"postgres", postgresCredentials(t, map[string]any{"password": "not-the-s3cret"})},
		"no such database":  {"postgres", postgresCredentials(t, map[string]any{"database": "nowhere"})},
		"refused warehouse": {"snowflake", map[string]any{"account": "a", "warehouse": "W", "database": "D", "user": "U", "password": "wrong"}},
	} {
		t.Run(name, func(t *testing.T) {
			given := credentials(tc.credentials)
			_, want := Open(t.Context(), tc.typ, given, Options{})
			require.Error(t, want)
			src, columns, missing, err := OpenAt(t.Context(), tc.typ, given, Options{}, Object{Name: "users"})
			require.EqualError(t, err, want.Error())
			require.NotContains(t, err.Error(), "not-the-s3cret")
			require.NoError(t, missing)
			require.Nil(t, src)
			require.Nil(t, columns)
		})
	}
}
