//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/api"
)

// TestMatrixProcessesSurvive: while the rows of eight syncs change and each runs
// again as soon as it may, a worker is killed, frozen past its lease or cut off from
// the database every few seconds. At the end no run is stuck, every run is over, and
// what the destinations hold is what the sources have, by the audit.
func TestMatrixProcessesSurvive(t *testing.T) {
	length := 45 * time.Second
	if given := os.Getenv("DESTKIT_CHAOS"); given != "" {
		var err error
		length, err = time.ParseDuration(given)
		require.NoError(t, err)
	} else if os.Getenv("DESTKIT_TIER") != "matrix" {
		t.Skip("part of make matrix; make chaos runs it for five minutes")
	}
	const seed, rows, many = 1, 4000, 8
	in := newInstallation(t)
	in.start("api")
	workers := make([]*process, 3)
	for i := range workers {
		workers[i] = in.start("worker", "--workers", "4")
	}
	in.tables(many, rows)
	from := in.make("/sources", map[string]any{"connection": map[string]any{
		"name": "Shop", "type": "postgres", "credentials": map[string]any{
			"host": "127.0.0.1", "port": in.database.Port, "database": "postgres", "username": testkit.PostgresUser, "password": testkit.PostgresPassword, "sslmode": "disable",
		}}})
	speed := rpc.Speed{MaximumBatchSize: 50, MaximumParallelBatches: 4, MaximumRecordsPerSecond: 1500}
	destinations := []*seeing{newSeeing(t, destsim.Config{Objects: things(many), Speed: speed}, 500), newSeeing(t, destsim.Config{Objects: things(many), Speed: speed}, 500)}
	var syncs []int64
	for i := range many {
		to := int64(0)
		if i < len(destinations) {
			to = in.destination(fmt.Sprintf("destination %d", i), destinations[i].server.URL)
			require.EqualValues(t, i+1, to)
		}
		operation := []string{api.OperationUpsert, api.OperationMirror}[i/2%2]
		syncs = append(syncs, in.sync(from, int64(i%2+1), thing(i), operation, map[string]any{
			"type": api.ObjectTable, "table_catalog": "postgres", "table_schema": in.schema + "_rows", "table_name": thing(i),
		}, "id", "first", "second"))
	}
	random := rand.New(rand.NewPCG(seed, 0))
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	changed, triggered := make(chan int), make(chan []int64)
	go func() { changed <- in.change(ctx, many, rows, seed) }()
	go func() { triggered <- in.runAgain(ctx, syncs) }()
	did := map[string]int{}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(2*time.Second + time.Duration(random.IntN(4000))*time.Millisecond):
			i := random.IntN(len(workers))
			what := in.trouble(workers, i, random)
			did[what]++
		}
	}
	changes, runs := <-changed, <-triggered
	for _, w := range workers {
		w.cable.mend()
		w.signal(syscall.SIGCONT)
	}
	require.NotEmpty(t, runs)
	ends := map[string]int{}
	for _, id := range runs {
		r := in.wait(id)
		if r.ErrorCode != nil {
			r.Status += " " + *r.ErrorCode
		}
		ends[r.Status]++
	}
	for i, id := range syncs {
		last := in.wait(in.run(id))
		require.Equal(t, api.RunCompleted, last.Status, "sync %d: %v", id, last.ErrorMessage)
		a := in.audit(id, destinations[i%2].server.URL)
		require.True(t, a.Clean, "sync %d: %v %v", id, a.Totals, a.Findings)
		require.NotZero(t, a.Checked.Source)
		require.GreaterOrEqual(t, a.Checked.Destination, a.Checked.Source)
	}
	t.Logf("%s: troubles %v; %d changes of rows; runs by their end %v", length, did, changes, ends)
}

// tables are the sources, with rows.
func (in *installation) tables(many, rows int) {
	_, err := in.admin.Exec(in.t.Context(), fmt.Sprintf(`CREATE SCHEMA %s_rows`, in.schema))
	require.NoError(in.t, err)
	for i := range many {
		_, err := in.admin.Exec(in.t.Context(), fmt.Sprintf(`CREATE TABLE %[1]s_rows.%[2]s (id bigint PRIMARY KEY, first text, second text);
			INSERT INTO %[1]s_rows.%[2]s SELECT n, 'first ' || n, 'second ' || n FROM generate_series(1, %[3]d) n`, in.schema, thing(i), rows))
		require.NoError(in.t, err)
	}
}

// change changes, adds and removes rows until ctx ends, and counts them.
func (in *installation) change(ctx context.Context, many, rows int, seed uint64) (changes int) {
	random := rand.New(rand.NewPCG(seed, 1))
	conn, err := pgx.Connect(ctx, in.admin.Config().ConnString())
	if err != nil {
		in.t.Error(err)
		return 0
	}
	defer conn.Close(context.Background())
	for next := rows; ctx.Err() == nil; {
		table := in.schema + "_rows." + thing(random.IntN(many))
		next++
		tag, err := conn.Exec(context.Background(), fmt.Sprintf(`WITH gone AS (DELETE FROM %[1]s WHERE id BETWEEN %[2]d AND %[3]d RETURNING 1),
			new AS (INSERT INTO %[1]s VALUES (%[4]d, 'new', 'new') ON CONFLICT DO NOTHING RETURNING 1)
			UPDATE %[1]s SET first = 'changed ' || %[4]d WHERE id BETWEEN %[5]d AND %[6]d`,
			table, random.IntN(next), random.IntN(next), next, random.IntN(next), random.IntN(next)))
		if err != nil {
			in.t.Error(err)
			return changes
		}
		changes += int(tag.RowsAffected())
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
	return changes
}

// runAgain triggers every sync again and again, and gives all runs.
func (in *installation) runAgain(ctx context.Context, syncs []int64) (runs []int64) {
	for ctx.Err() == nil {
		for _, id := range syncs {
			if run, err := in.api.Trigger(ctx, id, false); err == nil {
				runs = append(runs, run)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return runs
}

// trouble does something to a worker, and says what. A frozen or cut one comes back
// after a while, a killed one gets a successor.
func (in *installation) trouble(workers []*process, i int, random *rand.Rand) string {
	p := workers[i]
	later := time.Duration(1+random.IntN(20)) * time.Second
	switch random.IntN(4) {
	case 0:
		p.kill()
		workers[i] = in.start("worker", "--workers", "4")
		return "killed"
	case 1:
		p.signal(syscall.SIGSTOP)
		time.AfterFunc(later, func() { p.signal(syscall.SIGCONT) })
		return "frozen"
	case 2:
		p.cable.sever()
		time.AfterFunc(later, p.cable.mend)
		return "cut off"
	default:
		p.cable.numb()
		time.AfterFunc(later, p.cable.mend)
		return "cut off without a word"
	}
}
