package jobs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// orphans are jobs that this process was given and does not know: the connection
// broke between the statement that took them and its answer. River would have them
// wait for as long as a job may last, and to everybody else their process is alive.
type orphans struct {
	sync.Mutex
	mine     map[int64]time.Time // what was worked on, and when it ended; zero: it is
	suspects map[int64]bool      // unknown at the last look
}

// River writes down the end of a job a moment later, or once there is a database
// again.
const endTime = 10 * time.Minute

// mind remembers that a job is worked on, until its end is written down.
func (o *orphans) mind(id int64) (ended func()) {
	set := func(t time.Time) {
		o.Lock()
		defer o.Unlock()
		o.mine[id] = t
	}
	set(time.Time{})
	return func() { set(time.Now()) }
}

// known lists the jobs that are no orphans.
func (o *orphans) known() []int64 {
	o.Lock()
	defer o.Unlock()
	ids := []int64{}
	for id, ended := range o.mine {
		if !ended.IsZero() && time.Since(ended) > endTime {
			delete(o.mine, id)
			continue
		}
		ids = append(ids, id)
	}
	return ids
}

// certain keeps those that were unknown at the last look, too: after a pause of the
// whole process an answer may just be on its way.
func (o *orphans) certain(found []int64) (certain []int64) {
	o.Lock()
	defer o.Unlock()
	before := o.suspects
	o.suspects = map[int64]bool{}
	for _, id := range found {
		if before[id] {
			certain = append(certain, id)
		} else {
			o.suspects[id] = true
		}
	}
	return certain
}

const (
	findOrphans = `SELECT id FROM river_job
		WHERE state = 'running' AND attempted_by[array_upper(attempted_by, 1)] = $1 AND id <> ALL ($2)`
	// A row that River cannot read is an orphan, too, together with all that were
	// taken with it. So what is not needed goes, and a moment that is none is now: the
	// next one who takes it can read it.
	freeOrphans = `UPDATE river_job SET state = 'available', attempt = greatest(attempt - 1, 0),
			attempted_at = NULL, attempted_by = NULL, errors = NULL, metadata = '{}', tags = '{}',
			created_at = CASE WHEN isfinite(created_at) THEN created_at ELSE clock_timestamp() END,
			scheduled_at = CASE WHEN isfinite(scheduled_at) THEN scheduled_at ELSE clock_timestamp() END
		WHERE state = 'running' AND attempted_by[array_upper(attempted_by, 1)] = $1 AND id = ANY ($2)`
)

// free gives the orphans of this process back to all.
func (q *Queue) free(ctx context.Context) error {
	rows, err := q.o.Pool.Query(ctx, findOrphans, q.o.Process, q.orphans.known())
	var found []int64
	if err == nil {
		found, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	}
	if certain := q.orphans.certain(found); err == nil && len(certain) > 0 {
		if _, err = q.o.Pool.Exec(ctx, freeOrphans, q.o.Process, certain); err == nil {
			q.log.Warn("runs were given to this process and never arrived; they are handed back", "runs", len(certain))
			err = q.notify(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("look for jobs that never arrived: %w", err)
	}
	return nil
}
