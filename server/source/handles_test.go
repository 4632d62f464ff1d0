package source

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
)

// TestConnectionsKeepTheirAuthorizers: connections that come and go beside each
// other get each other's addresses, and nothing of each other.
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
	}
	wg.Wait()
	for _, err := range failed {
		require.NoError(t, err)
	}
}

// guarded opens a connection, compiles a query under an authorizer and closes it.
func guarded() error {
	conn, err := openSQLite(":memory:", sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return err
	}
	stmt, err := (&sqliteSource{}).prepareQuery(conn, "SELECT 1 AS id UNION ALL SELECT 2 UNION ALL SELECT 3")
	if err == nil {
		err = stmt.Finalize()
	}
	if closed := closeSQLite(conn); err == nil {
		err = closed
	}
	return err
}
