package store

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/internal/store/database"
	"github.com/destkit/destkit/server/internal/store/migrations"
)

// plain is a connection beside every store, as an administrator has one.
func plain(t testing.TB, schema string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), serverURL(testkit.StartPostgres(t), schema))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func command(t testing.TB, c *pgx.Conn, format string, args ...any) {
	t.Helper()
	_, err := c.PgConn().Exec(t.Context(), fmt.Sprintf(format, args...)).ReadAll()
	require.NoError(t, err)
}

// numberOf reads one number.
func numberOf(t testing.TB, c *pgx.Conn, query string, args ...any) (n int64) {
	t.Helper()
	require.NoError(t, c.QueryRow(t.Context(), query, args...).Scan(&n))
	return n
}

// hashOfSchema is what the processes of a schema derive their lock and channel from.
func hashOfSchema(schema string) uint64 {
	name := fnv.New64a()
	_, _ = name.Write([]byte("destkit store in schema " + schema))
	return name.Sum64()
}

// channel is that of the notices of a store.
func channel(s *Store) string { return fmt.Sprintf("destkit_%x", hashOfSchema(s.Schema())) }

// The two databases have the same tables, columns, types and indexes, and a copy
// knows them all.
func TestSchemasAreTheSame(t *testing.T) {
	// What several processes share, and no copy has.
	const shared = "'row_counts', 'installation', 'leases', 'processes', 'ledger_files', 'ledger_parts', 'limits', 'parts', 'journal', 'journals', 'control', 'control_heard'"
	lines := map[string][]string{}
	read := func(kind, tables, indexes string) {
		s := open(t, Options{}.a(t, kind))
		view(t, s, func(tx *Tx) {
			for _, query := range []string{tables, indexes} {
				require.NoError(t, tx.query(query, func(c database.Cells) error {
					lines[kind] = append(lines[kind], strings.Join([]string{c.Text(0), c.Text(1), c.Text(2), c.Text(3)}, " "))
					return nil
				}))
			}
		})
	}
	read(inMem, `SELECT t.name, c.name, c.type, c."notnull" OR c.pk > 0 FROM sqlite_schema t, pragma_table_info(t.name) c
			WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND t.name <> 'row_counts' ORDER BY t.name, c.cid`,
		"SELECT tbl_name, name, '', '' FROM sqlite_schema WHERE type = 'index' AND name NOT LIKE 'sqlite%' ORDER BY name")
	read(onPG, `SELECT table_name, column_name, CASE data_type WHEN 'bigint' THEN 'INTEGER' WHEN 'text' THEN 'TEXT' WHEN 'bytea' THEN 'BLOB' ELSE data_type END,
			(is_nullable = 'NO')::int FROM information_schema.columns
			WHERE table_schema = current_schema() AND table_name NOT IN (`+shared+`) ORDER BY table_name, ordinal_position`,
		`SELECT tablename, indexname, '', '' FROM pg_indexes WHERE schemaname = current_schema() AND tablename NOT IN (`+shared+`)
			AND indexname NOT LIKE '%\_key' AND indexname NOT LIKE '%\_pkey' ORDER BY indexname`)
	require.Equal(t, lines[inMem], lines[onPG])
	tables := map[string]bool{}
	for _, line := range lines[inMem] {
		table, _, _ := strings.Cut(line, " ")
		tables[table] = true
	}
	require.Len(t, tables, len(migrations.Tables))
	for _, table := range migrations.Tables {
		require.True(t, tables[table], table)
	}
}

// Every text has a form of its own, one that PostgreSQL takes.
func TestTextsThatPostgresCannotHold(t *testing.T) {
	texts := []string{"", "plain", "a\x00b", "\x1a", "\x1a00", "\x1a1a", "\xff", "\xed\xa0\x80", "\x1a\x00\xfe☃", "ends\x1a", "\xf0\x9f"}
	s := open(t, Options{}.a(t, onPG))
	for i, text := range texts {
		key := strconv.Itoa(i)
		update(t, s, func(tx *Tx) { require.NoError(t, tx.SetSetting(key, text)) })
		view(t, s, func(tx *Tx) {
			got, err := tx.Setting(key)
			require.NoError(t, err)
			require.Equal(t, text, got)
		})
	}
}

