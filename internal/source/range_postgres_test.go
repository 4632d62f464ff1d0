//go:build unix

package source

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRangesOfPostgresTables(t *testing.T) {
	src := open(t, "postgres", postgresDatabase(t, "ranges", `
		CREATE TABLE t (small int2, id int, big bigint PRIMARY KEY, code text, name varchar(20), u uuid, amount numeric);
		INSERT INTO t SELECT v % 32000, v - 700, v * 1000003 - 5, 'c"ode' || chr(1 + v % 300) || v, 'n' || v, md5(v::text)::uuid, v FROM generate_series(1, 1500) v;
		INSERT INTO t (big) VALUES (-9223372036854775808), (9223372036854775807);
		CREATE VIEW seen AS SELECT * FROM t;
		CREATE TABLE parts (k int, at date) PARTITION BY RANGE (at);
		CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
		CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
		INSERT INTO parts SELECT v, '2024-06-01'::date + v FROM generate_series(1, 400) v;`), Options{})
	for _, column := range []string{"small", "id", "big", "code", "name", "u"} {
		t.Run(column, func(t *testing.T) { rangesOf(t, src, Object{Name: "t"}, column, column) })
	}
	rangesOf(t, src, Object{Name: "parts"}, "k", "k", "at")
	for object, column := range map[Object]string{{Name: "t"}: "amount", {Name: "seen"}: "id", {Query: "SELECT id FROM t"}: "id"} {
		sample, _, err := src.(Ranger).Sample(t.Context(), object, column)
		require.NoError(t, err)
		require.Empty(t, sample, "%s of %s", column, object)
	}
	_, err := src.(Ranger).Range(t.Context(), Object{Name: "t"}, []string{"amount"}, Range{Column: "amount", From: []byte("1")})
	require.ErrorIs(t, err, ErrNoRange)
	_, err = src.(Ranger).Range(t.Context(), Object{Name: "t"}, []string{"u"}, Range{Column: "u", From: []byte("1")})
	require.Error(t, err)
}

// TestASnapshotOfPostgres: ranges that are opened later see what it saw, until its
// transaction has ended.
func TestASnapshotOfPostgres(t *testing.T) {
	src := open(t, "postgres", postgresDatabase(t, "snapshots", "CREATE TABLE t (id int); INSERT INTO t VALUES (1), (2); ALTER DATABASE snapshots SET idle_in_transaction_session_timeout = '1h'"), Options{})
	s, err := src.(Snapshotter).Snapshot(t.Context())
	require.NoError(t, err)
	admin(t, "snapshots", "UPDATE t SET id = 30 WHERE id = 2", "INSERT INTO t VALUES (4)")
	of := Range{Column: "id", From: []byte("2"), Snapshot: s.Name()}
	require.Equal(t, []string{"[2]"}, readRange(t, src, Object{Name: "t"}, []string{"id"}, of))
	require.NoError(t, s.Holds(t.Context()))
	var idle string
	require.NoError(t, s.(*postgresSnapshot).conn.QueryRow(t.Context(), "SHOW idle_in_transaction_session_timeout").Scan(&idle))
	require.Equal(t, "0", idle)
	require.NoError(t, s.Close())
	_, err = src.(Ranger).Range(t.Context(), Object{Name: "t"}, []string{"id"}, of)
	require.ErrorIs(t, err, ErrNoSnapshot)
	of.Snapshot = "no' name"
	_, err = src.(Ranger).Range(t.Context(), Object{Name: "t"}, []string{"id"}, of)
	require.ErrorIs(t, err, ErrNoSnapshot)
	of.Snapshot = ""
	require.Equal(t, []string{"[30]", "[4]"}, readRange(t, src, Object{Name: "t"}, []string{"id"}, of))
	admin(t, "snapshots", "REVOKE EXECUTE ON FUNCTION pg_export_snapshot() FROM PUBLIC", "CREATE ROLE snapshot_reader LOGIN PASSWORD '"+postgresPassword+"'")
	defer admin(t, "postgres", "DROP ROLE snapshot_reader")
	other := open(t, "postgres", postgresCredentials(t, map[string]any{"database": "snapshots", "username": "snapshot_reader"}), Options{})
	_, err = other.(Snapshotter).Snapshot(t.Context())
	require.ErrorIs(t, err, ErrNoSnapshot)
}
