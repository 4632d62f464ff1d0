package runs

import (
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
				next := NextRun(config, now)
				if want == "" {
					require.Zero(t, next)
					continue
				}
				require.Equal(t, want, next.Format(time.RFC3339))
				require.Equal(t, next, NextRun(config, next.Add(-time.Second)), "it is recognised when it falls due")
				now = next
			}
			config.Paused = true
			require.Zero(t, NextRun(config, now))
		})
	}
}
