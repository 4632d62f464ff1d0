package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/store"
)

// alerting is a world with a webhook that hears of alerts.
func alerting(t *testing.T) (*world, *listener) {
	t.Helper()
	w := frozen(t)
	l := w.listen()
	w.newSource()
	w.newDestination()
	w.hook(l, lifecycle.EventRaised, lifecycle.EventResolved)
	return w, l
}

// alerted is a sync with these alerts only.
func (w *world) alerted(alerts ...any) int64 {
	w.t.Helper()
	if alerts == nil {
		alerts = []any{}
	}
	return w.do("POST", "/syncs", w.key, changed(map[string]any{"alert_attributes": alerts})).want(200).id("data.sync_id")
}

// within makes the world one of a subtest.
func (w *world) within(t *testing.T) {
	outer := w.t
	w.t = t
	t.Cleanup(func() { w.t = outer })
}

// changed is a sync with changes, whole, as the spec dialect wants updates.
func changed(changes map[string]any) map[string]any {
	body := syncBody(1, 1)
	maps.Copy(body, changes)
	return body
}

func alertOf(typ, sendFor string, recovery bool, options map[string]any) map[string]any {
	return map[string]any{"type": typ, "send_for": sendFor, "should_send_recovery": recovery, "options": options}
}

// notices are what the listener heard and the mailbox got since the last time:
// + raised, - resolved, with the message.
func (w *world) notices(l *listener) (hooks, mails []string) {
	w.t.Helper()
	for _, h := range l.take() {
		var body struct{ Event, Message string }
		require.NoError(w.t, json.Unmarshal([]byte(h.body), &body))
		sign := map[string]string{lifecycle.EventRaised: "+", lifecycle.EventResolved: "-"}[body.Event]
		hooks = append(hooks, sign+body.Message)
	}
	for _, m := range w.control("GET", "/mailbox", nil).want(200).objects("mails") {
		sign := map[string]string{"alert": "+", "recovery": "-"}[m["kind"].(string)]
		mails = append(mails, sign+strings.TrimPrefix(m["subject"].(string), "Customers: "))
	}
	w.control("DELETE", "/mailbox", nil).want(200)
	return hooks, mails
}

// says demands the notices since the last call; the number of mails is the same unless given.
func (w *world) says(l *listener, hooks ...string) {
	w.t.Helper()
	heard, mails := w.notices(l)
	require.Equal(w.t, hooks, heard)
	require.ElementsMatch(w.t, hooks, mails)
}

// TestCancelledRunRaisesNothing: it has not failed, and has not recovered.
func TestCancelledRunRaisesNothing(t *testing.T) {
	w, l := alerting(t)
	id := w.alerted(alertOf(api.AlertFailure, "every_time", true, nil))
	cancelled := func() { w.run(id, "", func(r *api.SyncRun) { r.Canceled = true; r.Status = api.RunFailed }) }
	cancelled()
	w.says(l)
	w.run(id, "broken")
	w.says(l, "+Sync Failed")
	cancelled()
	w.says(l)
	w.run(id, "")
	w.says(l, "-Sync Recovered")
}

// TestAlertBody: exactly as published; the instance is the same in
// both events, and another one the next time.
func TestAlertBody(t *testing.T) {
	w, l := alerting(t)
	id := w.alerted(alertOf(api.AlertFailure, "first_time", true, nil))
	var instances []int64
	for range 2 {
		for _, failure := range []string{"no such table", ""} {
			w.run(id, failure)
			var body struct {
				ID int64 `json:"alert_instance_id"`
			}
			list := l.take()
			require.Len(t, list, 1)
			require.NoError(t, json.Unmarshal([]byte(list[0].body), &body))
			message, details, event := "Sync Recovered", "Sync has recovered", lifecycle.EventResolved
			if failure != "" {
				message, details, event = "Sync Failed", "Sync has failed with error: no such table", lifecycle.EventRaised
			}
			run := len(instances) + 1
			require.Equal(t, fmt.Sprintf(`{"workspace_id":1,"sync_id":%d,"sync_run_id":%d,"alert_instance_id":%d,`+
				`"alert_type":"FailureAlertConfiguration","message":%q,"details":%q,"followup_url":"/api/v1/sync_runs/%d","event":%q}`,
				id, run, body.ID, message, details, run, event), list[0].body)
			instances = append(instances, body.ID)
		}
	}
	require.Equal(t, instances[0], instances[1])
	require.Equal(t, instances[2], instances[3])
	require.NotEqual(t, instances[0], instances[2])
}

