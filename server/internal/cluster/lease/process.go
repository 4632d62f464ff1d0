package lease

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Alive is the condition on a row of the table by which its process is alive, for
// all who ask. It should call Beat three times in that time.
const Alive = "seen > clock_timestamp() - interval '10 seconds'"

// Process is one that works on the installation, or did within the last day. The
// moments are the database's.
type Process struct {
	ID, Role, Version, Address string
	Started, Seen              time.Time
	Alive                      bool
}

// entry is what this process says of itself.
type entry struct {
	sync.Mutex
	process Process
	here    bool
}

// What has been dead for a day is forgotten, and what no process can have written:
// it would live for ever. The table is as short as the list of processes.
const enter = `WITH forgotten AS (DELETE FROM processes WHERE id <> $1 AND (seen < clock_timestamp() - interval '1 day'
		OR seen > clock_timestamp() + interval '1 minute' OR NOT isfinite(started)))
	INSERT INTO processes (id, role, version, address, started, seen)
	VALUES ($1, $2, $3, $4, coalesce($5, clock_timestamp()), clock_timestamp())
	ON CONFLICT (id) DO UPDATE SET role = excluded.role, version = excluded.version, address = excluded.address, started = excluded.started, seen = clock_timestamp()
	RETURNING started`

// Enter puts this process on the list, under the id of its leases. The moments and
// the id of p are not looked at.
func (l *Leases) Enter(ctx context.Context, p Process) error {
	l.entry.Lock()
	defer l.entry.Unlock()
	p.Started = time.Time{}
	return l.write(ctx, p)
}

// Beat says that this process is alive. One that was forgotten meanwhile is put on
// the list again. Before Enter and after Leave it does nothing.
func (l *Leases) Beat(ctx context.Context) error {
	l.entry.Lock()
	defer l.entry.Unlock()
	if !l.entry.here {
		return nil
	}
	return l.write(ctx, l.entry.process)
}

func (l *Leases) write(ctx context.Context, p Process) error {
	var started *time.Time
	if !p.Started.IsZero() {
		started = &p.Started
	}
	err := l.pool.QueryRow(ctx, enter, l.holder, p.Role, p.Version, p.Address, started).Scan(&p.Started)
	if err != nil {
		return fmt.Errorf("list process %s: %w", l.holder, err)
	}
	l.entry.process, l.entry.here = p, true
	return nil
}

// Leave takes this process off the list.
func (l *Leases) Leave(ctx context.Context) error {
	l.entry.Lock()
	defer l.entry.Unlock()
	l.entry.here = false
	if _, err := l.pool.Exec(ctx, "DELETE FROM processes WHERE id = $1", l.holder); err != nil {
		return fmt.Errorf("take process %s off the list: %w", l.holder, err)
	}
	return nil
}

// Processes lists them, the oldest first.
func (l *Leases) Processes(ctx context.Context) ([]Process, error) {
	rows, err := l.pool.Query(ctx, "SELECT id, role, version, address, started, seen, "+Alive+" FROM processes ORDER BY started, id")
	var all []Process
	if err == nil {
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Process])
	}
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return all, nil
}