// What is wrong with a server, a login or a schema is said before anything is
// changed, and without the password.
func TestPostgresThatCannotBeUsed(t *testing.T) {
	server := testkit.StartPostgres(t)
	admin := plain(t, "refused_admin")
	command(t, admin, `CREATE ROLE guest LOGIN PASSWORD 'SECRET';
		CREATE SCHEMA foreign_tables; CREATE TABLE foreign_tables.t (x int);
		CREATE SCHEMA foreign_mark; CREATE TABLE foreign_mark.installation (version bigint); INSERT INTO foreign_mark.installation VALUES (0)`)
	command(t, admin, `CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`)
	newer := open(t, Options{URL: serverURL(server, "newer")})
	require.NoError(t, newer.Close())
	command(t, admin, "UPDATE newer.installation SET version = %d", migrations.Version()+7)
	good := serverURL(server, "nobody_uses_this")
	for name, c := range map[string]struct {
		url  string
		is   error
		want string
	}{
		"wrong password":  {strings.Replace(good, testkit.PostgresPassword, "SECRET", 1), ErrUnfit, "password authentication failed"},
		"no password":     {strings.Replace(good, ":"+testkit.PostgresPassword, "", 1), ErrUnfit, "as " + testkit.PostgresUser + " without a password: "},
		"no such user":    {strings.Replace(good, testkit.PostgresUser+":", "nobody:", 1), ErrUnfit, "authentication failed"},
		"no such base":    {strings.Replace(good, "@/postgres", "@/missing", 1), ErrUnfit, `database "missing" does not exist`},
		"no right":        {strings.Replace(good, testkit.PostgresUser+":"+testkit.PostgresPassword, "guest:SECRET", 1), ErrUnfit, "GRANT CREATE ON DATABASE postgres TO guest, or CREATE SCHEMA nobody_uses_this AUTHORIZATION guest"},
		"nobody there":    {strings.Replace(good, fmt.Sprint("port=", server.Port), "port=1", 1), ErrUnavailable, "connect to"},
		"other tables":    {serverURL(server, "foreign_tables"), ErrUnfit, "holds tables that are not of destkit"},
		"other mark":      {serverURL(server, "foreign_mark"), ErrUnfit, "not of destkit"},
		"other encoding":  {strings.Replace(good, "@/postgres", "@/latin", 1), ErrUnfit, "has the encoding LATIN1"},
		"a newer program": {serverURL(server, "newer"), ErrNewer, fmt.Sprintf("the data has version %d, this program knows versions up to %d", migrations.Version()+7, migrations.Version())},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), Options{URL: c.url, MasterKey: testKey})
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "SECRET")
			require.NotContains(t, err.Error(), testkit.PostgresPassword)
			_, err = Holds(t.Context(), Options{URL: c.url})
			if name != "no right" { // nothing is there to be seen
				require.ErrorIs(t, err, c.is)
			}
		})
	}
	held, err := Holds(t.Context(), Options{URL: good})
	require.NoError(t, err)
	require.False(t, held)
	require.Zero(t, numberOf(t, admin, "SELECT count(*) FROM pg_namespace WHERE nspname = 'nobody_uses_this'"), "looking makes nothing")
}

// processOf is the process of the server that serves a connection; 0: it is lost already.
func processOf(c database.Conn) (pid int64) {
	_, _ = c.Run("SELECT pg_backend_pid()", func(row database.Cells) error { pid, _ = row.Number(0); return nil })
	return pid
}

// cut ends every connection of a schema's store, as a restart of the server does.
func cut(t testing.TB, admin *pgx.Conn, s *Store) {
	t.Helper()
	if c := s.writing; c != nil {
		command(t, admin, "SELECT pg_terminate_backend(%d, 5000)", processOf(c))
	}
	for range cap(s.readers) {
		if c := <-s.readers; c != nil {
			command(t, admin, "SELECT pg_terminate_backend(%d, 5000)", processOf(c))
			s.readers <- c
		} else {
			s.readers <- nil
		}
	}
}

