// Package handles opens and closes connections to SQLite for every package of
// the process that has some.
//
// The driver keeps authorizers and busy handlers by the address of the
// connection, and forgets them only after the library has given the address
// back. A connection that got the same address in between would lose its own:
// its next query under an authorizer would crash the process, whoever closed.
package handles

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// mu keeps opening apart from closing.
var mu sync.RWMutex

// walWait bounds the wait for others while a database is set to keep a log.
const walWait = 10 * time.Second

// Open opens a connection as sqlite.OpenConn does; flags must not be 0. The
// connection waits for others without end by default. It is closed with
// Close alone.
func Open(path string, flags sqlite.OpenFlags) (*sqlite.Conn, error) {
	conn, err := open(path, flags&^sqlite.OpenWAL)
	if err != nil || flags&sqlite.OpenWAL == 0 {
		return conn, err
	}
	// This waits for other connections; one that is to be closed must not wait for us.
	conn.SetBusyTimeout(walWait)
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA journal_mode=wal", nil); err != nil {
		return nil, errors.Join(fmt.Errorf("open %q: enable log: %w", path, err), Close(conn))
	}
	conn.SetBlockOnBusy()
	return conn, nil
}

func open(path string, flags sqlite.OpenFlags) (*sqlite.Conn, error) {
	mu.RLock()
	defer mu.RUnlock()
	return sqlite.OpenConn(path, flags)
}

// Close closes a connection.
func Close(conn *sqlite.Conn) error {
	mu.Lock()
	defer mu.Unlock()
	return conn.Close()
}

// Memory is what all connections of the process together may take, in bytes: beyond
// it the library refuses memory to any caller, most likely a query that makes large
// values. Its heap is not that of Go, and is in no limit of Go's.
const Memory = 160 << 20

// The library counts its memory only if configured before its first use, which is
// why this is no part of Open.
func init() {
	tls := libc.NewTLS()
	defer tls.Close()
	on := libc.NewVaList(int32(1))
	defer libc.Xfree(tls, on)
	counting = lib.Xsqlite3_config(tls, lib.SQLITE_CONFIG_MEMSTATUS, on)
}

// counting is the result code of asking the library to count its memory.
var counting int32

// LimitMemory sets the limit for the process; it does nothing the second time.
var LimitMemory = sync.OnceValue(func() (err error) {
	if counting != lib.SQLITE_OK {
		return fmt.Errorf("limit memory of databases: SQLite does not count it: code %d", counting)
	}
	conn, err := Open(":memory:", sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return fmt.Errorf("limit memory of databases: %w", err)
	}
	defer func() { err = errors.Join(err, Close(conn)) }()
	return sqlitex.ExecuteTransient(conn, fmt.Sprintf("PRAGMA hard_heap_limit=%d", Memory), nil)
})
