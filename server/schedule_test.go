package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// TestNextRun holds every frequency against moments in UTC.
func TestNextRun(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	for _, tc := range []struct {
		name     string
		schedule api.Schedule
		now      string
		next     []string // one after the other
	}{
		{"never", api.Schedule{Frequency: api.FrequencyNever}, "2026-12-01T08:00:00Z", []string{""}},
		{"continuous", api.Schedule{Frequency: api.FrequencyContinuous}, "2026-12-01T08:00:30Z", []string{"2026-12-01T08:01:00Z", "2026-12-01T08:02:00Z"}},
		{"continuous on the minute", api.Schedule{Frequency: api.FrequencyContinuous}, "2026-12-01T08:00:00Z", []string{"2026-12-01T08:01:00Z"}},
		{"quarters", api.Schedule{Frequency: api.FrequencyQuarterHourly}, "2026-12-01T23:44:59Z", []string{"2026-12-01T23:45:00Z", "2026-12-02T00:00:00Z", "2026-12-02T00:15:00Z"}},
		{"hourly", api.Schedule{Frequency: api.FrequencyHourly}, "2026-12-01T08:00:00Z", []string{"2026-12-01T09:00:00Z"}},
		{"hourly at a minute", api.Schedule{Frequency: api.FrequencyHourly, Minute: n(20)}, "2026-12-01T08:10:00Z", []string{"2026-12-01T08:20:00Z", "2026-12-01T09:20:00Z"}},
		{"daily", api.Schedule{Frequency: api.FrequencyDaily, Hour: n(6), Minute: n(30)}, "2026-12-31T06:30:00Z", []string{"2027-01-01T06:30:00Z", "2027-01-02T06:30:00Z"}},
		{"daily before its hour", api.Schedule{Frequency: api.FrequencyDaily, Hour: n(6)}, "2026-12-31T05:59:59Z", []string{"2026-12-31T06:00:00Z"}},
		{"daily at 24", api.Schedule{Frequency: api.FrequencyDaily, Hour: n(24)}, "2026-12-01T08:00:00Z", []string{"2026-12-02T00:00:00Z", "2026-12-03T00:00:00Z"}},
		{"daily at 24:30", api.Schedule{Frequency: api.FrequencyDaily, Hour: n(24), Minute: n(30)}, "2026-12-01T00:10:00Z", []string{"2026-12-01T00:30:00Z"}},
		{"weekly", api.Schedule{Frequency: api.FrequencyWeekly, Day: api.Ptr("Sunday"), Hour: n(5)}, "2026-12-06T05:00:00Z", []string{"2026-12-13T05:00:00Z", "2026-12-20T05:00:00Z"}},
		{"weekly today", api.Schedule{Frequency: api.FrequencyWeekly, Day: api.Ptr("Sunday"), Hour: n(5)}, "2026-12-06T04:00:00Z", []string{"2026-12-06T05:00:00Z"}},
		{"weekly at 24", api.Schedule{Frequency: api.FrequencyWeekly, Day: api.Ptr("Sunday"), Hour: n(24)}, "2026-12-06T23:00:00Z", []string{"2026-12-07T00:00:00Z", "2026-12-14T00:00:00Z"}},
		{"weekly at 24:15, after midnight", api.Schedule{Frequency: api.FrequencyWeekly, Day: api.Ptr("Sunday"), Hour: n(24), Minute: n(15)}, "2026-12-07T00:05:00Z", []string{"2026-12-07T00:15:00Z"}},
		{"cron", api.Schedule{Frequency: api.FrequencyExpression, CronExpression: api.Ptr("*/20 6,18 * * 1")}, "2026-12-01T08:00:00Z", []string{"2026-12-07T06:00:00Z", "2026-12-07T06:20:00Z"}},
		{"cron of a leap day", api.Schedule{Frequency: api.FrequencyExpression, CronExpression: api.Ptr("0 0 29 2 *")}, "2026-12-01T08:00:00Z", []string{"2028-02-29T00:00:00Z"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, tc.now)
			require.NoError(t, err)
			config := &api.SyncConfig{Mode: &api.Mode{Type: api.ModeTriggered, Triggers: &api.Triggers{Schedule: &tc.schedule}}}
			// Another zone changes nothing: schedules are in UTC.
			now = now.In(time.FixedZone("elsewhere", 5*3600+1800))
			for _, want := range tc.next {
				next := nextRun(config, now)
				if want == "" {
					require.Zero(t, next)
					continue
				}
				require.Equal(t, want, next.Format(time.RFC3339))
				require.Equal(t, next, nextRun(config, next.Add(-time.Second)), "it is recognised when it falls due")
				now = next
			}
			config.Paused = true
			require.Zero(t, nextRun(config, now))
		})
	}
}

// scheduled makes a sync with a schedule and tells its runs as they were due.
func (w *syncWorld) scheduled(schedule map[string]any) (id int64, runs func() []string) {
	id = w.kept(map[string]any{"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": schedule}}}).id("data.id")
	return id, func() (out []string) {
		w.control("POST", "/settle", nil).want(200)
		list := w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs?order=asc&per_page=100", id), w.key, nil).want(200)
		for i := range list.at("data").([]any) {
			out = append(out, fmt.Sprintf("%s %s", list.at(fmt.Sprintf("data.%d.scheduled_execution_time", i)), list.at(fmt.Sprintf("data.%d.status", i))))
		}
		return out
	}
}

