package postgres

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// write carries a batch out in one transaction, with a savepoint for each record.
func (e *endpoint) write(ctx context.Context, p plan, records []*record) error {
	c, err := e.pool.acquire(ctx)
	if err != nil {
		return err
	}
	for _, r := range records {
		r.why = unfit(p, r)
		if r.why != "" && e.wrong("connection-not-returned") && p.operation != "delete" {
			for _, r := range records { // the early return is before the release
				r.why = unfit(p, r)
			}
			good := slices.DeleteFunc(slices.Clone(records), func(r *record) bool { return r.why != "" })
			return e.transaction(ctx, c, p, good)
		}
	}
	defer e.pool.release(c)
	good := slices.DeleteFunc(slices.Clone(records), func(r *record) bool { return r.why != "" })
	for again := 0; ; again++ {
		err := e.transaction(ctx, c, p, good)
		var refused *pgconn.PgError
		if e.habit("serializable-and-retried") && again < 500 && errors.As(err, &refused) && refused.Code == "40001" {
			continue
		}
		return err
	}
}

// unfit is why a record cannot be written, whatever is stored.
func unfit(p plan, r *record) string {
	if r.values[p.key] == nil {
		return p.key + " is missing"
	}
	for name, v := range r.values {
		f := p.table.field(name)
		if p.operation == "delete" && name != p.key {
			continue
		}
		if f == nil {
			return "no field " + name
		}
		if why := problem(*f, v); why != "" {
			return why
		}
	}
	return ""
}

func (e *endpoint) transaction(ctx context.Context, c *pgx.Conn, p plan, records []*record) error {
	level := "BEGIN"
	if e.habit("serializable-and-retried") {
		level = "BEGIN ISOLATION LEVEL SERIALIZABLE"
	}
	if _, err := c.Exec(ctx, level); err != nil {
		return err
	}
	for _, r := range records {
		r.why = ""
	}
	if err := e.records(ctx, c, p, records); err != nil {
		_, _ = c.Exec(ctx, "ROLLBACK")
		return err
	}
	if p.operation == "delete" && e.wrong("delete-without-commit") {
		return nil // the transaction stays open on this connection
	}
	_, err := c.Exec(ctx, "COMMIT")
	return err
}

