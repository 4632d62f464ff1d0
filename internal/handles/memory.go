package handles

import (
	"errors"
	"fmt"
	"sync"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Memory is what all connections of the process together may take, in bytes: beyond
// it the library refuses memory to whoever asks for it, which is most likely a query
// that makes large values. Its heap is not that of Go, and is in no limit of Go's.
const Memory = 160 << 20

// The library counts its memory only when it is told to before its first use, which
// is why this is no part of Open.
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
