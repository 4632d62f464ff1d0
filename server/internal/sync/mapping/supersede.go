package mapping

import (
	"reflect"
	"slices"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// Supersede prepares a stored configuration for a payload that is about to be
// decoded over it. The top-level keys that the payload has are emptied, so that
// nothing of the old value shows through the new one; where the payload names a
// value by its other name (the flat schedule fields for mode, a deprecated
// field), the stored one is forgotten, so that the two cannot contradict.
func Supersede(stored *api.SyncConfig, present map[string]bool) {
	emptyFields(stored, present)
	schedule := slices.ContainsFunc(
		[]string{"schedule_frequency", "schedule_day", "schedule_hour", "schedule_minute", "cron_expression"},
		func(key string) bool { return present[key] })
	switch {
	// mode replaces all of it: the older fields must not override it.
	case present["mode"]:
		if !present["triggers"] {
			stored.Triggers = nil
		}
		if !schedule {
			forgetFlatSchedule(stored)
		}
	case present["triggers"]:
		stored.Mode = withTriggers(stored.Mode, nil)
		if !schedule {
			forgetFlatSchedule(stored)
		}
	case schedule:
		// One flat field changes one part: the others stay as they are.
		if stored.Mode != nil && stored.Mode.Triggers != nil {
			others := *stored.Mode.Triggers
			others.Schedule = nil
			stored.Mode = withTriggers(stored.Mode, &others)
		}
		stored.Triggers = nil
	}
	if present["high_water_mark_attribute"] && !present["high_water_mark_attributes"] {
		stored.HighWaterMarkAttributes = nil
	}
	if present["high_water_mark_attributes"] && !present["high_water_mark_attribute"] {
		stored.HighWaterMarkAttribute = nil
	}
}

// withTriggers gives a mode other triggers. It makes a copy: the stored one is
// what a failed update leaves as it was.
func withTriggers(mode *api.Mode, triggers *api.Triggers) *api.Mode {
	if mode == nil {
		return nil
	}
	return &api.Mode{Type: mode.Type, Triggers: triggers}
}

// forgetFlatSchedule empties the flat fields; Normalize fills them from mode.
func forgetFlatSchedule(c *api.SyncConfig) {
	c.ScheduleFrequency, c.ScheduleDay, c.CronExpression = nil, nil, nil
	c.ScheduleHour, c.ScheduleMinute = nil, nil
}

// emptyFields zeroes the fields with one of these names on the wire.
func emptyFields(c *api.SyncConfig, names map[string]bool) {
	// By reflection, so that a field that is added is not forgotten here.
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if names[name] {
			v.Field(i).SetZero()
		}
	}
}
