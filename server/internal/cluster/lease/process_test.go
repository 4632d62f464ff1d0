package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process is on the list from Enter to Leave, alive while it beats, and forgotten
// a day after its last beat.
func TestProcesses(t *testing.T) {
	pool := tables(t, "processes")
	ctx := t.Context()
	a, b := New(pool, "a"), New(pool, "b")
	list := func() map[string]Process {
		all, err := a.Processes(ctx)
		require.NoError(t, err)
		byID := map[string]Process{}
		for _, p := range all {
			byID[p.ID] = p
		}
		require.Len(t, all, len(byID))
		return byID
	}
	silent := func(id string, since time.Duration) {
		execute(t, pool, "UPDATE processes SET seen = clock_timestamp() - $2::bigint * interval '1 microsecond' WHERE id = $1", id, since.Microseconds())
	}
	require.NoError(t, a.Beat(ctx)) // it has not entered
	require.Empty(t, list())

	require.NoError(t, a.Enter(ctx, Process{ID: "not looked at", Role: "all", Version: "1.2", Address: "http://127.0.0.1:1"}))
	first := list()["a"]
	require.Equal(t, Process{ID: "a", Role: "all", Version: "1.2", Address: "http://127.0.0.1:1", Started: first.Started, Seen: first.Seen, Alive: true}, first)
	require.NoError(t, b.Enter(ctx, Process{Role: "worker"}))
	all, err := b.Processes(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, []string{all[0].ID, all[1].ID})

	silent("a", 11*time.Second)
	require.False(t, list()["a"].Alive)
	require.NoError(t, a.Beat(ctx))
	require.True(t, list()["a"].Alive)
	require.True(t, list()["a"].Started.Equal(first.Started))

	silent("a", 23*time.Hour)
	require.NoError(t, b.Beat(ctx))
	require.Len(t, list(), 2)
	silent("a", 25*time.Hour)
	require.NoError(t, b.Beat(ctx))
	require.Len(t, list(), 1)
	require.NoError(t, a.Beat(ctx)) // it was only frozen
	back := list()["a"]
	require.True(t, back.Alive)
	require.Equal(t, "all", back.Role)
	require.True(t, back.Started.Equal(first.Started))

	require.NoError(t, a.Leave(ctx))
	require.NoError(t, a.Beat(ctx)) // a beat that comes too late
	require.Len(t, list(), 1)
	require.NoError(t, a.Enter(ctx, Process{Role: "all"}))
	require.False(t, list()["a"].Started.Before(back.Started))
}

// Moments that no process can have written keep no one from the list, and do not last.
func TestImpossibleProcesses(t *testing.T) {
	pool := tables(t, "processes_impossible")
	ctx := t.Context()
	a := New(pool, "a")
	require.NoError(t, a.Enter(ctx, Process{Role: "all"}))
	for _, moments := range []string{"'-infinity', now()", "now(), 'infinity'", "now(), now() + interval '1 hour'"} {
		execute(t, pool, "INSERT INTO processes VALUES ('ghost', '', '', '', "+moments+")")
		execute(t, pool, "UPDATE processes SET started = '-infinity' WHERE id = 'a'")
		require.NoError(t, a.Beat(ctx))
		all, err := a.Processes(ctx)
		require.NoError(t, err)
		require.Len(t, all, 1, moments)
	}
}