// TestRecoveryIsAskedFor: without should_send_recovery no one gets an e-mail;
// webhooks hear of it nevertheless.
func TestRecoveryIsAskedFor(t *testing.T) {
	w, l := alerting(t)
	id := w.alerted(alertOf(api.AlertFailure, "first_time", false, nil))
	w.run(id, "broken")
	w.says(l, "+Sync Failed")
	w.run(id, "")
	hooks, mails := w.notices(l)
	require.Equal(t, []string{"-Sync Recovered"}, hooks)
	require.Empty(t, mails)
}

func TestInvalidRecordPercentAlert(t *testing.T) {
	w, l := alerting(t)
	const up, down = "+Invalid or Rejected Records", "-Invalid or Rejected Records Recovered"
	for name, tc := range map[string]struct {
		threshold                  int64
		processed, failed, invalid int64
		rows                       int64 // that the source holds; 0: as many as were dealt with
		raised                     bool
	}{
		"none":                     {75, 100, 0, 0, 0, false},
		"nothing to do":            {0, 0, 0, 0, 0, false},
		"below":                    {50, 100, 49, 0, 0, false},
		"at the threshold":         {50, 100, 50, 0, 0, true},
		"both kinds":               {50, 80, 30, 20, 0, true},
		"any at all":               {0, 1000, 0, 1, 0, true},
		"all":                      {100, 0, 0, 3, 0, true},
		"nearly all":               {100, 100, 99, 0, 0, false},
		"one of many, unchanged":   {1, 1, 1, 0, 10_001, false},
		"one of many invalid":      {1, 0, 0, 1, 10_001, false},
		"one of many, any at all":  {0, 1, 1, 0, 10_001, true},
		"a tenth of what is there": {10, 10, 10, 0, 100, true},
	} {
		t.Run(name, func(t *testing.T) {
			w.within(t)
			id := w.alerted(alertOf(api.AlertInvalidRecordPercent, "first_time", true, map[string]any{"threshold": tc.threshold}))
			w.run(id, "broken", counts(100, 100, 0))
			w.says(l) // it is about runs that complete
			w.run(id, "", counts(tc.processed, tc.failed, tc.invalid), func(r *api.SyncRun) {
				if tc.rows > 0 {
					r.SourceRecordCount = &tc.rows
				}
			})
			if !tc.raised {
				w.says(l)
				return
			}
			w.says(l, up)
			w.run(id, "", counts(0, 0, 0))
			w.says(l, down)
		})
	}
}

func TestFullSyncTriggerAlert(t *testing.T) {
	full := func(r *api.SyncRun) { r.FullSync = true }
	w, l := alerting(t)
	id := w.alerted(alertOf(api.AlertFullSyncTrigger, "every_time", true, nil))
	y, run := w.begin(id, full)
	w.settle()
	w.says(l, "+Full Sync Triggered") // as soon as it starts
	w.end(y, run, "")
	w.says(l)
	y, run = w.begin(id)
	w.settle()
	w.says(l)
	w.end(y, run, "", full, func(r *api.SyncRun) { r.TriggerReason.UIDetail += "; full sync: the state is damaged" })
	list := l.take()
	require.Contains(t, list[0].body, "A full sync was triggered: Manually triggered; full sync: the state is damaged")
	w.control("DELETE", "/mailbox", nil)
	w.run(id, "")
	w.says(l, "-Full Sync Recovered")
}

