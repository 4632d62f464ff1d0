// Package lease says who may work on what among several processes on one
// PostgreSQL, and which processes there are. A lease has a name, a holder and an
// end; its fence counts the holders, so that what an earlier one still writes can be
// refused. Every decision is made by the database in one statement and by its
// clock: the clocks of processes differ, and a process may stand still for as long
// as it likes between two lines of its code.
//
// It knows the tables leases and processes, and of what is leased the names alone.
package lease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Leases are those that one process takes. It may be used by many goroutines.
type Leases struct {
	pool   *pgxpool.Pool
	holder string
	entry  entry
	frozen frost // tests
}

// New makes the leases of a process. The tables are found by the search_path of the
// pool. The holder is the id of the process: never empty, never used twice.
func New(pool *pgxpool.Pool, holder string) *Leases { return &Leases{pool: pool, holder: holder} }

// Lease is one that was taken. The zero value is none.
type Lease struct {
	Name  string
	Fence int64 // from 1; never the same for two holders of a name
}

// Sync begins the names of the leases of syncs; the id follows.
const Sync = "sync "

// OfSync is the name of the right to work on the runs of a sync and to write its
// books.
func OfSync(id int64) string { return Sync + strconv.FormatInt(id, 10) }

var (
	// ErrHeld is the answer while the lease of another holder has not run out.
	ErrHeld = errors.New("the lease is held by another process")
	// ErrLost is the answer to a holder that is the holder no longer.
	ErrLost = errors.New("the lease is lost")
)

// lasts: a lease is for seconds. One that ends a day from now is of a clock that was
// set back, or of no holder, and must not stand for ever.
const lasts = `(until > clock_timestamp() AND until < clock_timestamp() + interval '1 day')`

// FOR UPDATE waits for every FOR KEY SHARE (Holds), and every such one for this; the
// updates of until and holder elsewhere wait for none. A lease that another holds is
// not even locked. What is judged at last is the row as it is after the wait.
const take = `WITH free AS (
		SELECT name FROM leases WHERE name = $1 AND (holder IN ('', $2) OR NOT ` + lasts + `) FOR UPDATE
	), taken AS (
		UPDATE leases SET fence = fence + 1, holder = $2, until = clock_timestamp() + $3::bigint * interval '1 microsecond'
		FROM free WHERE leases.name = free.name RETURNING fence
	), made AS (
		INSERT INTO leases (name, fence, holder, until)
		SELECT $1, 1, $2, clock_timestamp() + $3::bigint * interval '1 microsecond' WHERE NOT EXISTS (SELECT FROM leases WHERE name = $1)
		ON CONFLICT (name) DO NOTHING RETURNING fence
	)
	SELECT fence FROM taken UNION ALL SELECT fence FROM made`

// Take takes the lease for ttl, under the next fence: one that is free, was given
// back or has run out, and the holder's own, whose earlier fence is lost with it.
// While another holds it, ErrHeld. It waits for the transactions that have asked
// Holds for the fence before.
func (l *Leases) Take(ctx context.Context, name string, ttl time.Duration) (Lease, error) {
	lease := Lease{Name: name}
	err := l.pool.QueryRow(ctx, take, name, l.holder, ttl.Microseconds()).Scan(&lease.Fence)
	if errors.Is(err, pgx.ErrNoRows) {
		return Lease{}, fmt.Errorf("take lease %s: %w", name, ErrHeld)
	}
	if err != nil {
		return Lease{}, fmt.Errorf("take lease %s: %w", name, err)
	}
	return lease, nil
}

// Keep lets the lease last for ttl from now on, also when it had run out and no one
// has taken it. When one has, or it was given back: ErrLost.
func (l *Leases) Keep(ctx context.Context, lease Lease, ttl time.Duration) error {
	done, err := l.pool.Exec(ctx, `UPDATE leases SET until = clock_timestamp() + $4::bigint * interval '1 microsecond'
		WHERE name = $1 AND fence = $2 AND holder = $3`, lease.Name, lease.Fence, l.holder, ttl.Microseconds())
	if err == nil && done.RowsAffected() == 0 {
		err = ErrLost
	}
	if err != nil {
		return fmt.Errorf("keep lease %s: %w", lease.Name, err)
	}
	return nil
}

// Give ends the lease: others may take it at once. One that is lost already is left
// to its holder.
func (l *Leases) Give(ctx context.Context, lease Lease) error {
	_, err := l.pool.Exec(ctx, `UPDATE leases SET holder = '', until = clock_timestamp()
		WHERE name = $1 AND fence = $2 AND holder = $3`, lease.Name, lease.Fence, l.holder)
	if err != nil {
		return fmt.Errorf("give lease %s: %w", lease.Name, err)
	}
	return nil
}

// Holds says ErrLost when the fence is not that of the holder any more. Else no one
// else becomes the holder before tx ends, so what tx writes comes before all that a
// later holder does. The transaction must be READ COMMITTED. It keeps neither Keep
// nor another Holds waiting.
func Holds(ctx context.Context, tx pgx.Tx, lease Lease) error {
	var one int
	err := tx.QueryRow(ctx, "SELECT 1 FROM leases WHERE name = $1 AND fence = $2 AND holder <> '' FOR KEY SHARE",
		lease.Name, lease.Fence).Scan(&one)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrLost
	}
	if err != nil {
		return fmt.Errorf("check lease %s: %w", lease.Name, err)
	}
	return nil
}

// Held gives the holders of those of the named leases that have not run out, by
// name; without names, of all.
func (l *Leases) Held(ctx context.Context, names ...string) (map[string]string, error) {
	rows, err := l.pool.Query(ctx, `SELECT name, holder FROM leases
		WHERE ($1::text[] IS NULL OR name = ANY ($1)) AND holder <> '' AND `+lasts, names)
	held := map[string]string{}
	if err == nil {
		var name, holder string
		_, err = pgx.ForEachRow(rows, []any{&name, &holder}, func() error {
			held[name] = holder
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read leases: %w", err)
	}
	return held, nil
}
