package server

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestGarbageInTheDatabase: others may write there, or give notices, which every role
// may. Nothing falls over by it, and nobody is misled.
func TestGarbageInTheDatabase(t *testing.T) {
	w, all := newFleet(t, RoleAPI, RoleWorker)
	for name, try := range map[string]func(*testing.T, *world, *Server){
		"notices": falseNotices, "faults": unreadableFaults, "parts": unreadableParts,
	} {
		t.Run(name, func(t *testing.T) { try(t, w, all[1]) })
	}
}

// falseNotices end no run.
func falseNotices(t *testing.T, w *world, worker *Server) {
	id := w.newSync()
	reached, release := w.hold()
	run := w.trigger(id)
	<-reached
	heard := make(chan struct{})
	worker.onNotice("end", func(text string) {
		if text != "" {
			close(heard)
		}
	})
	for _, said := range [][2]string{{topicCancel, fmt.Sprint(run)}, {topicHalt, fmt.Sprint(id)}, {"end", "of it"}} {
		require.NoError(t, w.s.store.Tell(t.Context(), said[0], said[1]))
	}
	<-heard
	release()
	w.control("POST", "/settle", nil).want(http.StatusOK)
	require.Equal(t, "completed", w.shownRun(run).at("data.status"))
}

// unreadableFaults can be forgotten.
func unreadableFaults(t *testing.T, w *world, _ *Server) {
	arm := func() { w.control("POST", "/faults", map[string]any{"kind": "status"}).want(http.StatusCreated) }
	arm()
	_, err := w.s.store.Pool().Exec(t.Context(), "UPDATE control SET state = '{' WHERE name = $1", settingFaults)
	require.NoError(t, err)
	w.control("GET", "/faults", nil).want(http.StatusInternalServerError)
	w.control("DELETE", "/faults", nil).want(http.StatusOK)
	arm()
	w.control("DELETE", "/faults", nil).want(http.StatusOK)
}

// unreadableParts of a run end with the reason, for whoever waits for them.
func unreadableParts(t *testing.T, w *world, worker *Server) {
	pool := w.s.store.Pool()
	_, err := pool.Exec(t.Context(), "INSERT INTO leases VALUES ('sync 999', 5, 'other', clock_timestamp() + interval '1 hour')")
	require.NoError(t, err)
	for i, job := range []string{"[]", "{}", `{"sync": 999, "fence": 5, "number": 1, "run": "x"}`} {
		_, err := pool.Exec(t.Context(), "INSERT INTO parts (sync, fence, number, deletes, job) VALUES (999, 5, $1, FALSE, $2)", i+1, []byte(job))
		require.NoError(t, err)
	}
	require.NoError(t, w.s.store.Tell(t.Context(), topicPart, ""))
	var told []string
	require.Eventually(t, func() bool {
		rows, err := pool.Query(t.Context(), "SELECT convert_from(report, 'UTF8') FROM parts WHERE ended ORDER BY number")
		require.NoError(t, err)
		told, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return len(told) == 3
	}, time.Minute, 5*time.Millisecond)
	for i, report := range told {
		require.Contains(t, report, fmt.Sprintf("part %d of the run cannot be read: process %s", i+1, worker.fleet.id))
	}
}
