package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/destkit/destkit/server/api"
)

// relations selects what can be read, with one row per column: tables, also
// partitioned and foreign ones, views and materialized views that the user may
// select from. Partitions are left to the table that they are parts of.
const relations = `
SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod), base.oid::oid, base.typtype::text, base.typelem <> 0 AND base.typlen = -1
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type base ON base.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
AND has_schema_privilege(n.oid, 'USAGE') AND (has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'))`

// Tables lists everything but the system's own schemas.
func (p *postgres) Tables(ctx context.Context) (tables []api.Table, err error) {
	err = p.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		tables, err = p.readTables(ctx, conn, relations+" ORDER BY 1, 2, a.attnum")
		return err
	})
	if err != nil {
		return nil, err
	}
	// By our own order: the server's depends on its collation.
	sortTables(tables)
	return tables, nil
}

// readTables collects the rows of relations, which come table by table.
func (p *postgres) readTables(ctx context.Context, conn *pgx.Conn, sql string, args ...any) ([]api.Table, error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	defer rows.Close()
	tables := []api.Table{}
	for rows.Next() {
		var schema, table string
		var column, name, class *string
		var oid *uint32
		var array *bool
		if err := rows.Scan(&schema, &table, &column, &name, &oid, &class, &array); err != nil {
			return nil, fmt.Errorf("list tables: %w", err)
		}
		// A table without columns has one row, all of whose column parts are
		// null.
		if n := len(tables); n == 0 || tables[n-1].TableSchema != schema || tables[n-1].TableName != table {
			tables = append(tables, api.Table{Type: api.ObjectTable, TableCatalog: p.s.text("database"), TableSchema: schema, TableName: table, Columns: []api.Column{}})
		}
		if column != nil && name != nil && oid != nil {
			last := &tables[len(tables)-1]
			last.Columns = append(last.Columns, api.Column{Name: *column, Type: *name, Kind: postgresKind(*oid, *class, *array)})
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	return tables, nil
}

// postgresKinds are the kinds of the types of the system.
var postgresKinds = map[uint32]api.Kind{
	pgtype.BoolOID: api.KindBoolean,
	pgtype.Int2OID: api.KindInteger, pgtype.Int4OID: api.KindInteger, pgtype.Int8OID: api.KindInteger, pgtype.OIDOID: api.KindInteger,
	pgtype.Float4OID: api.KindFloat, pgtype.Float8OID: api.KindFloat,
	pgtype.NumericOID: api.KindDecimal,
	pgtype.DateOID:    api.KindDate, pgtype.TimestampOID: api.KindDateTime, pgtype.TimestamptzOID: api.KindDateTime,
	pgtype.JSONOID: api.KindObject, pgtype.JSONBOID: api.KindObject,
	pgtype.ByteaOID: api.KindBinary,
}

// postgresKind is the kind of a type: domains count as their base type,
// composite types are objects, everything else reads as its text.
func postgresKind(oid uint32, class string, array bool) api.Kind {
	if kind, ok := postgresKinds[oid]; ok {
		return kind
	}
	switch {
	case array:
		return api.KindArray
	case class == "c":
		return api.KindObject
	}
	return api.KindString
}

// Columns of a table or query.
func (p *postgres) Columns(ctx context.Context, object Object) (columns []api.Column, err error) {
	err = p.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		columns, _, err = p.columns(ctx, conn, object)
		return err
	})
	return columns, err
}

// columns also returns the text of the object in FROM.
func (p *postgres) columns(ctx context.Context, conn *pgx.Conn, object Object) ([]api.Column, string, error) {
	if object.Query != "" {
		return p.queryColumns(ctx, conn, object.Query)
	}
	schema := object.Schema
	// The server's own default.
	schema = cmp.Or(schema, "public")
	missing := fmt.Errorf("find table %s: %w", object, ErrNoTable)
	if object.Catalog != "" && object.Catalog != p.s.text("database") || strings.ContainsRune(schema+object.Name, 0) {
		return nil, "", missing
	}
	// The same conditions as in the list, so that unlisted tables cannot be
	// read either.
	tables, err := p.readTables(ctx, conn, relations+" AND n.nspname = $1 AND c.relname = $2 ORDER BY a.attnum", schema, object.Name)
	if err != nil {
		return nil, "", err
	}
	if len(tables) == 0 {
		return nil, "", missing
	}
	return tables[0].Columns, quote(schema) + "." + quote(object.Name), nil
}

