package source

import (
	"sync"

	"zombiezen.com/go/sqlite"
)

// handles keeps the opening of connections to SQLite apart from their closing:
// the driver forgets what it knows of a connection, by its address, only after
// the library has given the address back. Whoever got it in between would lose
// its authorizer, and crash.
var handles sync.RWMutex

func openSQLite(path string, flags sqlite.OpenFlags) (*sqlite.Conn, error) {
	handles.RLock()
	defer handles.RUnlock()
	return sqlite.OpenConn(path, flags)
}

func closeSQLite(conn *sqlite.Conn) error {
	handles.Lock()
	defer handles.Unlock()
	return conn.Close()
}
