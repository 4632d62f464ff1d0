package source

import (
	"context"
	"errors"
	"fmt"
	"io"

	"zombiezen.com/go/sqlite"

	"github.com/destkit/destkit/internal/handles"
)

// CopyWarehouse writes a consistent copy of an emulated warehouse as the bytes
// of its database. typ and o are those of Open; credentials are not needed. A
// warehouse that was not opened yet is made with its sample first.
func (c *Catalogue) CopyWarehouse(ctx context.Context, typ string, o Options, w io.Writer) error {
	conn, err := c.warehouseConn(ctx, typ, o)
	if err != nil {
		return fmt.Errorf("copy warehouse: %w", err)
	}
	defer func() { _ = handles.Close(conn) }()
	data, err := conn.Serialize("main")
	if err != nil {
		return fmt.Errorf("copy warehouse: %w", err)
	}
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("copy warehouse: %w", err)
	}
	return nil
}

// RestoreWarehouse replaces the tables of an emulated warehouse by those of a
// copy, all of them or, on an error, none.
func (c *Catalogue) RestoreWarehouse(ctx context.Context, typ string, o Options, r io.Reader) error {
	if err := c.restoreWarehouse(ctx, typ, o, r); err != nil {
		return fmt.Errorf("restore warehouse: %w", err)
	}
	return nil
}

// journalModes are the two bytes of a database's head that say 2 for a
// write-ahead log, which a database in memory cannot have.
const journalModes = 18

// restoreWarehouse checks the copy in memory before anything is replaced.
func (c *Catalogue) restoreWarehouse(ctx context.Context, typ string, o Options, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if len(data) < 100 || string(data[:16]) != "SQLite format 3\x00" {
		return errors.New("the copy is no database")
	}
	copy(data[journalModes:], []byte{1, 1})
	from, err := handles.Open(":memory:", sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return err
	}
	defer func() { _ = handles.Close(from) }()
	if err := from.Deserialize("main", data); err != nil {
		return err
	}
	if id, err := pragma(from, "application_id"); err != nil || id != applicationID {
		return errors.Join(errors.New("the copy is no warehouse"), err)
	}
	conn, err := c.warehouseConn(ctx, typ, o)
	if err != nil {
		return err
	}
	defer func() { _ = handles.Close(conn) }()
	return copyTables(conn, from)
}

// replaceTables puts the bytes of a database in place of what conn has.
func replaceTables(conn *sqlite.Conn, data []byte) error {
	from, err := handles.Open(":memory:", sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return err
	}
	defer func() { _ = handles.Close(from) }()
	if err := from.Deserialize("main", data); err != nil {
		return err
	}
	return copyTables(conn, from)
}

func copyTables(to, from *sqlite.Conn) error {
	backup, err := sqlite.NewBackup(to, "main", from, "main")
	if err != nil {
		return err
	}
	_, err = backup.Step(-1)
	return errors.Join(err, backup.Close())
}

// warehouseConn opens the database of an emulated warehouse.
func (c *Catalogue) warehouseConn(ctx context.Context, typ string, o Options) (*sqlite.Conn, error) {
	t := c.types[typ]
	if t == nil || t.dialect == nil {
		return nil, fmt.Errorf("type %q is no emulated warehouse", typ)
	}
	src, err := openWarehouse(ctx, t, settings{}, o)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	return src.warehouse.open(ctx, sqlite.OpenReadWrite)
}
