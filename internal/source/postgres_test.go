//go:build unix

package source

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
)

// postgresDatabase makes a database by a script and returns its credentials.
func postgresDatabase(t testing.TB, name, script string) map[string]any {
	t.Helper()
	admin(t, "postgres", "DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name)
	admin(t, name, script)
	return postgresCredentials(t, map[string]any{"database": name})
}

// admin runs statements with the right to write.
func admin(t testing.TB, database string, statements ...string) {
	t.Helper()
	p := &postgres{s: credentials(postgresCredentials(t, map[string]any{"database": database}))}
	config, err := p.config()
	require.NoError(t, err)
	delete(config.RuntimeParams, "default_transaction_read_only")
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	defer closeConn(conn)
	for _, s := range statements {
		_, err := conn.Exec(t.Context(), s)
		require.NoError(t, err)
	}
}

func TestPostgresTables(t *testing.T) {
	src := open(t, "postgres", postgresDatabase(t, "tables", `
		CREATE TYPE mood AS ENUM ('ok', 'bad'); CREATE DOMAIN cents AS int CHECK (VALUE >= 0); CREATE DOMAIN tags AS text[]; CREATE TYPE pair AS (a int, b text);
		CREATE TABLE every (i2 int2, i4 int, i8 bigint, n numeric(12,2), f4 real, f8 double precision, t text, v varchar(20), c char(3), b boolean, d date,
			ts timestamp, tz timestamptz(3), tm time, iv interval, j json, jb jsonb, by bytea, u uuid, ia int[], ta text[][], m mood, ce cents, tg tags, p pair, ip inet);
		CREATE SCHEMA "Größe ""q"""; CREATE TABLE "Größe ""q"""."表 x" ("spalte ä" int, gone int); ALTER TABLE "Größe ""q"""."表 x" DROP COLUMN gone;
		CREATE VIEW a_view AS SELECT i4, n FROM every; CREATE MATERIALIZED VIEW b_view AS SELECT i4 FROM every;
		CREATE TABLE parts (k int, at date) PARTITION BY RANGE (at); CREATE TABLE parts_2024 PARTITION OF parts FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
		CREATE TABLE empty (); CREATE SEQUENCE s; CREATE INDEX ON every (i4);`), Options{})
	tables, err := src.Tables(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{`tables.Größe "q".表 x`, "tables.public.a_view", "tables.public.b_view", "tables.public.empty", "tables.public.every", "tables.public.parts"}, names(tables))
	require.Equal(t, []string{"spalte ä integer integer"}, short(tables[0].Columns))
	require.Equal(t, []string{"i4 integer integer", "n numeric(12,2) decimal"}, short(tables[1].Columns))
	require.Empty(t, tables[3].Columns)
	require.Equal(t, []string{"i2 smallint integer", "i4 integer integer", "i8 bigint integer", "n numeric(12,2) decimal", "f4 real float", "f8 double precision float",
		"t text string", "v character varying(20) string", "c character(3) string", "b boolean boolean", "d date date", "ts timestamp without time zone date_time",
		"tz timestamp(3) with time zone date_time", "tm time without time zone string", "iv interval string", "j json object", "jb jsonb object", "by bytea binary",
		"u uuid string", "ia integer[] array", "ta text[] array", "m mood string", "ce cents integer", "tg tags array", "p pair object", "ip inet string"}, short(tables[4].Columns))
	for _, o := range []Object{{Name: "every"}, {Schema: "public", Name: "every"}, {Catalog: "tables", Schema: "public", Name: "every"}} {
		columns, err := src.Columns(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, tables[4].Columns, columns)
	}
	for _, o := range []Object{{Name: "nope"}, {Name: "EVERY"}, {Catalog: "x", Name: "every"}, {Schema: "pg_catalog", Name: "pg_class"}, {Name: "every\x00"}, {Name: "s"}} {
		_, err := src.Columns(t.Context(), o)
		require.ErrorIs(t, err, ErrNoTable, o)
	}
}

func TestPostgresQueries(t *testing.T) {
	src := open(t, "postgres", postgresDatabase(t, "queries", `CREATE TABLE users (id int PRIMARY KEY, name varchar(10), n numeric(5,1)); CREATE TABLE pets (id int)`), Options{})
	for query, want := range map[string][]string{
		"SELECT * FROM users": {"id integer integer", "name character varying(10) string", "n numeric(5,1) decimal"},
		"select name as b, count(*) from users group by 1 ; -- done\n": {"b character varying(10) string", "count bigint integer"},
		"WITH u AS (SELECT id FROM users) SELECT id FROM u":            {"id integer integer"},
		"VALUES (1, 'x')": {"column1 integer integer", "column2 text string"},
		"TABLE pets":      {"id integer integer"},
		"SELECT '{1}'::int[] AS a, now() AS t, NULL AS n, row(1, 2) AS r": {"a integer[] array", "t timestamp with time zone date_time", "n text string", "r record string"},
		"SELECT $$;$$ AS a, E'\\';' AS b /* ; /* ; */ */":                 {"a text string", "b text string"},
	} {
		columns, err := src.Columns(t.Context(), Object{Query: query})
		require.NoError(t, err, query)
		require.Equal(t, want, short(columns), query)
	}
	for _, c := range []struct {
		query    string
		says     string
		position int
	}{
		{"SELECT nope FROM users", `column "nope" does not exist`, 8},
		{"SELECT 'é', nope FROM users", `column "nope" does not exist`, 13},
		{"SELEC 1", "syntax error", 1},
		{"SELECT 1; SELECT 2", "cannot insert multiple commands", 0},
		{" ", "the query selects nothing", 1},
		{"SELECT 1\x00", "NUL character", 9},
		{"SELECT FROM users", "the query selects nothing", 1},
		{"DELETE FROM users", "the query selects nothing", 1},
		{"DELETE FROM users RETURNING id", notSelect, 1},
		{"WITH d AS (DELETE FROM users RETURNING id) SELECT id FROM d", notSelect, 1},
		{"SHOW server_version", notSelect, 1},
		{"EXPLAIN SELECT 1", notSelect, 1},
		{"COMMIT", "the query selects nothing", 1},
		{"SELECT $1::int AS a", "has parameters", 0},
		{"SELECT users.id, pets.id FROM users, pets", `two columns named "id"`, 0},
		{"SELECT lower(5) FROM users", "does not exist", 8},
	} {
		_, err := src.Columns(t.Context(), Object{Query: c.query})
		var q *QueryError
		require.ErrorAs(t, err, &q, c.query)
		require.Contains(t, q.Message, c.says, c.query)
		require.Equal(t, c.position, q.Position, c.query)
	}
}

func TestPostgresProbe(t *testing.T) {
	s := postgresCredentials(t, nil)
	tcp := func(changes map[string]any) map[string]any {
		values := postgresCredentials(t, map[string]any{"host": "127.0.0.1"})
		for k, v := range changes {
			values[k] = v
		}
		return values
	}
	closed, err := testkit.FreePort()
	require.NoError(t, err)
	passed := []string{"credentials passed", "address passed", "connect passed", "authenticate passed", "read passed"}
	for _, c := range []struct {
		name   string
		values map[string]any
		want   []string
	}{
		{"socket", s, passed},
		{"tcp", tcp(nil), passed},
		{"name", tcp(map[string]any{"host": "localhost"}), passed},
		{"no server", tcp(map[string]any{"port": closed}), []string{"credentials passed", "address passed", fmt.Sprintf("connect failed connect to 127.0.0.1 port %d: connect: connection refused", closed), "authenticate skipped", "read skipped"}},
		{"password", tcp(map[string]any{"password": "not-the-password"}), []string{"credentials passed", "address passed", "connect passed",
			fmt.Sprintf(`authenticate failed log in at 127.0.0.1 port %d: password authentication failed for user "tester"`, s["port"]), "read skipped"}},
		{"database", tcp(map[string]any{"database": "nope"}), []string{"credentials passed", "address passed", "connect passed",
			fmt.Sprintf(`authenticate failed log in at 127.0.0.1 port %d: database "nope" does not exist`, s["port"]), "read skipped"}},
		{"ssl", tcp(map[string]any{"sslmode": "require"}), nil},
	} {
		got := steps(BuiltIn().Test(t.Context(), "postgres", credentials(c.values), Options{}))
		if c.want == nil {
			require.Contains(t, got[3], "refused TLS", "%v", got)
			continue
		}
		require.Equal(t, c.want, got, c.name)
	}
}

// TestPostgresEnvironment: nothing is taken from the environment.
func TestPostgresEnvironment(t *testing.T) {
	values := postgresCredentials(t, map[string]any{"password": nil})
	for _, name := range []string{"PGPASSWORD", "PGPASSFILE", "PGHOST", "PGUSER", "PGDATABASE", "PGSSLMODE", "PGSSLCERT", "PGSSLKEY", "PGSSLROOTCERT",
		"PGOPTIONS", "PGAPPNAME", "PGCONNECT_TIMEOUT", "PGTARGETSESSIONATTRS", "PGTZ", "PGCHANNELBINDING", "PGREQUIREAUTH", "PGSSLNEGOTIATION"} {
		t.Setenv(name, "nonsense")
	}
	t.Setenv("PGPASSWORD", postgresPassword)
	_, err := Open(t.Context(), "postgres", credentials(values), Options{})
	require.ErrorContains(t, err, "password")
	values["password"] = postgresPassword
	open(t, "postgres", values, Options{})
}

// TestPostgresSilent: a server that does not answer is left when the caller's
// patience ends, and its message holds no secret.
func TestPostgresSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, _ = conn.Read(make([]byte, 1))
			cancel()
			_, _ = conn.Read(make([]byte, 1<<10))
			conn.Close()
		}
	}()
	values := validCredentials()["postgres"]
	values["host"], values["port"] = "127.0.0.1", l.Addr().(*net.TCPAddr).Port
	_, err = Open(ctx, "postgres", credentials(values), Options{})
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "pg-secret")
}