// A connection that is lost in the middle of a change leaves nothing of it; the
// next change and the next read find the server again by themselves.
func TestLostConnections(t *testing.T) {
	admin := plain(t, "lost_admin")
	s := open(t, Options{}.a(t, onPG))
	update(t, s, func(tx *Tx) { require.NoError(t, tx.CreateOrganization(&Organization{Name: "kept"})) })
	require.Equal(t, []string{"kept"}, names(t, s))

	generation := s.Generation()
	err := s.Update(t.Context(), func(tx *Tx) error {
		require.NoError(t, tx.CreateOrganization(&Organization{Name: "half"}))
		cut(t, admin, s)
		_ = tx.CreateOrganization(&Organization{Name: "other half"}) // swallowed
		return nil
	})
	require.ErrorIs(t, err, ErrUnavailable)
	require.Equal(t, []string{"kept"}, names(t, s), "idle readers were cut too")
	update(t, s, func(tx *Tx) { require.NoError(t, tx.CreateOrganization(&Organization{Name: "after"})) })
	require.Equal(t, []string{"kept", "after"}, names(t, s))

	// Lost before the commit: no one can tell, so what is cached is dropped.
	err = s.Update(t.Context(), func(tx *Tx) error {
		require.NoError(t, tx.CreateOrganization(&Organization{Name: "unsaid"}))
		cut(t, admin, s)
		return nil
	})
	require.ErrorIs(t, err, ErrUnavailable)
	require.Greater(t, s.Generation(), generation+1)

	// Lost while idle: no one notices.
	cut(t, admin, s)
	update(t, s, func(tx *Tx) { require.NoError(t, tx.CreateOrganization(&Organization{Name: "last"})) })
	require.Equal(t, []string{"kept", "after", "last"}, names(t, s))

	// Lost in a read.
	err = s.View(t.Context(), func(tx *Tx) error {
		command(t, admin, "SELECT pg_terminate_backend(%d, 5000)", processOf(tx.conn))
		_, _, err := tx.Organizations(Page{})
		return err
	})
	require.ErrorIs(t, err, ErrUnavailable)
	var b bytes.Buffer
	cut(t, admin, s)
	require.NoError(t, s.Copy(t.Context(), &b))
	cut(t, admin, s)
	require.NoError(t, s.Restore(t.Context(), &b))
	require.Len(t, names(t, s), 3)
}

// One that is full of connections, or shuts down, comes back.
func TestOutOfConnections(t *testing.T) {
	admin := plain(t, "crowd_admin")
	command(t, admin, "CREATE ROLE lone LOGIN PASSWORD 'lone-word' CONNECTION LIMIT 3; CREATE SCHEMA crowd AUTHORIZATION lone")
	url := strings.Replace(serverURL(testkit.StartPostgres(t), "crowd"), testkit.PostgresUser+":"+testkit.PostgresPassword, "lone:lone-word", 1)
	s := open(t, Options{URL: url})
	require.NoError(t, s.View(t.Context(), func(*Tx) error {
		err := s.View(t.Context(), func(*Tx) error { return nil })
		require.ErrorIs(t, err, ErrUnavailable)
		require.ErrorIs(t, err, ErrCrowded)
		require.ErrorContains(t, err, "too many connections")
		require.ErrorContains(t, err, "raise max_connections")
		require.NotContains(t, err.Error(), "lone-word")
		return nil
	}))
	require.Empty(t, names(t, s))
}

// A data directory goes with one schema.
func TestDirectoryOfASchema(t *testing.T) {
	dir := t.TempDir()
	o := Options{}.a(t, onPG)
	o.Dir, o.MasterKey = dir, testKey
	s := open(t, o)
	update(t, s, func(tx *Tx) { build(t, tx, "acme") })
	data := copyOf(t, s)
	require.NoError(t, s.Restore(t.Context(), bytes.NewReader(data)))
	require.NoError(t, s.Close())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing of a copy stays")
	s = open(t, o)
	require.Equal(t, []string{"acme"}, names(t, s))
	require.NoError(t, s.Close())

	_, err = Open(t.Context(), Options{Dir: dir, MasterKey: testKey})
	require.ErrorIs(t, err, ErrElsewhere)
	other := Options{MasterKey: testKey}.a(t, onPG)
	other.Dir = dir
	_, err = Open(t.Context(), other)
	require.ErrorIs(t, err, ErrElsewhere)
	other.Dir = filepath.Join(t.TempDir(), "embedded")
	require.NoError(t, open(t, Options{Dir: other.Dir}).Close())
	_, err = Open(t.Context(), other)
	require.ErrorIs(t, err, ErrElsewhere)
}

// A backup is taken beside the process that works, and starts any kind of store.
func TestBackupOfASchema(t *testing.T) {
	o := Options{}.a(t, onPG)
	to := filepath.Join(t.TempDir(), "backup.db")
	require.ErrorContains(t, BackupPostgres(t.Context(), o, to), "holds no data")
	s := open(t, o)
	var w *world
	update(t, s, func(tx *Tx) { w = build(t, tx, "acme") })
	require.NoError(t, BackupPostgres(t.Context(), o, to))
	require.NoError(t, BackupPostgres(t.Context(), o, to), "replaces the one before")
	left, err := os.ReadDir(filepath.Dir(to))
	require.NoError(t, err)
	require.Len(t, left, 1)
	f, err := os.Open(to)
	require.NoError(t, err)
	defer f.Close()
	again := open(t, Options{MasterKey: testKey, From: f})
	require.Equal(t, w.secrets(), secrets(t, again, w))
	require.ErrorIs(t, BackupPostgres(t.Context(), Options{URL: "x"}, to), ErrUnfit)
}
