package store

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
)

// installationTable is made before the first migration. Its one row marks the
// schema as ours, beside what belongs to this installation and to no copy of it.
const installationTable = `CREATE TABLE installation (
	id      TEXT NOT NULL,   -- never the same twice
	version BIGINT NOT NULL, -- the last migration
	epoch   BIGINT NOT NULL, -- counts the processes that have had the schema
	owner   TEXT NOT NULL    -- what a second one is shown
); INSERT INTO installation VALUES (gen_random_uuid(), 0, 0, '')`

// version gives the version of the schema, 0 for one that is empty or missing,
// and refuses those of others and of newer programs.
func (p *postgres) version(c conn) (version int64, err error) {
	var tables int64
	ours := false
	_, err = c.run(`SELECT count(*), coalesce(max((relname = 'installation')::int), 0) FROM pg_class
		WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = ?) AND relkind IN ('r', 'p', 'v', 'm')`, func(c cells) error {
		tables, _ = c.number(0)
		n, _ := c.number(1)
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
	if known := schemaVersion(); version > known {
		return 0, fmt.Errorf("%w: the data has version %d, this program knows versions up to %d", ErrNewer, version, known)
	}
	return version, nil
}

// migrate brings the schema to the present version, each step in a transaction of
// its own. The caller holds the lock of the schema.
func (p *postgres) migrate(c *link, version int64) error {
	names, err := fs.Glob(migrations, "migrations/postgres/*.sql")
	if err != nil {
		return err
	}
	for i := version; i < int64(len(names)); i++ {
		text, err := migrations.ReadFile(names[i])
		if err != nil {
			return err
		}
		steps := []string{"BEGIN"}
		if i == 0 {
			there, err := numberOf(c, "SELECT count(*) FROM pg_namespace WHERE nspname = ?", p.at.Schema)
			if err != nil {
				return err
			}
			if there == 0 { // asking for it where it is would need a right that is not needed
				steps = append(steps, `CREATE SCHEMA "`+p.at.Schema+`"`)
			}
			steps = append(steps, installationTable)
		}
		steps = append(steps, strings.TrimRight(string(text), " \n;"), fmt.Sprintf("UPDATE installation SET version = %d", i+1), commit)
		if err := c.command(strings.Join(steps, ";\n")); err != nil {
			_ = c.command(rollback)
			return fmt.Errorf("migrate to version %d: %w", i+1, err)
		}
	}
	return nil
}

// holds tells whether a schema has been used before: who uses one makes a key.
func holds(c conn) (bool, error) {
	n, err := numberOf(c, "SELECT count(*) FROM data_keys")
	return n > 0, err
}

// Holds tells whether the schema of a URL has been used before. Its errors are
// those of Open.
func Holds(ctx context.Context, o Options) (bool, error) {
	held, err := schemaHolds(ctx, o)
	if err != nil {
		return false, fmt.Errorf("open store: %w", err)
	}
	return held, nil
}

func schemaHolds(ctx context.Context, o Options) (bool, error) {
	p, err := newPostgres(o)
	if err != nil {
		return false, err
	}
	c, err := p.dial(ctx)
	if err != nil {
		return false, err
	}
	defer c.close()
	if version, err := p.version(c); err != nil || version == 0 {
		return false, err
	}
	return holds(c)
}
