package mapping

import (
	"reflect"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// spec 2.6 names daily the others.
var frequencies = []string{
	api.FrequencyNever, api.FrequencyContinuous, api.FrequencyQuarterHourly, api.FrequencyHourly,
	api.FrequencyDaily, api.FrequencyWeekly, api.FrequencyExpression,
}

// By their place: Sunday is 0, as in a cron expression.
var days = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}

// checkMode: spec 2.6 and published behaviour. Several triggers can be combined.
func (c *checker) checkMode() {
	mode := c.config.Mode
	if mode == nil {
		return
	}
	if c.oneOf("mode.type", mode.Type, api.ModeTriggered, api.ModeLive) && mode.Type == api.ModeLive {
		// Live means that messages are read as they come; tables have none.
		if !c.Streaming && !c.StreamingDatabase {
			c.bad("mode.type", "live needs a streaming source: read a topic, or set it to triggered")
		}
		if starts(mode.Triggers) {
			c.bad("mode.triggers", "a live sync runs all the time: leave the triggers out, or set mode.type to triggered")
		}
	}
	c.checkTriggers("mode.triggers", mode.Triggers)
}

// starts reports whether any trigger would start a run.
func starts(t *api.Triggers) bool {
	return t != nil && (t.Schedule != nil && t.Schedule.Frequency != api.FrequencyNever ||
		t.DBTCloud != nil || t.Fivetran != nil || t.SyncSequence != nil)
}

// checkTriggers checks each trigger by itself; at is its place in the payload.
func (c *checker) checkTriggers(at string, t *api.Triggers) {
	if t == nil {
		return
	}
	if t.Schedule != nil {
		c.checkSchedule(t.Schedule, scheduleFields{
			at + ".schedule.frequency", at + ".schedule.day", at + ".schedule.hour",
			at + ".schedule.minute", at + ".schedule.cron_expression",
		})
	}
	if t.DBTCloud != nil {
		c.notEmpty(at+".dbt_cloud.project_id", t.DBTCloud.ProjectID)
		c.notEmpty(at+".dbt_cloud.job_id", t.DBTCloud.JobID)
	}
	if t.Fivetran != nil {
		c.notEmpty(at+".fivetran.job_id", t.Fivetran.JobID)
	}
	if t.SyncSequence != nil && t.SyncSequence.SyncID <= 0 {
		c.bad(at+".sync_sequence.sync_id", "is required: the id of the sync to run after")
	}
}

// notEmpty refuses an id of nothing.
func (c *checker) notEmpty(field, value string) {
	if value == "" {
		c.bad(field, "is required")
	}
}

// scheduleFields are the places of a schedule's parts, which differ between the
// present form and the flat one.
type scheduleFields struct{ frequency, day, hour, minute, cron string }

// checkSchedule: which parts a frequency needs. Parts that it does not use are
// ignored, as replies show them as null.
func (c *checker) checkSchedule(s *api.Schedule, at scheduleFields) {
	known := c.oneOf(at.frequency, s.Frequency, frequencies...)
	switch day := text(s.Day); {
	case day != "":
		c.oneOf(at.day, day, days...)
	case s.Frequency == api.FrequencyWeekly:
		c.bad(at.day, "is required when the frequency is weekly: one of %s", strings.Join(days, ", "))
	}
	if s.Hour != nil {
		c.within(at.hour, *s.Hour, 0, 24)
	}
	if s.Minute != nil {
		c.within(at.minute, *s.Minute, 0, 59)
	}
	expression := text(s.CronExpression)
	switch {
	case s.Frequency == api.FrequencyExpression && expression == "":
		c.bad(at.cron, "is required when the frequency is expression: five fields in UTC, such as 0 6 * * 1")
	case s.Frequency == api.FrequencyExpression:
		if _, err := ParseCron(expression); err != nil {
			c.bad(at.cron, "%v", err)
		}
	case expression != "" && known:
		c.bad(at.cron, "goes with the frequency expression only, not with %s: leave it out", s.Frequency)
	}
}

// checkFlatSchedule: the older published form of mode, and that it
// does not say something else than mode.
func (c *checker) checkFlatSchedule() {
	flat := flatSchedule(c.config)
	mode := c.config.Mode
	if flat != nil {
		// Where mode has the same value it was checked there: the same problem
		// under two names would look like two.
		if c.config.ScheduleFrequency == nil {
			c.bad("schedule_frequency", "is required beside the other schedule fields: one of %s", strings.Join(frequencies, ", "))
		} else if mode == nil || mode.Triggers == nil || !sameSchedule(mode.Triggers.Schedule, flat) {
			c.checkSchedule(flat, scheduleFields{"schedule_frequency", "schedule_day", "schedule_hour", "schedule_minute", "cron_expression"})
		}
	}
	if mode == nil {
		c.checkTriggers("triggers", c.config.Triggers)
		return
	}
	if flat != nil && c.config.ScheduleFrequency != nil && mode.Triggers != nil && mode.Triggers.Schedule != nil &&
		!sameSchedule(mode.Triggers.Schedule, flat) {
		c.bad("schedule_frequency", "contradicts mode.triggers.schedule: leave the flat schedule fields out")
	}
	if c.config.Triggers != nil && mode.Triggers != nil && !sameTriggers(c.config.Triggers, mode.Triggers) {
		c.bad("triggers", "contradicts mode.triggers: leave the older field out")
	}
}

// flatSchedule is the schedule that the flat fields describe, nil for none.
func flatSchedule(c *api.SyncConfig) *api.Schedule {
	if c.ScheduleFrequency == nil && c.ScheduleDay == nil && c.ScheduleHour == nil && c.ScheduleMinute == nil && c.CronExpression == nil {
		return nil
	}
	return &api.Schedule{
		Frequency: text(c.ScheduleFrequency), Day: c.ScheduleDay, Hour: c.ScheduleHour,
		Minute: c.ScheduleMinute, CronExpression: c.CronExpression,
	}
}

// sameSchedule reports whether two schedules fall due at the same times. Parts
// that the frequency does not use do not count.
func sameSchedule(a, b *api.Schedule) bool {
	if a == nil || b == nil {
		return a == b
	}
	return reflect.DeepEqual(canonicalSchedule(*a), canonicalSchedule(*b))
}

// sameTriggers compares by content: the two forms are decoded apart.
func sameTriggers(a, b *api.Triggers) bool {
	one, other := *a, *b
	one.Schedule, other.Schedule = nil, nil
	return sameSchedule(orNever(a.Schedule), orNever(b.Schedule)) && reflect.DeepEqual(one, other)
}

// orNever is the schedule used where none was given.
func orNever(s *api.Schedule) *api.Schedule {
	if s == nil {
		return &api.Schedule{Frequency: api.FrequencyNever}
	}
	return s
}
