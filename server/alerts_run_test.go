package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/lifecycle"
)

// TestAlertsOfRealRuns: each of the six kinds by what the executor itself
// reports, from rows that are refused to a source that is gone.
func TestAlertsOfRealRuns(t *testing.T) {
	proves(t, "F-6-06", "F-6-07")
	w := newSyncWorld(t)
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	l := w.listen()
	w.hook(l, lifecycle.EventRaised, lifecycle.EventResolved)
	source := `DELETE FROM customers;
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO customers (id, email, name) SELECT i, 'user' || i || '@example.com', '%s' FROM n;`
	w.changeSource(fmt.Sprintf(source, 8, "first"))
	n := func(v int64) map[string]any { return map[string]any{"threshold": v} }
	id := w.kept(map[string]any{"alert_attributes": []any{
		alertOf(api.AlertFailure, "first_time", true, nil),
		alertOf(api.AlertInvalidRecordPercent, "first_time", true, n(50)),
		alertOf(api.AlertFullSyncTrigger, "first_time", true, nil),
		alertOf(api.AlertRecordCountDeviation, "every_time", true, map[string]any{"threshold": 60, "record_type": "source_record_count", "run_count": 2}),
		alertOf(api.AlertRuntime, "first_time", true, map[string]any{"threshold": 10, "unit": "minutes", "start_type": "actual"}),
		alertOf(api.AlertStatus, "first_time", true, map[string]any{"status_name": "completed"}),
	}}).id("data.id")
	arm := func(f destsim.Fault) {
		f.When.Method = rpc.MethodSyncBatch
		_, err := w.sim.ArmFault(f)
		require.NoError(t, err)
	}
	for _, step := range []struct {
		name, query, source string
		fault               *destsim.Fault
		status              string
		hooks               []string
	}{
		{name: "the first run", status: "completed", hooks: []string{"+Sync Completed"}},
		{name: "a full sync", query: "?force_full_sync=true", status: "completed", hooks: []string{"+Full Sync Triggered", "+Sync Completed"}},
		{
			name: "rows that are refused", source: fmt.Sprintf(source, 8, "second"), status: "completed",
			fault: &destsim.Fault{Kind: "record_failure", When: destsim.Trigger{Times: 12}},
			hooks: []string{"+Invalid or Rejected Records", "-Full Sync Recovered", "+Sync Completed"},
		},
		{name: "all is well again", status: "completed", hooks: []string{"-Invalid or Rejected Records Recovered", "+Sync Completed"}},
		{name: "twice the rows", source: fmt.Sprintf(source, 16, "third"), status: "completed", hooks: []string{"+Record Count Deviation", "+Sync Completed"}},
		{name: "still more", source: fmt.Sprintf(source, 32, "fourth"), status: "completed", hooks: []string{"+Record Count Deviation", "+Sync Completed"}},
		{name: "as many as the two before on average", source: fmt.Sprintf(source, 24, "fifth"), status: "completed", hooks: []string{"-Record Count Deviation Recovered", "+Sync Completed"}},
		{
			name: "a run that has to wait", source: fmt.Sprintf(source, 24, "sixth"), status: "completed",
			fault: &destsim.Fault{Kind: "throttle", RetryAfter: "seconds", Seconds: 3600, When: destsim.Trigger{Times: 15}},
			hooks: []string{"+Sync Runtime Exceeded", "+Sync Completed"},
		},
		{name: "a run in time", status: "completed", hooks: []string{"-Sync Runtime Recovered", "+Sync Completed"}},
		{name: "no source", source: "ALTER TABLE customers RENAME TO gone", status: "failed", hooks: []string{"+Sync Failed"}},
		{name: "still none", status: "failed"},
		{name: "there it is", source: "ALTER TABLE gone RENAME TO customers", status: "completed", hooks: []string{"-Sync Recovered", "+Sync Completed"}},
	} {
		if step.source != "" {
			w.changeSource(step.source)
		}
		if step.fault != nil {
			arm(*step.fault)
		}
		run := w.do("POST", fmt.Sprintf("/syncs/%d/trigger%s", id, step.query), w.key, nil).want(200).id("data.sync_run_id")
		w.control("POST", "/clock", `{"advance":"1h"}`).want(200)
		a := w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200)
		require.Equal(t, step.status, a.at("data.status"), "%s: %s", step.name, a.text)
		hooks, mails := w.notices(l)
		require.ElementsMatch(t, step.hooks, hooks, step.name)
		require.ElementsMatch(t, step.hooks, mails, step.name)
		for _, f := range w.sim.Faults() {
			_ = w.sim.DisarmFault(f.ID) // one that is spent is gone
		}
	}
}
