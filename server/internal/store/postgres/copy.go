package postgres

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/destkit/destkit/server/internal/store/database"
	"github.com/destkit/destkit/server/internal/store/migrations"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// A copy is a SQLite database whatever the store: what one kind has written the
// other one takes, so that a service can move, and a fork can live in memory.

// copyTime bounds one table of a copy.
const copyTime = time.Hour

// shape is a table as SQLite describes it; both databases have the same columns.
type shape struct {
	table   string
	columns []string
	types   []string // INTEGER, TEXT, BLOB
}

func shapeOf(c *sqlite.Conn, table string) (s shape, err error) {
	s.table = table
	_, err = c.Run("SELECT name, type FROM pragma_table_info(?)", func(c database.Cells) error {
		s.columns, s.types = append(s.columns, c.Text(0)), append(s.types, c.Text(1))
		return nil
	}, table)
	return s, err
}

func (s shape) selects() string {
	return "SELECT " + strings.Join(s.columns, ", ") + " FROM " + s.table
}

func (s shape) inserts() string {
	return "INSERT INTO " + s.table + " (" + strings.Join(s.columns, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(s.columns)-1) + ")"
}

// numbers reports whether the table gives ids.
func (s shape) numbers() bool { return s.columns[0] == "id" }

// values are a row as arguments; what is NULL stays so.
func (s shape) values(c database.Cells) []any {
	values := make([]any, len(s.columns))
	for i, kind := range s.types {
		n, there := c.Number(i)
		switch {
		case !there:
		case kind == "INTEGER":
			values[i] = n
		case kind == "TEXT":
			values[i] = c.Text(i)
		default:
			values[i] = c.Blob(i)
		}
	}
	return values
}

// Copy fills a SQLite database in one consistent read.
func (p *Schema) Copy(ctx context.Context, reader database.Conn, w io.Writer) error {
	from := reader.(*Conn)
	return sqlite.Compose(p.folder, w, func(staged *sqlite.Conn) error {
		from.timeout = copyTime
		defer func() { from.timeout = statementTime }()
		return fillCopy(ctx, staged, from)
	})
}

func fillCopy(ctx context.Context, staged *sqlite.Conn, from *Conn) error {
	if err := staged.Begin(true); err != nil {
		return err
	}
	defer func() { _, _ = staged.Run(database.Rollback, nil) }()
	for _, table := range migrations.Tables {
		s, err := shapeOf(staged, table)
		if err != nil {
			return err
		}
		insert := s.inserts()
		_, err = from.Run(s.selects(), func(c database.Cells) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			_, err := staged.Run(insert, nil, s.values(c)...)
			return err
		})
		if err == nil && s.numbers() {
			err = copyNumber(staged, from, table)
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", table, err)
		}
	}
	_, err := staged.Run(database.Commit, nil)
	return err
}

// copyNumber carries the last id over, also of rows that are gone: no id is given
// twice.
func copyNumber(staged *sqlite.Conn, from *Conn, table string) error {
	last, err := numberOf(from, "SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM "+table+"_id_seq")
	if err != nil {
		return err
	}
	if _, err := staged.Run("DELETE FROM sqlite_sequence WHERE name = ?", nil, table); err != nil || last == 0 {
		return err
	}
	_, err = staged.Run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", nil, table, last)
	return err
}

// Overwrite replaces every row by those of an adopted copy, all or none.
func (p *Schema) Overwrite(ctx context.Context, writer database.Conn, staged *sqlite.Conn) error {
	return p.replace(ctx, writer.(*Conn), staged, false)
}

// Fill puts the rows of an adopted copy into a schema that holds nothing yet.
func (p *Schema) Fill(ctx context.Context, c *Conn, staged *sqlite.Conn) error {
	return p.replace(ctx, c, staged, true)
}

// replace replaces every row in one transaction, fresh in a schema that holds nothing
// yet. What other processes keep of the rows and keys ends with it.
func (p *Schema) replace(ctx context.Context, c *Conn, staged *sqlite.Conn, fresh bool) error {
	c.bare, c.timeout = true, copyTime
	defer func() { c.bare, c.timeout = false, statementTime }()
	if err := c.Begin(true); err != nil {
		return err
	}
	p.peers.learn(c.at)
	err := p.peers.guard()
	if fresh && err == nil {
		var held bool
		if held, err = holds(c); err == nil && held {
			err = database.ErrHasData
		}
	}
	if err == nil {
		err = c.command("UPDATE installation SET keys = keys + 1; TRUNCATE " + strings.Join(migrations.Tables, ", "))
	}
	for _, table := range migrations.Tables {
		if err == nil {
			err = fillTable(ctx, c, staged, table)
		}
	}
	if err == nil {
		_, err = c.settle(true, nil)
		p.peers.counted.Add(1)
	}
	if err != nil {
		_, _ = c.Run(database.Rollback, nil)
	}
	return err
}

func fillTable(ctx context.Context, c *Conn, staged *sqlite.Conn, table string) error {
	s, err := shapeOf(staged, table)
	if err != nil {
		return err
	}
	insert := s.inserts()
	_, err = staged.Run(s.selects(), func(row database.Cells) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := c.Run(insert, nil, s.values(row)...)
		return err
	})
	if err == nil && s.numbers() {
		var last int64
		last, err = numberOf(staged, "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?", table)
		if err == nil {
			// Not setval, which a rollback would not take back.
			err = c.command(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN id RESTART WITH %d", table, last+1))
		}
	}
	if err != nil {
		return fmt.Errorf("fill %s: %w", table, err)
	}
	return nil
}

// Backup copies a schema into a file, which appears whole or not at all and replaces an
// earlier one, also while a process works on it. The copy is made beside its place, where
// there has to be room for it.
func Backup(ctx context.Context, o Options, to string) error {
	if err := backup(ctx, o, to); err != nil {
		return fmt.Errorf("back up store to %s: %w", to, err)
	}
	return nil
}

func backup(ctx context.Context, o Options, to string) error {
	o.Folder = filepath.Dir(to)
	p, err := New(o)
	if err != nil {
		return err
	}
	c, err := p.dial(ctx, true)
	if err != nil {
		return err
	}
	defer c.Close()
	if version, err := p.version(c); err != nil {
		return err
	} else if version < migrations.Version() {
		return fmt.Errorf("%w: the schema %s holds no data of this version yet", ErrUnfit, p.at.Schema)
	}
	if err := c.Begin(false); err != nil {
		return err
	}
	return sqlite.ReplaceFile(to, func(w io.Writer) error { return p.Copy(ctx, c, w) })
}
