package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/destkit/destkit/server/internal/store/database"
	"github.com/destkit/destkit/server/internal/store/migrations"
)

// installationTable is made before the first migration. Its one row marks the
// schema as ours, beside what belongs to this installation and to no copy of it.
const installationTable = `CREATE TABLE installation (
	id      TEXT NOT NULL,   -- never the same twice
	version BIGINT NOT NULL, -- the last migration
	epoch   BIGINT NOT NULL, -- of version 1 alone
	owner   TEXT NOT NULL    -- as above
); INSERT INTO installation VALUES (gen_random_uuid(), 0, 0, '')`

// version gives the version of the schema, 0 for one that is empty or missing,
// and refuses those of others and of newer programs.
func (p *Schema) version(c database.Conn) (version int64, err error) {
	var tables int64
	ours := false
	_, err = c.Run(`SELECT count(*), coalesce(max((relname = 'installation')::int), 0) FROM pg_class
		WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = ?) AND relkind IN ('r', 'p', 'v', 'm')`, func(c database.Cells) error {
		tables, _ = c.Number(0)
		n, _ := c.Number(1)
		ours = n > 0
		return nil
	}, p.at.Schema)
	if err != nil || tables == 0 {
		return 0, err
	}
	if ours {
		if version, err = numberOf(c, "SELECT version FROM installation"); err != nil {
			return 0, err
		}
	}
	if version == 0 {
		return 0, fmt.Errorf("%w: the schema %s holds tables that are not of destkit; name another one by search_path", ErrUnfit, p.at.Schema)
	}
	if version > migrations.Version() {
		return 0, migrations.Newer(version)
	}
	return version, nil
}

// migrate brings the schema to the present version, each step in a transaction of
// its own. Of several processes one takes a step, and the others find it taken.
func (p *Schema) migrate(c *Conn) error {
	steps, err := migrations.Steps(migrations.Postgres)
	if err != nil {
		return err
	}
	c.timeout = copyTime
	defer func() { c.timeout = statementTime }()
	for i, text := range steps {
		if err := p.step(c, text, int64(i+1)); err != nil {
			_, _ = c.Run(database.Rollback, nil)
			return fmt.Errorf("migrate to version %d: %w", i+1, err)
		}
	}
	return nil
}

func (p *Schema) step(c *Conn, text string, number int64) error {
	// With the lock of changes: none of them is under way meanwhile.
	if err := c.command("BEGIN; SET LOCAL lock_timeout = 0; " + c.lock); err != nil {
		return err
	}
	version, err := p.version(c)
	if err != nil || version >= number {
		return errors.Join(err, c.command(database.Rollback))
	}
	if version == 1 {
		if err := p.unowned(c); err != nil {
			return err
		}
	}
	var steps []string
	if version == 0 {
		there, err := numberOf(c, "SELECT count(*) FROM pg_namespace WHERE nspname = ?", p.at.Schema)
		if err != nil {
			return err
		}
		if may, err := numberOf(c, "SELECT has_database_privilege(current_database(), 'CREATE')::int"); err != nil {
			return err
		} else if there == 0 && may == 0 {
			return fmt.Errorf("%w: %s may make no schema in it: GRANT CREATE ON DATABASE %s TO %[2]s, or CREATE SCHEMA %[4]s AUTHORIZATION %[2]s",
				ErrUnfit, p.at.User, p.at.Database, p.at.Schema)
		}
		if there == 0 { // asking for it where it is would need a right that is not needed
			steps = append(steps, `CREATE SCHEMA "`+p.at.Schema+`"`)
		}
		steps = append(steps, installationTable)
	}
	steps = append(steps, strings.TrimRight(text, " \n;"), fmt.Sprintf("UPDATE installation SET version = %d", number))
	if version > 0 {
		// Processes of the program before change nothing from now on.
		steps = append(steps, "SELECT pg_notify('"+c.channel+"', concat_ws(' ', '=', version, generation, keys)) FROM installation")
	}
	return c.command(strings.Join(append(steps, database.Commit), ";\n"))
}

// unowned fails while a process of version 1 works on the schema: it has the schema
// to itself by a lock of its session, and looks at no version.
func (p *Schema) unowned(c *Conn) error {
	free, err := numberOf(c, fmt.Sprintf("SELECT pg_try_advisory_xact_lock(%d)::int", p.lock))
	if err != nil || free == 1 {
		return err
	}
	owned := &database.OwnedError{Schema: p.at.Schema}
	_, err = c.Run("SELECT owner FROM installation", func(c database.Cells) error { owned.Owner = c.Text(0); return nil })
	return cmp.Or(err, error(owned))
}

// holds reports whether a schema has been used before: who uses one makes a key.
func holds(c database.Conn) (bool, error) {
	n, err := numberOf(c, "SELECT count(*) FROM data_keys")
	return n > 0, err
}

// Holds reports whether the schema of a URL has been used before. Its errors are
// those of New and Open.
func Holds(ctx context.Context, o Options) (bool, error) {
	held, err := schemaHolds(ctx, o)
	if err != nil {
		return false, fmt.Errorf("open store: %w", err)
	}
	return held, nil
}

func schemaHolds(ctx context.Context, o Options) (bool, error) {
	p, err := New(o)
	if err != nil {
		return false, err
	}
	c, err := p.dial(ctx, true)
	if err != nil {
		return false, err
	}
	defer c.Close()
	if version, err := p.version(c); err != nil || version == 0 {
		return false, err
	}
	return holds(c)
}
