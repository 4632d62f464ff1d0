package source

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// keep takes a snapshot until the end of the test.
func keep(t *testing.T, src Source) Snapshot {
	t.Helper()
	s, err := src.(Snapshotter).Snapshot(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestASnapshotOfASQLiteFile(t *testing.T) {
	for _, mode := range []string{"DELETE", "WAL"} {
		t.Run(mode, func(t *testing.T) {
			path := database(t, "PRAGMA journal_mode = "+mode+"; CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
			src := open(t, "sqlite", map[string]any{"path": path}, Options{})
			s := keep(t, src)
			require.Empty(t, s.Name())
			require.Equal(t, []string{"[1]", "[2]"}, readRange(t, src, Object{Name: "t"}, []string{"id"}, Range{Column: "id", Snapshot: s.Name()}))
			require.NoError(t, s.Holds(t.Context()), "reading changes nothing")
			conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
			require.NoError(t, err)
			defer func() { require.NoError(t, conn.Close()) }()
			require.NoError(t, sqlitex.ExecuteTransient(conn, "BEGIN IMMEDIATE", nil))
			require.NoError(t, sqlitex.ExecuteTransient(conn, "UPDATE t SET id = 3 WHERE id = 2", nil))
			require.NoError(t, s.Holds(t.Context()), "nobody sees it yet")
			require.NoError(t, sqlitex.ExecuteTransient(conn, "COMMIT", nil))
			require.ErrorIs(t, s.Holds(t.Context()), ErrNoSnapshot)
			require.NoError(t, keep(t, src).Holds(t.Context()))
		})
	}
}

func TestASnapshotOfAGenerator(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	src := open(t, "generator", map[string]any{"rows": 5, "changes": map[string]any{"every": "1m", "inserts": 3, "updates": 0, "deletes": 0}},
		Options{Now: func() time.Time { return now }, Since: now})
	s := keep(t, src)
	now = now.Add(time.Minute)
	require.Len(t, readRange(t, src, Object{Name: "generated"}, []string{"id"}, Range{Column: "id", Snapshot: s.Name()}), 5)
	require.Len(t, readRange(t, src, Object{Name: "generated"}, []string{"id"}, Range{Column: "id"}), 8)
	require.NoError(t, s.Holds(t.Context()))
	_, err := src.(Ranger).Range(t.Context(), Object{Name: "generated"}, nil, Range{Column: "id", Snapshot: "then"})
	require.ErrorIs(t, err, ErrNoSnapshot)
}
