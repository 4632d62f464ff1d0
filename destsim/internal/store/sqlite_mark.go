package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
)

// applicationID marks a SQLite file as the store of a simulator ("dksm"). Files of older
// simulators have none.
const applicationID = 0x646b736d

// The header of a SQLite file, and where its application id is.
const (
	sqliteHeader     = "SQLite format 3\x00"
	sqliteHeaderSize = 100
	sqliteID         = 68
)

// sqliteColumns are the tables of a store with their columns, in the order of their names.
var sqliteColumns = map[string]string{"keys": "tbl,field,key,id", "records": "id,tbl,data", "tables": "name,uniques"}

// checkOwn refuses a file that another program has made, and changes nothing in it: SQLite
// opens it only when the header alone does not settle that.
func checkOwn(file string) error {
	foreign := func(why string, args ...any) error {
		return fmt.Errorf("%s: give the simulator another file, sqlite:FILE", fmt.Sprintf(why, args...))
	}
	header, err := readHeader(file)
	if err != nil {
		return err
	}
	if len(header) > 0 { // SQLite makes a database of an empty file
		if len(header) < sqliteHeaderSize || !bytes.HasPrefix(header, []byte(sqliteHeader)) {
			return foreign("the file is not a SQLite database")
		}
		if id := binary.BigEndian.Uint32(header[sqliteID:]); id != 0 && id != applicationID {
			return foreign("the file is a database of another program (application id %#x)", id)
		}
	}
	id, table, err := lookInto(file)
	switch {
	case err != nil:
		return err
	case id != 0 && id != applicationID: // the log has it and the file does not yet
		return foreign("the file is a database of another program (application id %#x)", uint32(id))
	case table != "":
		return foreign("the file holds the table %q, which is not the simulator's", table)
	}
	return nil
}

// readHeader gives the first bytes of a file, all of a shorter one.
func readHeader(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	header := make([]byte, sqliteHeaderSize)
	n, err := io.ReadFull(f, header)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return header[:n], err
}

// lookInto gives the application id of a database, and the name of a table that is not
// one of a store, "" without one.
func lookInto(file string) (id int64, table string, err error) {
	conn, err := openUntouched(file)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, handles.Close(conn)) }()
	if id, err = sqliteMark(conn); err != nil {
		return 0, "", err
	}
	err = sqlitex.ExecuteTransient(conn, `SELECT m.name, (SELECT group_concat(name) FROM pragma_table_info(m.name))
		FROM sqlite_schema m WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY m.name`,
		rowsTo(func(stmt *sqlite.Stmt) {
			name := stmt.ColumnText(0)
			if columns, known := sqliteColumns[name]; table == "" && (!known || columns != stmt.ColumnText(1)) {
				table = name
			}
		}))
	return id, table, err
}

// openUntouched opens a file for reading. Without a log the file is all there is, and SQLite
// must make no log file, as it does for readers too.
func openUntouched(file string) (*sqlite.Conn, error) {
	if info, err := os.Stat(file + "-wal"); err == nil && info.Size() > 0 {
		return handles.Open(file, sqlite.OpenReadOnly)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	at := url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(path), "/"), RawQuery: "immutable=1"}
	return handles.Open(at.String(), sqlite.OpenReadOnly|sqlite.OpenURI)
}

// sqliteMark is the application id of a database.
func sqliteMark(conn *sqlite.Conn) (id int64, err error) {
	err = sqlitex.ExecuteTransient(conn, "PRAGMA application_id", rowsTo(func(stmt *sqlite.Stmt) { id = stmt.ColumnInt64(0) }))
	return id, err
}

// mark notes in a database whose it is, once.
func mark(conn *sqlite.Conn) error {
	id, err := sqliteMark(conn)
	if err != nil || id == applicationID {
		return err
	}
	return sqlitex.ExecuteTransient(conn, fmt.Sprintf("PRAGMA application_id = %d", applicationID), nil)
}