func TestRecordCountDeviationAlert(t *testing.T) {
	w, l := alerting(t)
	const up, down = "+Record Count Deviation", "-Record Count Deviation Recovered"
	options := func(kind string, runs any) map[string]any {
		o := map[string]any{"threshold": 20, "record_type": kind}
		if runs != nil {
			o["run_count"] = runs
		}
		return o
	}
	for name, tc := range map[string]struct {
		kind    string
		runs    any
		earlier []int64 // processed
		now     int64
		raised  bool
	}{
		"the first run":       {"records_processed", nil, nil, 100, false},
		"the same":            {"records_processed", nil, []int64{100, 100}, 100, false},
		"at the threshold":    {"records_processed", nil, []int64{100, 100}, 120, false},
		"above":               {"records_processed", nil, []int64{100, 100}, 121, true},
		"below":               {"source_record_count", nil, []int64{100, 100}, 79, true},
		"from nothing":        {"records_updated", nil, []int64{0, 0}, 1, true},
		"nothing as ever":     {"records_deletes", nil, []int64{5, 7}, 9, false},
		"seven by default":    {"records_updates", nil, []int64{9000, 100, 100, 100, 100, 100, 100, 100}, 100, false},
		"as many as it says":  {"records_updates", 2, []int64{9000, 9000, 100, 100}, 100, false},
		"more than there are": {"records_updates", 100, []int64{100, 300}, 200, false},
	} {
		t.Run(name, func(t *testing.T) {
			w.within(t)
			id := w.alerted()
			for _, n := range tc.earlier {
				w.run(id, "", counts(n, 0, 0))
			}
			w.run(id, "broken", counts(12345, 0, 0)) // counts in no mean
			alerts := []any{alertOf(api.AlertRecordCountDeviation, "first_time", true, options(tc.kind, tc.runs))}
			w.do("PATCH", fmt.Sprintf("/syncs/%d", id), w.key, changed(map[string]any{"alert_attributes": alerts})).want(200)
			w.run(id, "", counts(tc.now, 0, 0))
			if !tc.raised {
				w.says(l)
				return
			}
			w.says(l, up)
			w.run(id, "broken", counts(0, 0, 0))
			w.says(l)
			if tc.kind == "source_record_count" {
				w.run(id, "", counts(95, 0, 0))
				w.says(l, down)
			}
		})
	}
}

func TestRuntimeAlert(t *testing.T) {
	w, l := alerting(t)
	const up, down = "+Sync Runtime Exceeded", "-Sync Runtime Recovered"
	runtime := func(start, unit string) map[string]any {
		return alertOf(api.AlertRuntime, "every_time", true, map[string]any{"threshold": 10, "unit": unit, "start_type": start})
	}
	late := func(r *api.SyncRun) { r.ScheduledExecutionTime.Time = r.ScheduledExecutionTime.Add(-9 * time.Minute) }
	for name, tc := range map[string]struct {
		alert  map[string]any
		change func(*api.SyncRun)
		limit  time.Duration // from the start
	}{
		"minutes":              {runtime("actual", "minutes"), nil, 10 * time.Minute},
		"hours":                {runtime("actual", "hours"), nil, 10 * time.Hour},
		"scheduled":            {runtime("scheduled", "minutes"), late, time.Minute},
		"scheduled in time":    {runtime("scheduled", "minutes"), nil, 10 * time.Minute},
		"actual, started late": {runtime("actual", "minutes"), late, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w.within(t)
			id := w.alerted(tc.alert)
			begin := func() (*store.Sync, *store.SyncRun) {
				if tc.change == nil {
					return w.begin(id)
				}
				return w.begin(id, tc.change)
			}
			y, run := begin()
			w.advance(tc.limit - time.Second)
			w.says(l)
			w.advance(time.Second)
			w.says(l, up) // while it still works
			w.advance(time.Hour)
			w.end(y, run, "")
			w.says(l) // once for each run
			y, run = begin()
			w.advance(tc.limit - time.Second)
			w.end(y, run, "broken")
			w.says(l) // it has not completed at all
			y, run = begin()
			w.end(y, run, "")
			w.says(l, down)
			w.advance(24 * time.Hour)
			w.says(l) // an ended run is not late
		})
	}
}