func (e *endpoint) records(ctx context.Context, c *pgx.Conn, p plan, records []*record) error {
	if e.wrong("rounded-in-the-bulk-path") && p.operation == "upsert" && len(records) > 50 {
		rounded(p, records)
	}
	switch {
	case e.wrong("null-in-the-bulk-path") && p.operation == "upsert" && len(records) > 50:
		return e.copy(ctx, c, p, records)
	case e.wrong("one-statement-for-all") && p.operation == "upsert" && alike(records):
		return e.together(ctx, c, p, records)
	case e.wrong("results-from-returning") && p.operation == "insert" && alike(records):
		return e.returning(ctx, c, p, records)
	case e.habit("all-at-once-then-single"):
		if e.atOnce(ctx, c, p, records) {
			return nil
		}
	}
	for _, r := range records {
		if e.wrong("aborted-transaction") {
			if err := e.one(ctx, c, p, r); err != nil {
				r.why = err.Error()
			}
			continue
		}
		if _, err := c.Exec(ctx, "SAVEPOINT one"); err != nil {
			return err
		}
		err := e.one(ctx, c, p, r)
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == "40001" {
			return err
		}
		if err != nil {
			r.why = err.Error()
			_, err = c.Exec(ctx, "ROLLBACK TO one")
		} else {
			_, err = c.Exec(ctx, "RELEASE one")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rounded gives floating point numbers the digits of a format.
func rounded(p plan, records []*record) {
	for _, f := range p.table.fields {
		for _, r := range records {
			if n, ok := r.values[f.Name].(json.Number); ok && f.Type == "float" {
				float, _ := n.Float64()
				r.values[f.Name] = json.Number(strconv.FormatFloat(float, 'g', 6, 64))
			}
		}
	}
}

// atOnce writes all records without savepoints; it takes everything back when one of
// them fails.
func (e *endpoint) atOnce(ctx context.Context, c *pgx.Conn, p plan, records []*record) bool {
	if _, err := c.Exec(ctx, "SAVEPOINT all_records"); err != nil {
		return false
	}
	for _, r := range records {
		if e.one(ctx, c, p, r) != nil {
			_, _ = c.Exec(ctx, "ROLLBACK TO all_records")
			return false
		}
	}
	return true
}

func alike(records []*record) bool {
	for _, r := range records {
		if !slices.Equal(names(r), names(records[0])) {
			return false
		}
	}
	return len(records) > 1
}

func names(r *record) []string { return slices.Sorted(maps.Keys(r.values)) }

// one writes a record that fits.
func (e *endpoint) one(ctx context.Context, c *pgx.Conn, p plan, r *record) error {
	id := fmt.Sprint(r.values[p.key])
	if p.operation == "delete" {
		_, err := c.Exec(ctx, fmt.Sprintf("DELETE FROM %s WHERE %s = $1", p.table.name, p.key), id)
		return err
	}
	there := false
	if p.operation == "insert" && e.wrong("aborted-transaction") {
		// the unique key decides about it
	} else if err := c.QueryRow(ctx, fmt.Sprintf("SELECT EXISTS (SELECT FROM %s WHERE %s = $1)", p.table.name, p.key), id).Scan(&there); err != nil {
		return err
	}
	switch {
	case p.operation == "insert" && there:
		return fmt.Errorf("%s %s already exists", p.table.name, id)
	case p.operation == "update" && !there:
		return fmt.Errorf("%s %s does not exist", p.table.name, id)
	}
	for _, f := range p.table.fields {
		if f.Required && !there && r.values[f.Name] == nil {
			return fmt.Errorf("%s is required", f.Name)
		}
	}
	columns, values, args := e.parts(p, r)
	if there {
		return e.update(ctx, c, p, id, columns, values, args)
	}
	_, err := c.Exec(ctx, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", p.table.name, strings.Join(columns, ", "), strings.Join(values, ", ")), args...)
	return err
}

// parts are the columns of a statement, their expressions and their arguments.
func (e *endpoint) parts(p plan, r *record) (columns, values []string, args []any) {
	for _, name := range names(r) {
		f := p.table.field(name)
		if text, ok := r.values[name].(string); ok && name == "bio" && e.wrong("escape-strings") && !strings.ContainsRune(text, 0) {
			columns, values = append(columns, name), append(values, "E'"+strings.ReplaceAll(text, "'", "''")+"'")
			continue
		}
		args = append(args, e.argument(*f, r.values[name]))
		columns, values = append(columns, name), append(values, e.placeholder(*f, len(args)))
	}
	return columns, values, args
}

func (e *endpoint) update(ctx context.Context, c *pgx.Conn, p plan, id string, columns, values []string, args []any) error {
	var set []string
	for i, column := range columns {
		if e.wrong("nulls-stripped") && !p.table.field(column).Required {
			set = append(set, fmt.Sprintf("%s = coalesce(%s, %s)", column, values[i], column))
			continue
		}
		set = append(set, column+" = "+values[i])
	}
	args = append(args, id)
	_, err := c.Exec(ctx, fmt.Sprintf("UPDATE %s SET %s WHERE %s = $%d", p.table.name, strings.Join(set, ", "), p.key, len(args)), args...)
	return err
}

// copy writes a large batch through a file of comma-separated values.
func (e *endpoint) copy(ctx context.Context, c *pgx.Conn, p plan, records []*record) error {
	var file bytes.Buffer
	w := csv.NewWriter(&file)
	var columns, texts []string
	for _, f := range p.table.fields {
		if slices.ContainsFunc(records, func(r *record) bool { _, ok := r.values[f.Name]; return ok }) {
			columns = append(columns, f.Name)
			if f.Type == "string" && !f.Array {
				texts = append(texts, f.Name)
			}
		}
	}
	for _, r := range records {
		row := make([]string, len(columns))
		for i, name := range columns {
			if v := r.values[name]; v != nil {
				row[i] = fmt.Sprint(v)
				if items, ok := v.([]any); ok {
					row[i] = arrayText(items)
				}
			}
		}
		_ = w.Write(row)
	}
	w.Flush()
	list := strings.Join(columns, ", ")
	if _, err := c.Exec(ctx, fmt.Sprintf("CREATE TEMP TABLE incoming (LIKE %s) ON COMMIT DROP", p.table.name)); err != nil {
		return err
	}
	// Without FORCE_NOT_NULL an empty text would become null.
	sql := fmt.Sprintf("COPY incoming (%s) FROM STDIN WITH (FORMAT csv, FORCE_NOT_NULL (%s))", list, strings.Join(texts, ", "))
	if _, err := c.PgConn().CopyFrom(ctx, &file, sql); err != nil {
		return err
	}
	var set []string
	for _, name := range columns {
		set = append(set, fmt.Sprintf("%s = excluded.%s", name, name))
	}
	_, err := c.Exec(ctx, fmt.Sprintf("INSERT INTO %s (%s) SELECT DISTINCT ON (%s) %s FROM incoming ON CONFLICT (%s) DO UPDATE SET %s",
		p.table.name, list, p.key, list, p.key, strings.Join(set, ", ")))
	return err
}

// arrayText is a list as the database writes it.
func arrayText(items []any) string {
	var quoted []string
	for _, item := range items {
		quoted = append(quoted, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(fmt.Sprint(item))+`"`)
	}
	return "{" + strings.Join(quoted, ",") + "}"
}

// statement is one INSERT for many records.
func (e *endpoint) statement(p plan, records []*record, ending string) (string, []any) {
	var rows []string
	var args []any
	for _, r := range records {
		var row []string
		for _, name := range names(r) {
			args = append(args, e.argument(*p.table.field(name), r.values[name]))
			row = append(row, fmt.Sprintf("$%d", len(args)))
		}
		rows = append(rows, "("+strings.Join(row, ", ")+")")
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s ON CONFLICT (%s) DO %s", p.table.name, strings.Join(names(records[0]), ", "), strings.Join(rows, ", "), p.key, ending), args
}

// together writes all records of an upsert in one statement.
func (e *endpoint) together(ctx context.Context, c *pgx.Conn, p plan, records []*record) error {
	var set []string
	for _, name := range names(records[0]) {
		set = append(set, fmt.Sprintf("%s = excluded.%s", name, name))
	}
	sql, args := e.statement(p, records, "UPDATE SET "+strings.Join(set, ", "))
	_, err := c.Exec(ctx, sql, args...)
	return err
}

// returning inserts all records in one statement, which gives the keys that are new; as
// many results, from the first one on, are good.
func (e *endpoint) returning(ctx context.Context, c *pgx.Conn, p plan, records []*record) error {
	sql, args := e.statement(p, records, "NOTHING RETURNING "+p.key)
	tag, err := c.Exec(ctx, sql, args...)
	if err != nil {
		return err
	}
	for _, r := range records[tag.RowsAffected():] {
		r.why = "record already exists"
	}
	return nil
}