func TestPostgresRows(t *testing.T) {
	src := open(t, "postgres", postgresDatabase(t, "rows", `
		CREATE TYPE pair AS (a int, b text); CREATE DOMAIN words AS text[]; CREATE DOMAIN doc AS jsonb;
		CREATE TABLE every (k text, i2 int2, i4 int, i8 bigint, o oid, n numeric, f4 real, f8 double precision, c char(3), b boolean, d date,
			ts timestamp, tz timestamptz, iv interval, j json, jb jsonb, by bytea, u uuid, ia bigint[], w words, p pair, dc doc);
		INSERT INTO every (k) VALUES (NULL);
		INSERT INTO every VALUES
		('a', -32768, 2147483647, 9007199254740993, 4294967295, 12.50, 0.1, 1e300, 'x', true, '2024-02-29', '2024-02-29 23:59:59.5', '2024-02-29 23:59:59.000001+02', '1 day 2 hours',
			'{"b" : 1,  "a":[1.0]}', '{"b":1,"a":"\u00e4"}', '\x00ff', 'deadbeef-0000-0000-0000-000000000001', '{1,NULL,9007199254740993}', '{a,"b c"}', '(1,x)', '[]'),
		('a ', 0, -1, 0, 0, 'NaN', 'NaN', '-Infinity', '', false, 'infinity', '-infinity', 'infinity', '0', 'null', 'null', '', NULL, '{}', NULL, '(,)', '1'),
		('b"\' || chr(10), 0, 0, 0, 0, -0.0001, 'Infinity', 0, NULL, NULL, '0044-03-15 BC', '10000-01-01', '0001-01-01 00:00:00Z', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);`), Options{})
	require.Equal(t, []string{
		`["a ",0,-1,0,0,"NaN","NaN","-Infinity","   ",false,"infinity","-infinity","infinity","00:00:00",null,null,"",null,[],null,{"a":null,"b":null},1]`,
		`["a",-32768,2147483647,9007199254740993,4294967295,12.50,0.1,1e+300,"x  ",true,"2024-02-29","2024-02-29T23:59:59.5","2024-02-29T21:59:59.000001Z","1 day 02:00:00",{"b":1,"a":[1.0]},{"a":"ä","b":1},"AP8=","deadbeef-0000-0000-0000-000000000001",[1,null,9007199254740993],["a","b c"],{"a":1,"b":"x"},[]]`,
		`["b\"\\\n",0,0,0,0,-0.0001,"Infinity",0,null,null,"-0043-03-15","+10000-01-01T00:00:00","0001-01-01T00:00:00Z",null,null,null,null,null,null,null,null,null]`,
		`[null` + strings.Repeat(",null", 21) + `]`,
	}, readAll(t, src, Object{Name: "every"}, nil, []string{"k"}))
	require.Equal(t, []string{`[-1]`, `[0]`, `[2147483647]`, `[null]`}, readAll(t, src, Object{Query: "SELECT i4, k FROM every;"}, []string{"i4"}, []string{"i4", "k"}))
	require.Empty(t, readAll(t, src, Object{Query: "SELECT d FROM every WHERE false"}, nil, []string{"d"}))
	_, err := src.(Reader).Rows(t.Context(), Object{Name: "every"}, []string{"nope"}, nil)
	require.ErrorIs(t, err, ErrNoColumn)
	rows, err := src.(Reader).Rows(t.Context(), Object{Query: "SELECT 1 / (i4 - i4) AS x FROM every WHERE i4 = 0"}, nil, nil)
	require.NoError(t, err)
	_, err = rows.Next()
	require.EqualError(t, err, "read rows: division by zero")
	require.NoError(t, rows.Close())
}

