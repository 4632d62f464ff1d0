package server

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/internal/cluster/lease"
)

// TestQueuedRunsThatNeverStart: a run that was to start here, and is cancelled or gone
// with its world before its turn comes, is not waited for.
func TestQueuedRunsThatNeverStart(t *testing.T) {
	for name, ends := range map[string]func(w *syncWorld, run int64, before []byte) error{
		"cancelled": func(w *syncWorld, run int64, _ []byte) error {
			if a := w.do("POST", fmt.Sprintf("/sync_runs/%d/cancel", run), w.key, nil); a.code != 200 {
				return errors.New(string(a.text))
			}
			return nil
		},
		"gone with its world": func(w *syncWorld, _ int64, before []byte) error {
			return w.s.Restore(w.t.Context(), bytes.NewReader(before))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSyncWorld(t, func(c *Config) {
				c.Store, c.MasterKey, c.pulse = postgresURL(testkit.StartPostgres(t)), make([]byte, masterKeySize), quickPulse()
			})
			id := w.kept(nil).id("data.id")
			var before bytes.Buffer
			require.NoError(t, w.s.Snapshot(t.Context(), &before))
			// As at the end of the run before. The job comes to the lease while it is taken,
			// so the world is not replaced before.
			pool := w.s.store.Pool()
			others := lease.New(pool, "another")
			held, err := others.Take(t.Context(), lease.OfSync(id), time.Hour)
			require.NoError(t, err)
			require.NoError(t, others.Give(t.Context(), held))
			taking, err := pool.Begin(t.Context())
			require.NoError(t, err)
			held.Fence++
			_, err = taking.Exec(t.Context(), "UPDATE leases SET holder = 'another', until = clock_timestamp() + interval '1 hour', fence = $2 WHERE name = $1", held.Name, held.Fence)
			require.NoError(t, err)
			run := w.trigger(id)
			require.Contains(t, w.control("GET", "/clock", nil).want(200).at("running"), "queued sync runs")
			w.eventuallyInStore(fmt.Sprintf("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE %d = ANY (pg_blocking_pids(pid)))", taking.Conn().PgConn().PID()))
			require.NoError(t, taking.Commit(t.Context()))
			ended := make(chan error, 1)
			go func() { ended <- ends(w, run, before.Bytes()) }()
			w.eventuallyInStore("SELECT EXISTS (SELECT FROM river_job WHERE state = 'completed')")
			require.NoError(t, others.Give(t.Context(), held))
			require.NoError(t, <-ended)
			require.NoError(t, w.s.Settle(t.Context()))
		})
	}
}

// TestARunThatEndedElsewhere: it was to start here, and no job of it is left: a process
// before has ended it, or a client has deleted it.
func TestARunThatEndedElsewhere(t *testing.T) {
	w := newSyncWorld(t, func(c *Config) {
		c.Store, c.MasterKey = postgresURL(testkit.StartPostgres(t)), make([]byte, masterKeySize)
	})
	y, run := w.begin(w.kept(nil).id("data.id"))
	w.s.engine.Expect(t.Context(), run)
	require.Contains(t, w.control("GET", "/clock", nil).want(200).at("running"), "queued sync runs")
	w.end(y, run, "")
	require.NoError(t, w.s.Settle(t.Context()))
}

// eventuallyInStore waits until a question to the database has the answer true.
func (w *syncWorld) eventuallyInStore(question string) {
	w.t.Helper()
	w.eventually(func() (is bool) {
		require.NoError(w.t, w.s.store.Pool().QueryRow(w.t.Context(), question).Scan(&is))
		return is
	})
}