// TestStatusAlert: it has no state, so it reports each start and each completion.
func TestStatusAlert(t *testing.T) {
	w, l := alerting(t)
	for status, want := range map[string][]string{"started": {"+Sync Started"}, "completed": {"+Sync Completed"}} {
		t.Run(status, func(t *testing.T) {
			w.within(t)
			id := w.alerted(alertOf(api.AlertStatus, "first_time", true, map[string]any{"status_name": status}))
			for range 2 {
				w.run(id, "")
				w.says(l, want...)
			}
			w.run(id, "broken")
			if status == "started" {
				w.says(l, want...)
			} else {
				w.says(l)
			}
		})
	}
}

// TestAlertsThatChange: removing an alert, or changing it into another one,
// leaves nothing open and notifies no one.
func TestAlertsThatChange(t *testing.T) {
	w, l := alerting(t)
	id := w.alerted(alertOf(api.AlertFailure, "first_time", true, nil))
	open := func() (n int) {
		w.change(func(tx *store.Tx) error {
			list, err := tx.OpenAlerts(id)
			n = len(list)
			return err
		})
		return n
	}
	set := func(alerts ...api.Alert) {
		w.change(func(tx *store.Tx) error {
			y := must(syncByID(tx, id))(t)
			if y.Config.AlertAttributes = alerts; alerts == nil {
				y.Config.AlertAttributes = []api.Alert{}
			}
			return store.Syncs.Save(tx, y)
		})
	}
	w.run(id, "broken")
	w.says(l, "+Sync Failed")
	require.Equal(t, 1, open())
	set(api.Alert{ID: api.Ptr(int64(3)), Type: api.AlertFullSyncTrigger, SendFor: api.SendFirstTime})
	w.run(id, "", func(r *api.SyncRun) { r.FullSync = true })
	w.says(l, "+Full Sync Triggered")
	require.Equal(t, 1, open())
	set()
	w.run(id, "")
	w.says(l)
	require.Zero(t, open())
}

// TestRecipients: the members with notifications and the further addresses,
// each once whatever its case; each gets a separate mail.
func TestRecipients(t *testing.T) {
	w, l := alerting(t)
	id := w.alerted(alertOf(api.AlertFailure, "first_time", true, nil))
	w.change(func(tx *store.Tx) error {
		ws := must(store.Workspaces.Any(tx, 1))(t)
		for i, email := range []string{"ada@example.com", "off@example.com", "elsewhere@example.com"} {
			u := &store.User{OrganizationID: ws.OrganizationID, Email: email, Role: api.RoleMember, Notifications: i != 1}
			require.NoError(t, store.Users.Create(tx, u))
			if i < 2 {
				require.NoError(t, store.Memberships.Create(tx, &store.Membership{WorkspaceID: 1, UserID: u.ID, Role: api.RoleViewer}))
			}
		}
		ws.NotificationEmails = []string{"ADA@example.com", "channel@example.com", "Channel@Example.com"}
		return store.Workspaces.Save(tx, ws)
	})
	w.run(id, "broken")
	l.take()
	shown := w.control("GET", "/mailbox?kind=alert", nil).want(200)
	var to []string
	for i, m := range shown.at("mails").([]any) {
		to = append(to, fmt.Sprint(m.(map[string]any)["to"]))
		require.Equal(t, "Customers: Sync Failed", shown.at(fmt.Sprintf("mails.%d.subject", i)))
		require.Equal(t, "Sync Failed\n\nSync: Customers (1)\nRun: 1\nWorkspace: First workspace\n\n"+
			"Sync has failed with error: broken.\n\n/api/v1/sync_runs/1\n", shown.at(fmt.Sprintf("mails.%d.text", i)))
	}
	require.Equal(t, []string{"[channel@example.com]", "[ada@example.com]", "[owner@example.com]"}, to)
}