// TestPostgresNumerics: every decimal is written as the server writes it.
func TestPostgresNumerics(t *testing.T) {
	src := open(t, "postgres", postgresCredentials(t, nil), Options{})
	for _, n := range []string{"0", "0.0", "0.00000", "1", "-1", "9999", "10000", "10001", "123456789012345678901234567890.0987654321", "0.1", "0.0001", "0.00001", "0.00010000",
		"-0.000000000000000000001", "100000000", "100000000.00", "1e40", "99999.9999", "5000.00005", "1e-30"} {
		query := "SELECT " + n + "::numeric AS n, (" + n + "::numeric)::text AS t"
		row := readAll(t, src, Object{Query: query}, nil, nil)[0]
		number, text, _ := strings.Cut(strings.Trim(row, "[]"), ",")
		require.Equal(t, strings.Trim(text, `"`), number, n)
	}
}

// TestPostgresOrder: the server's order is that of the texts.
func TestPostgresOrder(t *testing.T) {
	src := open(t, "postgres", postgresDatabase(t, "ordered", `
		CREATE TABLE a (t text, v varchar(50), i bigint, u uuid, d date, n numeric);
		INSERT INTO a SELECT chr(1 + n % 300) || CASE n % 7 WHEN 0 THEN '' WHEN 1 THEN '!' WHEN 2 THEN '"' WHEN 3 THEN '\' WHEN 4 THEN chr(31) ELSE 'z' || n END,
			chr(1 + n % 200), (n * 7919) % 100003 - 50000, md5(n::text)::uuid, '2024-01-01'::date + n % 500, n / 3.0 FROM generate_series(1, 2000) AS n;
		INSERT INTO a SELECT NULL, NULL, NULL, NULL, NULL, NULL;`), Options{})
	for _, column := range []string{"t", "v", "i", "u", "d", "n"} {
		rows := readAll(t, src, Object{Name: "a"}, []string{column}, []string{column})
		require.Len(t, rows, 2001)
		for i := 1; i < len(rows); i++ {
			a, b := strings.Trim(rows[i-1], "[]"), strings.Trim(rows[i], "[]")
			require.LessOrEqual(t, strings.TrimSuffix(rows[i-1][1:], "]"), strings.TrimSuffix(rows[i][1:], "]"), "%s %s", a, b)
		}
	}
}

