package runs

import (
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// dueReason is why a run has fallen due.
func dueReason(config *api.SyncConfig) api.TriggerReason {
	if config.Mode.Type == api.ModeLive {
		return api.TriggerReason{UITag: "Live", UIDetail: "Live: a streaming database is read every minute"}
	}
	return api.TriggerReason{UITag: "Scheduled", UIDetail: "Scheduled: " + config.Mode.Triggers.Schedule.Frequency}
}

// NextRun is the first moment after now at which a schedule falls due; zero
// when none does.
func NextRun(config *api.SyncConfig, now time.Time) time.Time {
	if config.Paused || config.Mode == nil {
		return time.Time{}
	}
	if config.Mode.Type == api.ModeLive {
		if config.SourceAttributes.Object.Type == api.ObjectTopic {
			return time.Time{} // messages start its runs
		}
		return now.UTC().Truncate(time.Minute).Add(time.Minute)
	}
	if config.Mode.Triggers == nil || config.Mode.Triggers.Schedule == nil {
		return time.Time{}
	}
	at := config.Mode.Triggers.Schedule
	now = now.UTC()
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	// Facts B4: hour is 0 to 24; at 24 a day ends and the next one begins.
	ofDay := time.Duration(api.Value(at.Hour))*time.Hour + time.Duration(api.Value(at.Minute))*time.Minute
	every := func(start time.Time, step time.Duration) time.Time {
		for !start.After(now) {
			start = start.Add(step)
		}
		return start
	}
	switch at.Frequency {
	case api.FrequencyContinuous:
		return now.Truncate(time.Minute).Add(time.Minute)
	case api.FrequencyQuarterHourly:
		return now.Truncate(15 * time.Minute).Add(15 * time.Minute)
	case api.FrequencyHourly:
		return every(now.Truncate(time.Hour).Add(time.Duration(api.Value(at.Minute))*time.Minute), time.Hour)
	case api.FrequencyDaily:
		return every(day.Add(ofDay).AddDate(0, 0, -1), 24*time.Hour)
	case api.FrequencyWeekly:
		// From the day before: hour 24 of it is still to come.
		for i := range 9 {
			on := day.AddDate(0, 0, i-1)
			if at.Day != nil && on.Weekday().String() == *at.Day && on.Add(ofDay).After(now) {
				return on.Add(ofDay)
			}
		}
	case api.FrequencyExpression:
		if at.CronExpression != nil {
			if cron, err := mapping.ParseCron(*at.CronExpression); err == nil {
				return cron.Next(now)
			}
		}
	}
	return time.Time{}
}
