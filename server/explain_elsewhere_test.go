package server

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestToldOfAnotherProcess: what a record went through and what a destination has are
// told by any process, also while another one works on the run.
func TestToldOfAnotherProcess(t *testing.T) {
	w, all := newFleet(t, RoleAPI, RoleWorker)
	worker := all[1].config.Process
	id := w.newSync()
	asked := fmt.Sprintf("/explain?sync_id=%d&identifier=ada@example.com", id)
	reached, release := w.hold()
	run := w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, nil).want(http.StatusOK).id("data.sync_run_id")
	<-reached
	for _, s := range all {
		at := w.other(s).control("GET", asked, nil).want(http.StatusOK)
		require.Equal(t, run, at.id("sync_run_id"))
		require.Equal(t, "left", at.at("decision"))
		require.Contains(t, at.at("reason"), "the run is still active")
	}
	release()
	w.control("POST", "/settle", nil).want(http.StatusOK)
	for _, s := range all {
		told := w.other(s).control("GET", asked, nil).want(http.StatusOK)
		require.Equal(t, "sent", told.at("decision"))
		require.Equal(t, "succeeded", told.at("verdict"))
		require.Equal(t, "Ada", told.at("attempts.0.exchange.request.records.0.last_name"))
		require.Equal(t, worker, told.at("attempts.0.exchange.process"))
		w.other(s).clean(id)
	}
}
