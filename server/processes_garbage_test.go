package server

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/cluster"
	"github.com/destkit/destkit/server/internal/cluster/member"
	"github.com/destkit/destkit/server/internal/faults"
)

// TestGarbageInTheDatabase: others may write there, or give notices, which every role
// may. Nothing falls over by it, and no one is misled.
func TestGarbageInTheDatabase(t *testing.T) {
	w, all := newFleet(t, RoleAPI, RoleWorker)
	for name, try := range map[string]func(*testing.T, *world, *Server){
		"notices": falseNotices, "faults": unreadableFaults,
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
	worker.member.OnNotice("end", func(text string) {
		if text != "" {
			close(heard)
		}
	})
	for _, said := range [][2]string{{cluster.TopicCancel, fmt.Sprint(run)}, {member.TopicHalt, fmt.Sprint(id)}, {"end", "of it"}} {
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
	_, err := w.s.store.Pool().Exec(t.Context(), "UPDATE control SET state = '{' WHERE name = $1", faults.Setting)
	require.NoError(t, err)
	w.control("GET", "/faults", nil).want(http.StatusInternalServerError)
	w.control("DELETE", "/faults", nil).want(http.StatusOK)
	arm()
	w.control("DELETE", "/faults", nil).want(http.StatusOK)
}
