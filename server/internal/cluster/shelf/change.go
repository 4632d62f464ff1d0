package shelf

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/destkit/destkit/server/internal/cluster/lease"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// partSize is the most that one row takes, in bytes.
const partSize = 8 << 20

// appendPart is the change that is made most, an append to a log, in one statement
// and so in one trip to the server: nothing happens when the lease is another
// one's, or when the file does not end where the bytes begin. So a statement that
// a lost connection has left behind changes nothing after it was done again. Who
// takes the lease locks its row FOR UPDATE, and so waits for this, and this for it;
// who only keeps it waits for no one.
const appendPart = `WITH held AS (
	SELECT 1 FROM leases WHERE name = $1 AND fence = $2 FOR KEY SHARE
), longer AS (
	UPDATE ledger_files SET size = size + octet_length($6::bytea)
	WHERE file = $4 AND sync = $3 AND size = $5 AND name IS NOT NULL AND ($2 = 0 OR EXISTS (SELECT 1 FROM held))
	RETURNING file
) INSERT INTO ledger_parts (file, at, data) SELECT file, $5, $6 FROM longer`

// Change implements ledger.Shelf.
func (s *Shelf) Change(sync, fence int64, changes []ledger.Change) error {
	what := "change files of sync " + strconv.FormatInt(sync, 10)
	if len(changes) == 1 && changes[0].Kind == ledger.WriteFile && len(changes[0].Data) > 0 && len(changes[0].Data) <= partSize {
		done := false
		err := s.patiently(what, func(ctx context.Context) error {
			c := &changes[0]
			tag, err := s.pool.Exec(ctx, appendPart, lease.OfSync(sync), fence, sync, c.File, c.At, c.Data)
			done = tag.RowsAffected() == 1
			return err
		})
		if err != nil || done {
			return err
		}
	}
	var made *changing
	err := s.patiently(what, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			made = &changing{sync: sync}
			return made.all(ctx, tx, fence, changes)
		})
	})
	if err == nil && made.gone > 0 {
		s.sweep()
	}
	return err
}

// changing is a transaction on the files of a sync: its statements go to the server
// together, and what each must have found is looked at when all are answered.
type changing struct {
	sync  int64
	batch pgx.Batch
	gone  int64 // files that have lost their names
}

// all makes the changes of a transaction.
func (c *changing) all(ctx context.Context, tx pgx.Tx, fence int64, changes []ledger.Change) error {
	if fence != 0 {
		c.needs(ledger.ErrFenced, "SELECT 1 FROM leases WHERE name = $1 AND fence = $2 FOR KEY SHARE", lease.OfSync(c.sync), fence)
	}
	for i := range changes {
		change := &changes[i]
		switch change.Kind {
		case ledger.MakeFile:
			c.make(change)
		case ledger.WriteFile:
			c.write(change)
		case ledger.CutFile:
			c.cut(change)
			c.does("UPDATE ledger_files SET size = $2 WHERE file = $1", change.File, change.At)
		case ledger.NameFile:
			c.takesNames("UPDATE ledger_files SET name = NULL, gone = clock_timestamp() WHERE sync = $1 AND name = $2 AND file <> $3", c.sync, change.Name, change.File)
			c.needs(fs.ErrNotExist, "UPDATE ledger_files SET name = $3 WHERE file = $1 AND sync = $2 AND name IS NOT NULL", change.File, c.sync, change.Name)
		case ledger.RemoveFile:
			c.takesNames("UPDATE ledger_files SET name = NULL, gone = clock_timestamp() WHERE file = $1 AND sync = $2 AND name = $3", change.File, c.sync, change.Name)
		default:
			return fmt.Errorf("%w: there is no kind %d", errMisuse, change.Kind)
		}
	}
	return tx.SendBatch(ctx, &c.batch).Close()
}

// make does nothing where the file is there already, whatever its name is by now.
func (c *changing) make(change *ledger.Change) {
	c.takesNames(`UPDATE ledger_files SET name = NULL, gone = clock_timestamp() WHERE sync = $1 AND name = $2
		AND NOT EXISTS (SELECT 1 FROM ledger_files WHERE file = $3)`, c.sync, change.Name, change.File)
	c.does("INSERT INTO ledger_files (file, sync, name, size) VALUES ($1, $2, $3, 0) ON CONFLICT (file) DO NOTHING", change.File, c.sync, change.Name)
}

// write makes the file end behind the bytes.
func (c *changing) write(change *ledger.Change) {
	c.cut(change)
	for done := 0; done < len(change.Data); done += partSize {
		part := change.Data[done:min(done+partSize, len(change.Data))]
		c.does("INSERT INTO ledger_parts (file, at, data) VALUES ($1, $2, $3)", change.File, change.At+int64(done), part)
	}
	c.does("UPDATE ledger_files SET size = $2 WHERE file = $1", change.File, change.At+int64(len(change.Data)))
}

// cut leaves the first bytes of a file. The row of the file is locked first, so
// that what a lost connection has left behind is over.
func (c *changing) cut(change *ledger.Change) {
	c.needs(fs.ErrNotExist, "SELECT 1 FROM ledger_files WHERE file = $1 AND sync = $2 AND name IS NOT NULL FOR UPDATE", change.File, c.sync)
	c.needs(errMisuse, "SELECT 1 FROM ledger_files WHERE file = $1 AND size >= $2", change.File, change.At)
	c.does("DELETE FROM ledger_parts WHERE file = $1 AND at >= $2", change.File, change.At)
	c.does(`UPDATE ledger_parts SET data = substring(data FOR ($2 - at)::int)
		WHERE file = $1 AND at = (SELECT max(at) FROM ledger_parts WHERE file = $1) AND at + octet_length(data) > $2`, change.File, change.At)
}

// does queues a statement.
func (c *changing) does(query string, args ...any) {
	c.batch.Queue(query, args...).Exec(func(pgconn.CommandTag) error { return nil })
}

// takesNames queues one whose rows are files that lose their names.
func (c *changing) takesNames(query string, args ...any) {
	c.batch.Queue(query, args...).Exec(func(tag pgconn.CommandTag) error {
		c.gone += tag.RowsAffected()
		return nil
	})
}

// needs queues one that has to find a row.
func (c *changing) needs(otherwise error, query string, args ...any) {
	c.batch.Queue(query, args...).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() == 0 {
			return otherwise
		}
		return nil
	})
}
