package jobs

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/destkit/destkit/server/internal/cluster/lease"
)

const lost = `SELECT o.run, o.workspace, o.sync, o.turn
	FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS o (run, workspace, sync, turn, place)
	WHERE NOT EXISTS (
		SELECT FROM river_job j
		WHERE j.kind = $5 AND j.args @> jsonb_build_object('sync', o.sync, 'run', o.run, 'turn', o.turn)
		AND (j.state IN ('available', 'pending', 'retryable', 'scheduled') OR j.state = 'running' AND EXISTS (
			SELECT FROM processes p
			WHERE p.id = j.attempted_by[array_upper(j.attempted_by, 1)] AND ` + lease.Alive + `))
	) ORDER BY o.place`

// Lost gives those of the open runs on which no process works and none will: their job
// was that of a process that is dead by now, has ended or is gone. Whoever finds them
// adds the next turn where no lease stands against it: in a transaction that looks
// whether the run is still open, and at this turn. A process must be on the list of
// processes (lease.Enter) before it starts its workers.
func (q *Queue) Lost(ctx context.Context, open []Run) ([]Run, error) {
	if len(open) == 0 {
		return nil, nil
	}
	var runs, workspaces, syncs, turns []int64
	for _, r := range open {
		runs, workspaces, syncs, turns = append(runs, r.ID), append(workspaces, r.WorkspaceID), append(syncs, r.SyncID), append(turns, r.Turn)
	}
	rows, err := q.o.Pool.Query(ctx, lost, runs, workspaces, syncs, turns, turn{}.Kind())
	var found []Run
	if err == nil {
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Run])
	}
	if err != nil {
		return nil, fmt.Errorf("look for lost runs: %w", err)
	}
	return found, nil
}