// queryColumns has the server prepare a query: as it is, for the best message
// about a mistake, and inside another, where only a SELECT is valid.
func (p *postgres) queryColumns(ctx context.Context, conn *pgx.Conn, query string) ([]api.Column, string, error) {
	if i := strings.IndexByte(query, 0); i >= 0 {
		return nil, "", &QueryError{Message: "the query holds a NUL character", Position: position(query, nil, i)}
	}
	described, err := conn.Prepare(ctx, "", query)
	if err != nil {
		return nil, "", postgresQueryError(err)
	}
	names := make([]string, len(described.Fields))
	for i, f := range described.Fields {
		names[i] = f.Name
	}
	switch {
	case len(names) == 0:
		return nil, "", &QueryError{Message: "the query selects nothing: it must be one SELECT", Position: 1}
	case len(described.ParamOIDs) > 0:
		return nil, "", &QueryError{Message: "the query has parameters, which get no values here: write the values into it"}
	}
	if err := uniqueColumns(names); err != nil {
		return nil, "", err
	}
	// The server has already said that this is one statement; only the semicolon
	// and comments at its end are in the way.
	body, _, _ := oneStatement(query)
	from := "(" + body + "\n) AS q"
	if _, err := conn.Prepare(ctx, "", "SELECT * FROM "+from); err != nil {
		var server *pgconn.PgError
		if !errors.As(err, &server) {
			return nil, "", err
		}
		return nil, "", &QueryError{Message: notSelect, Position: 1}
	}
	// Planning it finds what preparing does not: a table that may not be read.
	if _, err := conn.Exec(ctx, "EXPLAIN SELECT * FROM "+from); err != nil {
		return nil, "", postgresQueryError(err)
	}
	columns, err := p.fieldColumns(ctx, conn, described.Fields)
	return columns, from, err
}

// uniqueColumns refuses a query whose columns cannot be distinguished.
func uniqueColumns(names []string) error {
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return &QueryError{Message: fmt.Sprintf("the query selects two columns named %q: give one another name with AS", name)}
		}
		seen[name] = true
	}
	return nil
}

// fieldColumns names the types of a result as the server writes them.
func (p *postgres) fieldColumns(ctx context.Context, conn *pgx.Conn, fields []pgconn.FieldDescription) ([]api.Column, error) {
	oids, modifiers := make([]uint32, len(fields)), make([]int32, len(fields))
	for i, f := range fields {
		oids[i], modifiers[i] = f.DataTypeOID, f.TypeModifier
	}
	rows, err := conn.Query(ctx, `
SELECT format_type(f.oid, f.modifier), base.oid::oid, base.typtype::text, base.typelem <> 0 AND base.typlen = -1
FROM unnest($1::oid[], $2::int4[]) WITH ORDINALITY AS f(oid, modifier, place)
JOIN pg_type t ON t.oid = f.oid
JOIN pg_type base ON base.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
ORDER BY f.place`, oids, modifiers)
	if err != nil {
		return nil, fmt.Errorf("read types of query: %w", err)
	}
	defer rows.Close()
	columns := make([]api.Column, 0, len(fields))
	for rows.Next() {
		var name, class string
		var oid uint32
		var array bool
		if err := rows.Scan(&name, &oid, &class, &array); err != nil {
			return nil, fmt.Errorf("read types of query: %w", err)
		}
		if len(columns) == len(fields) {
			break
		}
		columns = append(columns, api.Column{Name: fields[len(columns)].Name, Type: name, Kind: postgresKind(oid, class, array)})
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read types of query: %w", err)
	}
	if len(columns) != len(fields) {
		return nil, fmt.Errorf("read types of query: %d of %d columns have a known type", len(columns), len(fields))
	}
	return columns, nil
}

// postgresQueryError keeps the server's message and its position, which is
// counted in characters.
func postgresQueryError(err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return fmt.Errorf("check query: %w", err)
	}
	message := server.Message
	if server.Hint != "" {
		message += ". " + server.Hint
	}
	return &QueryError{Message: message, Position: int(server.Position)}
}
