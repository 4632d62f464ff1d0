package diskfault

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
)

// database opens one with a log, where every commit is synced.
func database(t *testing.T, dir string) *sqlite.Conn {
	t.Helper()
	conn, err := handles.Open(filepath.Join(dir, "x.db"), sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenWAL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = handles.Close(conn) })
	require.NoError(t, run(conn, "PRAGMA synchronous = FULL"))
	return conn
}

func run(conn *sqlite.Conn, query string) error { return sqlitex.ExecuteTransient(conn, query, nil) }

// rows are what the only table has in a folder; -1: there is no table.
func rows(t *testing.T, dir string) (n int) {
	t.Helper()
	conn := database(t, dir)
	n = -1
	_ = sqlitex.ExecuteTransient(conn, "SELECT count(*) FROM t", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		n = stmt.ColumnInt(0)
		return nil
	}})
	require.NoError(t, handles.Close(conn))
	return n
}

// TestFaults: each operation fails with its code, as often as it was meant to, and after
// that the database works.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault Fault
		want  sqlite.ResultCode
	}{
		"sync":        {Fault{Op: Sync, Code: SyncFails}, sqlite.ResultIOErrFsync},
		"write":       {Fault{Op: Write, Code: WriteFails}, sqlite.ResultIOErrWrite},
		"no room":     {Fault{Op: Write, Code: NoRoom, File: "-wal"}, sqlite.ResultFull},
		"short write": {Fault{Op: Write, Code: NoRoom, Short: true, After: 1}, sqlite.ResultFull},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			disk := Under(t, dir)
			conn := database(t, dir)
			require.NoError(t, run(conn, "CREATE TABLE t (x)"))
			disk.Fail(c.fault)
			require.Equal(t, c.want, sqlite.ErrCode(run(conn, "INSERT INTO t VALUES (1)")))
			require.Equal(t, 1, disk.Met())
			require.Equal(t, 1, disk.Heal())
			require.NoError(t, run(conn, "INSERT INTO t VALUES (2)"))
			require.Equal(t, 1, rows(t, dir))
		})
	}
	dir := t.TempDir()
	disk := Under(t, dir)
	require.NoError(t, run(database(t, dir), "CREATE TABLE t (x)"))
	disk.Fail(Fault{Op: Read, Code: ReadFails, File: "x.db", Times: 1})
	_, err := handles.Open(filepath.Join(dir, "x.db"), sqlite.OpenReadWrite|sqlite.OpenWAL)
	require.Equal(t, sqlite.ResultIOErrRead, sqlite.ErrCode(err))
	require.Equal(t, 0, rows(t, dir))
}

// TestPowerLost: synced data is there, and data of a failed sync is not, even after a
// sync that succeeds.
func TestPowerLost(t *testing.T) {
	dir := t.TempDir()
	disk := Under(t, dir)
	lost := func() int {
		to := filepath.Join(t.TempDir(), "lost")
		require.NoError(t, disk.PowerLost(to))
		return rows(t, to)
	}
	conn := database(t, dir)
	require.Equal(t, -1, lost())
	require.NoError(t, run(conn, "CREATE TABLE t (x)"))
	require.NoError(t, run(conn, "INSERT INTO t VALUES (1)"))
	require.Equal(t, 1, lost())
	require.NoError(t, run(conn, "PRAGMA synchronous = NORMAL")) // a commit is not synced
	require.NoError(t, run(conn, "INSERT INTO t VALUES (2)"))
	require.Equal(t, 1, lost())
	disk.Fail(Fault{Op: Sync, Code: SyncFails, Times: 1})
	require.Error(t, run(conn, "PRAGMA wal_checkpoint"))
	require.NoError(t, run(conn, "PRAGMA synchronous = FULL"))
	require.NoError(t, run(conn, "INSERT INTO t VALUES (3)"))
	require.Equal(t, 1, lost(), "the log has a hole, and the third is after it")
}
