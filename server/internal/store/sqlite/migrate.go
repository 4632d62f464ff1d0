package sqlite

import (
	"errors"
	"fmt"
	"sync"

	"zombiezen.com/go/sqlite"
)

// ApplicationID marks a SQLite file as ours ("dkst").
const ApplicationID = 0x646b7374

// versionOf gives the version of a database, 0 for an empty one, and refuses
// files of others and of newer programs.
func versionOf(c *Conn) (int64, error) {
	id, err := c.pragma("PRAGMA application_id")
	if err != nil {
		return 0, err
	}
	version, err := c.pragma("PRAGMA user_version")
	if err != nil {
		return 0, err
	}
	tables, err := c.pragma("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return 0, err
	}
	if id != ApplicationID && (id != 0 || version != 0 || tables != 0) {
		return 0, errors.New("the database is not one of destkit")
	}
	switch {
	case version < 0:
		return 0, fmt.Errorf("%w: it says that it has version %d", ErrDamaged, version)
	case version == 0 && tables > 0:
		return 0, fmt.Errorf("%w: it has tables and no version", ErrDamaged)
	case version > Version():
		return 0, newer(version)
	}
	return version, nil
}

// migrate brings a database to the present version, each step in its own
// transaction. No one else may write meanwhile.
func migrate(c *Conn) error {
	version, err := versionOf(c)
	if err != nil {
		return err
	}
	texts, err := steps()
	if err != nil {
		return err
	}
	for i := version; i < int64(len(texts)); i++ {
		err := step(c, texts[i], i+1)
		// The statements fit every database of the version before.
		if sqlite.ErrCode(err) == sqlite.ResultError {
			err = fmt.Errorf("%w: its tables are not those of version %d: %w", ErrDamaged, i, err)
		}
		if err != nil {
			return fmt.Errorf("migrate to version %d: %w", i+1, err)
		}
	}
	return nil
}

func step(c *Conn, text string, version int64) error {
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() { _, _ = c.exec(Rollback) }()
	// Both pragmas are part of the transaction.
	marks := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", ApplicationID, version)
	if err := c.script(text + "\n" + marks); err != nil {
		return err
	}
	_, err := c.exec(Commit)
	return err
}

// empty is a database without rows at the present version.
type empty struct {
	schema []string // one line for each table, index and trigger
	image  []byte
}

// emptyStore runs the migrations once: stores in memory begin with the image,
// since running them takes longer than all the rest of a small test.
var emptyStore = sync.OnceValues(func() (*empty, error) {
	c, err := inMemory(nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := migrate(c); err != nil {
		return nil, err
	}
	schema, err := schemaOf(c)
	if err != nil {
		return nil, err
	}
	image, err := c.db.Serialize("main")
	return &empty{schema, image}, err
})

func schemaOf(c *Conn) (lines []string, err error) {
	err = c.Query("SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY type, name", func(c Row) error {
		lines = append(lines, c.Text(0))
		return nil
	})
	return lines, err
}