// TestSchedulesOnTheClock: every frequency runs at its moments while the clock is
// advanced.
func TestSchedulesOnTheClock(t *testing.T) {
	w := newSyncWorld(t)
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	w.control("POST", "/clock", `{"set":"2026-12-06T23:57:30Z"}`).want(200) // a Sunday
	_, continuous := w.scheduled(map[string]any{"frequency": "continuous"})
	_, quarters := w.scheduled(map[string]any{"frequency": "quarter_hourly"})
	_, cron := w.scheduled(map[string]any{"frequency": "expression", "cron_expression": "10 0 7 12 *"})
	_, weekly := w.scheduled(map[string]any{"frequency": "weekly", "day": "Monday", "hour": 0, "minute": 5})
	w.control("POST", "/clock", `{"advance":"20m"}`).want(200)
	require.Len(t, continuous(), 20)
	require.Equal(t, "2026-12-06T23:58:00.000Z completed", continuous()[0])
	require.Equal(t, []string{"2026-12-07T00:00:00.000Z completed", "2026-12-07T00:15:00.000Z completed"}, quarters())
	require.Equal(t, []string{"2026-12-07T00:10:00.000Z completed"}, cron())
	require.Equal(t, []string{"2026-12-07T00:05:00.000Z completed"}, weekly())
}

// TestSchedulesAfterAJump: a clock that is set forwards over several moments runs
// once, and one that is set back falls due by the new time.
func TestSchedulesAfterAJump(t *testing.T) {
	w := newSyncWorld(t)
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	w.control("POST", "/clock", `{"set":"2026-12-01T08:30:00Z"}`).want(200)
	_, runs := w.scheduled(map[string]any{"frequency": "hourly"})
	w.control("POST", "/clock", `{"set":"2026-12-01T12:30:00Z"}`).want(200)
	require.Equal(t, []string{"2026-12-01T12:30:00.000Z completed"}, runs())
	w.control("POST", "/clock", `{"set":"2026-12-01T06:30:00Z"}`).want(200)
	w.control("POST", "/clock", `{"advance":"2h"}`).want(200)
	require.Len(t, runs(), 3, "at 7 and at 8: %v", runs())
}

// TestClockJumpsDuringARun: neither a jump nor a freeze loses or repeats a record,
// whatever the run waits for.
func TestClockJumpsDuringARun(t *testing.T) {
	for name, jump := range map[string]string{
		"forwards": `{"set":"2030-01-01T00:00:00Z"}`, "backwards": `{"set":"2020-01-01T00:00:00Z"}`, "frozen": `{"freeze":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			w, id := heldWorld(t)
			calls := make(chan int, 1)
			calls <- 0
			hook := func() {
				n := <-calls + 1
				calls <- n
				if n == 8 {
					w.control("POST", "/clock", jump).want(200)
				}
			}
			w.onCall.Store(&hook)
			run := w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, nil).want(200).id("data.sync_run_id")
			w.control("POST", "/settle", nil).want(200)
			// A frozen clock stands still for the pace of the run too.
			w.control("POST", "/clock", `{"advance":"1h"}`).want(200)
			ended := w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200)
			require.Equal(t, "completed", ended.at("data.status"), string(ended.text))
			require.Equal(t, [7]int64{300, 300, 0, 0, 300, 300, 0}, ended.counts())
			require.Equal(t, 30, w.batches())
		})
	}
}

// TestGeneratedChangesOfASync: what the schedule of a generator says is what runs
// send.
func TestGeneratedChangesOfASync(t *testing.T) {
	w := newSyncWorld(t)
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	source := w.do("POST", "/sources", w.key, connection(map[string]any{"name": "Made up", "type": "generator", "credentials": map[string]any{
		"rows": 100, "changes": map[string]any{"every": "1h", "inserts": 7, "updates": 5, "deletes": 3},
	}})).want(201).id("data.id")
	id := w.kept(map[string]any{
		"operation":         "mirror",
		"source_attributes": map[string]any{"connection_id": source, "object": map[string]any{"type": "table", "table_catalog": "main", "table_schema": "main", "table_name": "generated"}},
		"mappings": []any{
			map[string]any{"from": map[string]any{"type": "column", "data": "email"}, "to": "email", "is_primary_identifier": true},
			map[string]any{"from": map[string]any{"type": "column", "data": "balance"}, "to": "last_name"},
		},
	}).id("data.id")
	require.Equal(t, [7]int64{100, 100, 0, 0, 100, 100, 0}, w.runs(id).counts())
	require.Equal(t, [7]int64{100, 0, 0, 0, 0, 0, 0}, w.runs(id).counts())
	w.control("POST", "/clock", `{"advance":"1h"}`).want(200)
	require.Equal(t, [7]int64{104, 12, 3, 0, 15, 15, 0}, w.runs(id).counts())
	w.control("POST", "/clock", `{"advance":"2h"}`).want(200)
	require.Equal(t, [7]int64{112, 24, 6, 0, 30, 30, 0}, w.runs(id).counts())
	bad := w.do("POST", "/sources", w.key, connection(map[string]any{"name": "Wrong", "type": "generator", "credentials": map[string]any{
		"rows": 1, "changes": map[string]any{"every": "soon", "inserts": -1},
	}})).want(400).problems()
	require.Len(t, bad, 2, "%v", bad)
}
