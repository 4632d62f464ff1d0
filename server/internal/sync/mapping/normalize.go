package mapping

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
)

// DefaultThreshold of failed and invalid records in percent (spec 8).
const DefaultThreshold = 75

// Normalize brings a valid configuration into the one form that is stored and
// shown: defaults are filled in, the deprecated and the present form of a value
// are both set, templates are objects, and values that the operation does not
// know are dropped. Doing it twice changes nothing.
func Normalize(c *api.SyncConfig) {
	normalizeSource(&c.SourceAttributes.Object)
	for i := range c.Mappings {
		normalizeMapping(&c.Mappings[i], int64(i))
	}
	// Canonical order is by position.
	slices.SortStableFunc(c.Mappings, func(a, b api.Mapping) int { return cmp.Compare(*a.Position, *b.Position) })
	if c.Mappings == nil {
		c.Mappings = []api.Mapping{}
	}
	if c.AdvancedConfiguration == nil {
		c.AdvancedConfiguration = map[string]json.RawMessage{}
	}
	for key, value := range c.AdvancedConfiguration {
		// null means left out, so it is left out.
		if rawjson.IsNull(value) {
			delete(c.AdvancedConfiguration, key)
		}
	}
	setDefault(&c.FailedRunNotifications, true)
	setDefault(&c.FailedRecordNotifications, true)
	setDefault(&c.FailedRecordThresholdPercent, DefaultThreshold)
	if c.AlertAttributes == nil {
		c.AlertAttributes = DefaultAlerts(c)
	}
	setDefault(&c.FieldBehavior, api.BehaviorSpecificProperties)
	if *c.FieldBehavior == api.BehaviorAllProperties {
		setDefault(&c.FieldNormalization, SourceNames)
	} else {
		c.FieldNormalization = nil
	}
	normalizeOperation(c)
	normalizeMode(c)
}

// setDefault fills in what a client left out. A pointer distinguishes that
// from false and 0.
func setDefault[T any](at **T, value T) {
	if *at == nil {
		*at = &value
	}
}

// normalizeSource gives the names that replies of the real service use back
// their names of requests.
func normalizeSource(o *api.SourceObject) {
	if slices.Contains(internalSources, o.Type) {
		o.Type = api.ObjectDataset
	}
	if o.Type == api.ObjectDataset && o.ID == nil {
		o.ID = o.DatasetID
	}
	o.DatasetID = nil
}

// normalizeMapping gives a mapping its place, and a template the form that
// replies show.
func normalizeMapping(m *api.Mapping, index int64) {
	setDefault(&m.SyncNullValues, true)
	setDefault(&m.Position, index)
	if text(m.LookupObject) == "" {
		m.LookupObject = nil
	}
	if text(m.LookupField) == "" {
		m.LookupField = nil
	}
	if m.From.Type == api.FromLiquid {
		if source, err := templateText(m.From.Data); err == nil {
			m.From.Data = api.Raw(api.Template{Text: source})
		}
	}
}

// DefaultAlerts are the alerts that a sync gets when its client names none: a
// failed run, and too many failed and invalid records. The
// deprecated fields (spec 2.6) switch them off and set the threshold.
func DefaultAlerts(c *api.SyncConfig) []api.Alert {
	alerts := []api.Alert{}
	if c.FailedRunNotifications == nil || *c.FailedRunNotifications {
		alerts = append(alerts, api.Alert{Type: api.AlertFailure, SendFor: api.SendFirstTime, ShouldSendRecovery: true})
	}
	if c.FailedRecordNotifications == nil || *c.FailedRecordNotifications {
		threshold := int64(DefaultThreshold)
		if c.FailedRecordThresholdPercent != nil {
			threshold = *c.FailedRecordThresholdPercent
		}
		alerts = append(alerts, api.Alert{
			Type: api.AlertInvalidRecordPercent, SendFor: api.SendFirstTime, ShouldSendRecovery: true,
			Options: &api.AlertOptions{Threshold: &threshold},
		})
	}
	return alerts
}

// normalizeOperation keeps the settings of the operation and drops those of
// others (spec 4.1.4).
func normalizeOperation(c *api.SyncConfig) {
	c.MirrorStrategy = onlyFor(c.Operation == api.OperationMirror, c.MirrorStrategy, api.MirrorDeletes)
	isAppend := c.Operation == api.OperationAppend
	c.HistoricalSyncOperation = onlyFor(isAppend, c.HistoricalSyncOperation, api.HistoryBackfill)
	if !isAppend {
		c.HighWaterMarkAttribute, c.HighWaterMarkAttributes = nil, nil
		return
	}
	// The present form wins; Check has seen that they do not contradict.
	if old := c.HighWaterMarkAttributes; c.HighWaterMarkAttribute == nil && old != nil && old.UseHighWaterMark {
		c.HighWaterMarkAttribute = old.ColumnName
	}
	c.HighWaterMarkAttributes = nil
	if c.HighWaterMarkAttribute != nil {
		c.HighWaterMarkAttributes = &api.HighWaterMarkAttributes{UseHighWaterMark: true, ColumnName: c.HighWaterMarkAttribute}
	}
}

// onlyFor keeps a setting, or its default, where the operation knows it.
func onlyFor(applies bool, value *string, standard string) *string {
	switch {
	case !applies:
		return nil
	case value == nil:
		return &standard
	}
	return value
}

// normalizeMode folds the flat schedule fields and the older triggers into mode
// and shows them again from there. There is always a schedule, with frequency
// never where only another trigger was given.
func normalizeMode(c *api.SyncConfig) {
	if c.Mode == nil {
		c.Mode = &api.Mode{Type: api.ModeTriggered}
	}
	if c.Mode.Triggers == nil {
		c.Mode.Triggers = c.Triggers
	}
	triggers := api.Triggers{}
	if c.Mode.Triggers != nil {
		triggers = *c.Mode.Triggers
	}
	if triggers.Schedule == nil && c.ScheduleFrequency != nil {
		triggers.Schedule = flatSchedule(c)
	}
	schedule := canonicalSchedule(*orNever(triggers.Schedule))
	triggers.Schedule = &schedule
	// A copy, so that the two never change together.
	again := triggers
	c.Mode.Triggers, c.Triggers = &triggers, &again
	c.ScheduleFrequency, c.ScheduleDay = &schedule.Frequency, schedule.Day
	c.ScheduleHour, c.ScheduleMinute, c.CronExpression = schedule.Hour, schedule.Minute, schedule.CronExpression
}

// canonicalSchedule keeps the parts that the frequency uses: minutes of the
// hour, hour and minute of the day, day of the week, 0 where none is given. Of
// an expression the parts that are single numbers are computed.
func canonicalSchedule(s api.Schedule) api.Schedule {
	out := api.Schedule{Frequency: s.Frequency}
	zero := func(n *int64) *int64 {
		if n == nil {
			return new(int64)
		}
		return n
	}
	switch s.Frequency {
	case api.FrequencyHourly:
		out.Minute = zero(s.Minute)
	case api.FrequencyDaily:
		out.Hour, out.Minute = zero(s.Hour), zero(s.Minute)
	case api.FrequencyWeekly:
		out.Day, out.Hour, out.Minute = s.Day, zero(s.Hour), zero(s.Minute)
	case api.FrequencyExpression:
		out.CronExpression = s.CronExpression
		computeParts(&out)
	}
	return out
}
