package handles

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// TestConnectionsKeepTheirAuthorizers: connections that come and go
// concurrently get each other's addresses, and nothing of each other.
func TestConnectionsKeepTheirAuthorizers(t *testing.T) {
	var wg sync.WaitGroup
	failed := make([]error, 8)
	for i := range failed {
		wg.Go(func() {
			for range 60 {
				if failed[i] = guarded(); failed[i] != nil {
					return
				}
			}
		})
		wg.Go(func() { // as who has no authorizer
			for range 60 {
				if conn, err := Open(":memory:", sqlite.OpenReadWrite|sqlite.OpenCreate); err == nil {
					_ = Close(conn)
				}
			}
		})
	}
	wg.Wait()
	for _, err := range failed {
		require.NoError(t, err)
	}
}

// guarded opens a connection, compiles a query under an authorizer and closes it.
func guarded() error {
	conn, err := Open(":memory:", sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return err
	}
	err = conn.SetAuthorizer(sqlite.AuthorizeFunc(func(sqlite.Action) sqlite.AuthResult { return sqlite.AuthResultOK }))
	if err == nil {
		err = sqlitex.ExecuteTransient(conn, "SELECT 1 AS id UNION ALL SELECT 2 UNION ALL SELECT 3", nil)
	}
	if closed := Close(conn); err == nil {
		err = closed
	}
	return err
}

// TestOpenKeepsALog: the flag is carried out, and only where it is given.
func TestOpenKeepsALog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.db")
	mode := func(flags sqlite.OpenFlags) (mode string) {
		conn, err := Open(file, flags)
		require.NoError(t, err)
		require.NoError(t, sqlitex.ExecuteTransient(conn, "PRAGMA journal_mode", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			mode = stmt.ColumnText(0)
			return nil
		}}))
		require.NoError(t, Close(conn))
		return mode
	}
	require.Equal(t, "delete", mode(sqlite.OpenReadWrite|sqlite.OpenCreate))
	require.Equal(t, "wal", mode(sqlite.OpenReadWrite|sqlite.OpenWAL))
	_, err := Open(filepath.Join(t.TempDir(), "none.db"), sqlite.OpenReadWrite|sqlite.OpenWAL)
	require.Error(t, err)
}
