package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
	"github.com/destkit/destkit/server/api"
)

// neutralTypes are the words in which tables of an emulated warehouse are
// stored; they are shown in the warehouse's own. Others were declared by the
// user and stay.
var neutralTypes = map[string]bool{
	"": true, "INT": true, "INTEGER": true, "TEXT": true, "REAL": true, "NUM": true, "DECIMAL": true, "BOOLEAN": true,
	"DATE": true, "DATETIME": true, "JSON": true, "ARRAY": true, "BLOB": true,
}

// typeName is the warehouse's word for a stored type. A word that ends in a
// bracket takes the stored precision: DECIMAL(12,2) is NUMBER(12,2).
func (d *warehouseDialect) typeName(declared string, kind api.Kind) string {
	word, arguments, precise := strings.Cut(declared, "(")
	if !neutralTypes[strings.ToUpper(word)] {
		return declared
	}
	name := d.types[kind]
	if open := strings.IndexByte(name, '('); precise && kind == api.KindDecimal && open > 0 {
		name = name[:open+1] + arguments
	}
	return name
}

// split finds schema and table of a stored name.
func (w *warehouse) split(stored string) (schema, table string) {
	if schema, table, ok := strings.Cut(stored, "."); ok {
		return schema, table
	}
	return w.dialect.defaultSchema, stored
}

// join is the stored name of a table; false: its catalog is not this one.
func (w *warehouse) join(o Object) (string, bool) {
	if o.Catalog != "" && !strings.EqualFold(o.Catalog, w.catalog) {
		return "", false
	}
	return w.storedName(o.Schema, o.Name), true
}

// storedName: SQLite has no schemas, so the name of one is a part of the
// table's, but for the default.
func (w *warehouse) storedName(schema, table string) string {
	if schema == "" || strings.EqualFold(schema, w.dialect.defaultSchema) {
		return table
	}
	return schema + "." + table
}

// place maps a byte of rewritten text to a byte of the user's.
type place struct{ rewritten, written int }

// original is the byte of the user's text for one of the rewritten text.
func original(places []place, at int) int {
	i := sort.Search(len(places), func(i int) bool { return places[i].rewritten > at }) - 1
	if i < 0 {
		return at
	}
	return places[i].written + at - places[i].rewritten
}

// rewrite turns the names schema.table and catalog.schema.table into stored
// ones. With define also tables that are not there yet are named so; else a
// name like that of a schema may be an alias and is left alone.
func (w *warehouse) rewrite(conn *sqlite.Conn, text string, define bool) (string, []place) {
	var tables map[string]bool
	if !define {
		tables = storedTables(conn)
	}
	var out strings.Builder
	places := []place{{0, 0}}
	for i := 0; i < len(text); {
		t := w.nextToken(text, i)
		if t.kind != tokenWord && t.kind != tokenName {
			out.WriteString(text[i:t.end])
			i = t.end
			continue
		}
		parts, ends := chain(text, t)
		stored, used := w.resolve(parts)
		if used == 0 || !define && !tables[strings.ToLower(stored)] {
			used, stored = 1, ""
			for used < len(parts) && ends[used] == ends[0] {
				used++
			}
		}
		end := ends[used-1]
		if stored == "" {
			out.WriteString(text[i:end])
		} else {
			places = append(places, place{out.Len(), i})
			out.WriteString(quote(stored))
			places = append(places, place{out.Len(), end})
		}
		i = end
	}
	return out.String(), places
}

// nextToken takes the name of the catalog as one word also where it holds a
// hyphen, as names of projects do.
func (w *warehouse) nextToken(text string, i int) token {
	end := i + len(w.catalog)
	if end < len(text) && text[end] == '.' && strings.EqualFold(text[i:end], w.catalog) {
		return token{tokenWord, i, end}
	}
	return nextToken(text, i)
}

// chain reads names joined by points from a first one, with the byte after
// each. A name in backticks may itself hold points: `project.dataset.table`.
func chain(text string, t token) (parts []string, ends []int) {
	for {
		piece := text[t.start:t.end]
		name := unquoted(piece)
		if piece[0] == '`' {
			for _, part := range strings.Split(name, ".") {
				parts, ends = append(parts, part), append(ends, t.end)
			}
		} else {
			parts, ends = append(parts, name), append(ends, t.end)
		}
		if t.end+1 >= len(text) || text[t.end] != '.' {
			return parts, ends
		}
		next := nextToken(text, t.end+1)
		if next.kind != tokenWord && next.kind != tokenName {
			return parts, ends
		}
		t = next
	}
}

// resolve finds the stored name at the start of a chain and how many parts of
// it are used; 0: the chain does not start with a schema.
func (w *warehouse) resolve(parts []string) (stored string, used int) {
	if len(parts) >= 3 && strings.EqualFold(parts[0], w.catalog) && w.isSchema(parts[1]) {
		return w.storedName(parts[1], parts[2]), 3
	}
	if len(parts) >= 2 && w.isSchema(parts[0]) {
		return w.storedName(parts[0], parts[1]), 2
	}
	return "", 0
}

// isSchema reports whether a name is one of the schemas that the warehouse shows.
func (w *warehouse) isSchema(name string) bool {
	return slices.ContainsFunc(w.dialect.schemas, func(schema string) bool { return strings.EqualFold(schema, name) })
}

// storedTables lists the tables there are, in lower case. Unlisted tables are
// not rewritten, and the query then fails with the reason.
func storedTables(conn *sqlite.Conn) map[string]bool {
	tables := map[string]bool{}
	_ = sqlitex.ExecuteTransient(conn, "SELECT lower(name) FROM sqlite_schema WHERE type IN ('table', 'view')",
		&sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			tables[stmt.ColumnText(0)] = true
			return nil
		}})
	return tables
}

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