// TestPostgresSnapshot: one read sees one moment, also when it is slow.
func TestPostgresSnapshot(t *testing.T) {
	values := postgresDatabase(t, "snapshot", "CREATE TABLE a AS SELECT n, repeat('x', 100) AS pad FROM generate_series(1, 50000) AS n")
	rows, err := open(t, "postgres", values, Options{}).(Reader).Rows(t.Context(), Object{Name: "a"}, nil, nil)
	require.NoError(t, err)
	_, err = rows.Next()
	require.NoError(t, err)
	admin(t, "snapshot", "DELETE FROM a WHERE n > 10; INSERT INTO a SELECT n FROM generate_series(100000, 200000) AS n")
	count := 1
	for {
		if _, err = rows.Next(); err != nil {
			break
		}
		count++
	}
	require.ErrorContains(t, err, "EOF")
	require.Equal(t, 50000, count)
	require.NoError(t, rows.Close())

	ctx, cancel := context.WithCancel(t.Context())
	rows, err = open(t, "postgres", values, Options{}).(Reader).Rows(ctx, Object{Query: "SELECT a.n FROM a, generate_series(1, 100000) AS g"}, nil, nil)
	require.NoError(t, err)
	_, err = rows.Next()
	require.NoError(t, err)
	cancel()
	for err == nil {
		_, err = rows.Next()
	}
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, rows.Close())
}

// TestPostgresPrivileges: only what may be read is listed.
func TestPostgresPrivileges(t *testing.T) {
	values := postgresDatabase(t, "privileges", `DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN PASSWORD 'reader-secret';
		CREATE TABLE open_table (a int); CREATE TABLE closed_table (a int); GRANT SELECT ON open_table TO reader;
		CREATE SCHEMA closed; CREATE TABLE closed.t (a int); GRANT SELECT ON closed.t TO reader;`)
	values["username"], values["password"] = "reader", "reader-secret"
	src := open(t, "postgres", values, Options{})
	tables, err := src.Tables(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"privileges.public.open_table"}, names(tables))
	_, err = src.Columns(t.Context(), Object{Query: "SELECT * FROM closed_table"})
	require.EqualError(t, err, "permission denied for table closed_table")
}
