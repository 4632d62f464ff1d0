// Package parts owns the table of the parts into which large runs are cut, by which
// the processes of an installation share the work on one run. It says who works on
// which part and carries jobs and reports as bytes; it refuses to know what is in
// them.
package parts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/destkit/destkit/server/internal/cluster/lease"
)

// Step is one step of a run that is cut: that of a sync under the fence of its lease,
// and whether it is the one that deletes.
type Step struct {
	Sync, Fence int64
	Deletes     bool
}

// Part is one part of a step.
type Part struct {
	Step
	Number int
}

// Row is a part as the one sees it who waits for it.
type Row struct {
	Number  int
	Process string // who works on it; "": nobody
	Late    bool   // nobody has heard of its process for too long
	Ended   bool
	Reports int64 // how many there were
	Report  []byte
}

// Table is the table as one process uses it. It is safe for parallel use.
type Table struct {
	pool    *pgxpool.Pool
	process string
	life    time.Duration
}

// New uses the tables parts and leases in the search path of a pool. A part is its
// process's for life after each sign of it, by the clock of the database.
func New(pool *pgxpool.Pool, process string, life time.Duration) *Table {
	return &Table{pool: pool, process: process, life: life}
}

// leased is the name of the lease of the sync of a row.
const leased = "'" + lease.Sync + "' || sync"

// fenced: the run is still that of the process that has cut it.
const fenced = "EXISTS (SELECT FROM leases WHERE name = " + leased + " AND leases.fence = parts.fence AND holder <> '')"

// Post adds the parts of a step in the caller's transaction: their jobs by their
// numbers, which are those of the parts of the run. What is left of runs that have
// another fence by now goes.
func Post(ctx context.Context, tx pgx.Tx, s Step, jobs map[int][]byte) error {
	if _, err := tx.Exec(ctx, "DELETE FROM parts WHERE NOT EXISTS (SELECT FROM leases WHERE name = "+leased+" AND leases.fence = parts.fence)"); err != nil {
		return fmt.Errorf("clear parts: %w", err)
	}
	for number, job := range jobs {
		_, err := tx.Exec(ctx, "INSERT INTO parts (sync, fence, number, deletes, job) VALUES ($1, $2, $3, $4, $5)", s.Sync, s.Fence, number, s.Deletes, job)
		if err != nil {
			return fmt.Errorf("post part %d: %w", number, err)
		}
	}
	return nil
}

// Rows reads the parts of a step in their order.
func (t *Table) Rows(ctx context.Context, s Step) (rows []Row, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.life)
	defer cancel()
	found, err := t.pool.Query(ctx, `SELECT number, process, until <= clock_timestamp(), ended, reports, report
		FROM parts WHERE sync = $1 AND fence = $2 AND deletes = $3 ORDER BY number`, s.Sync, s.Fence, s.Deletes)
	if err == nil {
		rows, err = pgx.CollectRows(found, pgx.RowToStructByPos[Row])
	}
	if err != nil {
		return nil, fmt.Errorf("read parts: %w", err)
	}
	return rows, nil
}

const claims = `UPDATE parts SET process = $1, until = clock_timestamp() + $2::bigint * interval '1 microsecond'
	WHERE (sync, fence, number, deletes) = (
		SELECT p.sync, p.fence, p.number, p.deletes FROM parts p
		JOIN leases l ON l.name = '` + lease.Sync + `' || p.sync AND l.fence = p.fence AND l.holder <> ''
		WHERE p.process = '' AND NOT p.ended AND NOT p.called AND ($3::bigint IS NULL OR
			p.sync = $3 AND p.fence = $4 AND p.number = $5 AND p.deletes = $6)
		ORDER BY p.sync, p.number FOR UPDATE OF p SKIP LOCKED LIMIT 1)
	RETURNING sync, fence, deletes, number, job`

// Claim takes a part that nobody has, that one or any where it is nil, and gives it
// with its job; nil where there is none.
func (t *Table) Claim(ctx context.Context, p *Part) (taken *Part, job []byte, err error) {
	args := []any{t.process, t.life.Microseconds(), nil, nil, nil, nil}
	if p != nil {
		args = append(args[:2], p.Sync, p.Fence, p.Number, p.Deletes)
	}
	taken = &Part{}
	err = t.pool.QueryRow(ctx, claims, args...).Scan(&taken.Sync, &taken.Fence, &taken.Deletes, &taken.Number, &job)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("take a part: %w", err)
	}
	return taken, job, nil
}

// Keep says that the part is worked on, with a report where there is one. It gives
// the numbers of the parts of the step that have not ended, this one among them; none
// where it is called off, where the run is another process's by now, and where the
// part was given to somebody else.
func (t *Table) Keep(ctx context.Context, p Part, report []byte) (working []int, err error) {
	return t.write(ctx, p, report, "FALSE", "NOT called AND "+fenced)
}

// End says that the part has come to its end.
func (t *Table) End(ctx context.Context, p Part, report []byte) error {
	_, err := t.write(ctx, p, report, "TRUE", "TRUE")
	return err
}

func (t *Table) write(ctx context.Context, p Part, report []byte, ended, when string) (working []int, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.life)
	defer cancel()
	err = t.pool.QueryRow(ctx, `UPDATE parts SET until = clock_timestamp() + $6::bigint * interval '1 microsecond', ended = `+ended+`,
			reports = reports + CASE WHEN $7::bytea IS NULL THEN 0 ELSE 1 END, report = coalesce($7, report)
		WHERE sync = $1 AND fence = $2 AND number = $3 AND deletes = $4 AND process = $5 AND NOT ended AND `+when+`
		RETURNING (SELECT array_agg(number) FROM parts WHERE sync = $1 AND fence = $2 AND deletes = $4 AND NOT ended)`,
		p.Sync, p.Fence, p.Number, p.Deletes, t.process, t.life.Microseconds(), report).Scan(&working)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("write of a part: %w", err)
	}
	return working, nil
}

// Free lets go of a part of which nothing is on its way any more; where it is called
// off it is over.
func (t *Table) Free(ctx context.Context, p Part) error {
	return t.change(ctx, `UPDATE parts SET process = '', until = 'infinity', ended = called
		WHERE sync = $1 AND fence = $2 AND number = $3 AND deletes = $4 AND process = $5 AND NOT ended`,
		p.Sync, p.Fence, p.Number, p.Deletes, t.process)
}

// CallOff tells all that work on a sync under a fence to stop.
func (t *Table) CallOff(ctx context.Context, sync, fence int64) error {
	return t.change(ctx, "UPDATE parts SET called = TRUE WHERE sync = $1 AND fence = $2", sync, fence)
}

// Drop clears a step whose parts have ended, or that nobody has begun.
func (t *Table) Drop(ctx context.Context, s Step) error {
	return t.change(ctx, "DELETE FROM parts WHERE sync = $1 AND fence = $2 AND deletes = $3 AND (ended OR process = '')", s.Sync, s.Fence, s.Deletes)
}

func (t *Table) change(ctx context.Context, statement string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, t.life)
	defer cancel()
	if _, err := t.pool.Exec(ctx, statement, args...); err != nil {
		return fmt.Errorf("change parts: %w", err)
	}
	return nil
}
