// Package shelf keeps the files of a ledger in PostgreSQL, so that any process of
// an installation goes on with a sync. It owns the tables ledger_files and
// ledger_parts, what is done again when the database did not answer, and that a
// process which has lost its lease changes nothing. It refuses to know what is in
// the files.
//
// # How a file lies there
//
// A file is a row of ledger_files and its bytes, in rows of ledger_parts: one for
// each write, under its place in the file, of at most partSize bytes. So an append
// to a log writes what is new and nothing again. A hole reads as zeros, which the
// checksums of the ledger tell from what was written.
//
// A file without a name is over, but a reader may still have it: it goes when
// no one has read it for some minutes.
package shelf

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// Shelf keeps files in the schema that the connections of its pool are in. It is
// safe for parallel use, and has nothing to be closed.
type Shelf struct {
	pool *pgxpool.Pool
	log  *slog.Logger

	timeout time.Duration // with a database that does not answer
	attempt time.Duration // and with one try
	pause   time.Duration // after the first

	mu      sync.Mutex
	waiting int       // calls whose database does not answer
	since   time.Time // when the first of them began to wait
	swept   time.Time
}

var _ ledger.Shelf = (*Shelf)(nil)

// New makes a shelf. The pool stays the caller's; nil logs nothing.
func New(pool *pgxpool.Pool, log *slog.Logger) *Shelf {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Shelf{pool: pool, log: log, timeout: defaultTimeout, attempt: attemptTime, pause: firstPause}
}

// List implements ledger.Shelf.
func (s *Shelf) List(sync int64) (all []ledger.Shelved, err error) {
	err = s.patiently("list files of sync "+strconv.FormatInt(sync, 10), func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, "SELECT name, file, size FROM ledger_files WHERE sync = $1 AND name IS NOT NULL", sync)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ledger.Shelved])
		return err
	})
	return all, err
}

// readParts reads bytes $2 to $3 of a file, and says of a file without a name that
// a reader has it. The first part begins where they begin or before. Parts are
// not compressed, so the server takes a slice of one without the rest.
const readParts = `WITH still AS (
	UPDATE ledger_files SET gone = clock_timestamp() WHERE file = $1 AND gone < clock_timestamp() - interval '1 minute'
) SELECT greatest(at, $2), substring(data FROM (greatest($2 - at, 0) + 1)::int FOR (least($3 - at, octet_length(data)) - greatest($2 - at, 0))::int)
FROM ledger_parts WHERE file = $1 AND at < $3
	AND at >= coalesce((SELECT max(at) FROM ledger_parts WHERE file = $1 AND at <= $2), 0)
	AND at + octet_length(data) > $2 ORDER BY at`

// Read implements ledger.Shelf.
func (s *Shelf) Read(file int64, p []byte, at int64) (n int, err error) {
	err = s.patiently("read a file", func(ctx context.Context) error {
		n, err = s.read(ctx, file, p, at)
		return err
	})
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// read gives how many bytes of p are in the file.
func (s *Shelf) read(ctx context.Context, file int64, p []byte, at int64) (n int, err error) {
	rows, err := s.pool.Query(ctx, readParts, file, at, at+int64(len(p)))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var from int64
		var part pgtype.DriverBytes
		if err := rows.Scan(&from, &part); err != nil {
			return 0, err
		}
		from -= at
		if from > int64(n) {
			clear(p[n:from])
		}
		n = int(from) + copy(p[from:], part)
	}
	if err := rows.Err(); err != nil || n == len(p) {
		return n, err
	}
	return s.rest(ctx, file, p, at, n)
}

// rest is what is read where parts are missing: nothing behind the end, zeros
// before it.
func (s *Shelf) rest(ctx context.Context, file int64, p []byte, at int64, n int) (int, error) {
	var size int64
	err := s.pool.QueryRow(ctx, "SELECT size FROM ledger_files WHERE file = $1", file).Scan(&size)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, fs.ErrNotExist
	}
	if err != nil {
		return 0, err
	}
	end := int(min(max(size-at, 0), int64(len(p))))
	if end > n {
		clear(p[n:end])
	}
	return end, nil
}
