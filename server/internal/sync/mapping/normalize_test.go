package mapping

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/liquid"
	"github.com/destkit/destkit/server/api"
)

func TestNormalizeDefaults(t *testing.T) {
	s := valid()
	c := &s.Config
	c.Mappings[1].From = api.MappingFrom{Type: "liquid_template", Data: api.Raw("{{ record.NAME }}")}
	Normalize(c)
	require.Equal(t, "specific_properties", *c.FieldBehavior)
	require.Equal(t, int64(75), *c.FailedRecordThresholdPercent)
	require.True(t, *c.FailedRunNotifications)
	require.True(t, *c.FailedRecordNotifications)
	require.True(t, *c.Mappings[0].SyncNullValues)
	require.Equal(t, int64(1), *c.Mappings[1].Position)
	require.JSONEq(t, `{"liquid_template":"{{ record.NAME }}"}`, string(c.Mappings[1].From.Data))
	require.Equal(t, "never", c.Mode.Triggers.Schedule.Frequency)
	require.Equal(t, "never", *c.ScheduleFrequency)
	require.NotNil(t, c.AdvancedConfiguration)
	require.Len(t, c.AlertAttributes, 2)
	require.Nil(t, c.MirrorStrategy)
	require.Nil(t, c.FieldNormalization)

	again := roundTrip(t, *c)
	Normalize(&again)
	require.Equal(t, roundTrip(t, *c), again, "twice changes nothing")
}

func roundTrip(t *testing.T, c api.SyncConfig) (out api.SyncConfig) {
	t.Helper()
	text, err := json.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

func TestNormalizeOperation(t *testing.T) {
	c := valid().Config
	c.Operation = "mirror"
	c.HighWaterMarkAttribute, c.HistoricalSyncOperation = api.Ptr("X"), api.Ptr("skip_current_records")
	Normalize(&c)
	require.Equal(t, "sync_updates_and_deletes", *c.MirrorStrategy)
	require.Nil(t, c.HighWaterMarkAttribute)
	require.Nil(t, c.HistoricalSyncOperation)

	c.Operation = "append"
	c.HighWaterMarkAttributes = &api.HighWaterMarkAttributes{UseHighWaterMark: true, ColumnName: api.Ptr("X")}
	Normalize(&c)
	require.Nil(t, c.MirrorStrategy)
	require.Equal(t, "backfill_all_records", *c.HistoricalSyncOperation)
	require.Equal(t, "X", *c.HighWaterMarkAttribute)
}

func TestNormalizeAlerts(t *testing.T) {
	c := valid().Config
	c.FailedRunNotifications, c.FailedRecordThresholdPercent = api.Ptr(false), api.Ptr(int64(5))
	Normalize(&c)
	require.Len(t, c.AlertAttributes, 1)
	require.Equal(t, api.AlertInvalidRecordPercent, c.AlertAttributes[0].Type)
	require.Equal(t, int64(5), *c.AlertAttributes[0].Options.Threshold)

	none := valid().Config
	none.AlertAttributes = []api.Alert{}
	Normalize(&none)
	require.Empty(t, none.AlertAttributes)
}

func TestNormalizeSchedule(t *testing.T) {
	cron := valid().Config
	cron.Mode = &api.Mode{Type: "triggered", Triggers: &api.Triggers{Schedule: &api.Schedule{
		Frequency: "expression", CronExpression: api.Ptr("15 6 * * 7"),
	}}}
	Normalize(&cron)
	require.Equal(t, "Sunday", *cron.ScheduleDay)
	require.Equal(t, int64(6), *cron.ScheduleHour)
	require.Equal(t, int64(15), *cron.ScheduleMinute)
	require.Equal(t, "15 6 * * 7", *cron.CronExpression)
}

// A payload decoded over a stored configuration leaves no contradiction.
func TestSupersede(t *testing.T) {
	for name, c := range map[string]struct {
		payload string
		want    func(c api.SyncConfig)
	}{
		"mode wins over the flat fields": {
			`{"mode":{"type":"triggered","triggers":{"schedule":{"frequency":"hourly","minute":7}}}}`,
			func(c api.SyncConfig) {
				require.Equal(t, "hourly", *c.ScheduleFrequency)
				require.Nil(t, c.Mode.Triggers.Schedule.Hour)
				require.Nil(t, c.Mode.Triggers.SyncSequence)
			},
		},
		"one flat field": {`{"schedule_hour":9}`, func(c api.SyncConfig) {
			require.Equal(t, "daily", c.Mode.Triggers.Schedule.Frequency)
			require.Equal(t, int64(9), *c.Mode.Triggers.Schedule.Hour)
			require.Equal(t, int64(3), c.Mode.Triggers.SyncSequence.SyncID)
		}},
		"older triggers": {`{"triggers":{"sync_sequence":{"sync_id":5}}}`, func(c api.SyncConfig) {
			require.Equal(t, int64(5), c.Mode.Triggers.SyncSequence.SyncID)
			require.Equal(t, "never", *c.ScheduleFrequency)
		}},
		"maps are replaced": {`{"advanced_configuration":{"size":1}}`, func(c api.SyncConfig) {
			require.Len(t, c.AdvancedConfiguration, 1)
		}},
		"mappings are replaced": {`{"mappings":[{"from":{"type":"column","data":"ID"},"to":"id","is_primary_identifier":true}]}`, func(c api.SyncConfig) {
			require.Len(t, c.Mappings, 1)
			require.False(t, c.Mappings[0].PreserveValues)
		}},
		"the deprecated water mark": {`{"high_water_mark_attributes":{"use_high_water_mark_diff_type":true,"column_name":"CHANGED"}}`, func(c api.SyncConfig) {
			require.Equal(t, "CHANGED", *c.HighWaterMarkAttribute)
		}},
		"no water mark": {`{"high_water_mark_attribute":null}`, func(c api.SyncConfig) {
			require.Nil(t, c.HighWaterMarkAttribute)
			require.Nil(t, c.HighWaterMarkAttributes)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := valid()
			s.Config.Operation = "append"
			s.Config.HighWaterMarkAttribute = api.Ptr("BORN")
			s.Config.Mode = &api.Mode{Type: "triggered", Triggers: &api.Triggers{
				Schedule: &api.Schedule{Frequency: "daily", Hour: api.Ptr(int64(4))}, SyncSequence: &api.SequenceTrigger{SyncID: 3},
			}}
			s.Config.AdvancedConfiguration = map[string]json.RawMessage{"region": json.RawMessage(`"eu"`)}
			Normalize(&s.Config)
			s.Config = roundTrip(t, s.Config)
			s.ExistingAlerts = nil
			var keys map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(c.payload), &keys))
			s.Present = map[string]bool{}
			for key := range keys {
				s.Present[key] = true
			}
			Supersede(&s.Config, s.Present)
			require.NoError(t, json.Unmarshal([]byte(c.payload), &s.Config))
			require.Empty(t, Check(s))
			Normalize(&s.Config)
			c.want(s.Config)
		})
	}
}

func TestNormalizeName(t *testing.T) {
	for column, want := range map[string][6]string{
		"first_name": {"First Name", "first name", "FIRST NAME", "firstName", "first_name", "first_name"},
		"beepBoop":   {"Beep Boop", "beep boop", "BEEP BOOP", "beepBoop", "beep_boop", "beepBoop"},
		"HTTPServer": {"Http Server", "http server", "HTTP SERVER", "httpServer", "http_server", "HTTPServer"},
		"USER ID":    {"User Id", "user id", "USER ID", "userId", "user_id", "USER ID"},
		"line2Text":  {"Line2 Text", "line2 text", "LINE2 TEXT", "line2Text", "line2_text", "line2Text"},
		"über-maß":   {"Über Maß", "über maß", "ÜBER MASS", "überMaß", "über_maß", "über-maß"},
		"__":         {"__", "__", "__", "__", "__", "__"},
	} {
		for i, normalization := range []string{StartCase, LowerCase, UpperCase, CamelCase, SnakeCase, SourceNames} {
			require.Equal(t, want[i], NormalizeName(column, normalization), "%s of %s", normalization, column)
		}
	}
}

// Every older form of a trigger becomes what the present form is.
func TestOlderTriggers(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	schedules := map[string]api.Schedule{
		"hourly":     {Frequency: "hourly", Minute: n(20)},
		"daily":      {Frequency: "daily", Hour: n(5), Minute: n(10)},
		"weekly":     {Frequency: "weekly", Day: api.Ptr("Monday"), Hour: n(5), Minute: n(10)},
		"expression": {Frequency: "expression", CronExpression: api.Ptr("15 6 * * 1")},
	}
	triggers := map[string]api.Triggers{
		"dbt": {DBTCloud: &api.DBTTrigger{ProjectID: "1", JobID: "2"}}, "fivetran": {Fivetran: &api.FivetranTrigger{JobID: "3", JobName: "load"}},
		"sequence": {SyncSequence: &api.SequenceTrigger{SyncID: 4}},
	}
	for name, schedule := range schedules {
		triggers[name] = api.Triggers{Schedule: &schedule}
	}
	for name, trigger := range triggers {
		now, older := valid().Config, valid().Config
		now.Mode = &api.Mode{Type: "triggered", Triggers: &trigger}
		older.Mode, older.Triggers = nil, &trigger
		Normalize(&now)
		Normalize(&older)
		require.Equal(t, now.Mode, older.Mode, name)
		schedule, flat := trigger.Schedule, valid().Config
		if schedule == nil {
			continue
		}
		flat.Mode, flat.ScheduleFrequency, flat.ScheduleDay = nil, &schedule.Frequency, schedule.Day
		flat.ScheduleHour, flat.ScheduleMinute, flat.CronExpression = schedule.Hour, schedule.Minute, schedule.CronExpression
		Normalize(&flat)
		require.Equal(t, now.Mode, flat.Mode, name)
	}
}

func TestRenderJSON(t *testing.T) {
	record := map[string]any{
		"object": `{"raw": true}`, "quote": `say "hi"` + "\n", "n": int64(5), "nil": nil, "list": []any{"a", `b"c`}, "big": json.Number("9007199254740993"),
	}
	for text, want := range map[string]any{
		`{"a": "{{ record.quote }}", "n": {{ record.n }}}`: map[string]any{"a": "say \"hi\"\n", "n": json.Number("5")},
		`{{ record.list | json }}`:                         []any{"a", `b"c`},
		`{{ record.big }}`:                                 json.Number("9007199254740993"),
		`[{% for i in record.list %}"{{ i }}"{% unless forloop.last %},{% endunless %}{% endfor %}]`: []any{"a", `b"c`},
		`{{ record.object | raw }}`:         map[string]any{"raw": true},
		"- a\n- b: {{ record.n }}\n":        []any{"a", map[string]any{"b": json.Number("5")}},
		`key: "{{ record.quote | strip }}"`: map[string]any{"key": `say "hi"`},
		``:                                  nil,
		`{{ record.nil }}`:                  nil,
	} {
		template, err := liquid.Parse(text)
		require.NoError(t, err, text)
		got, err := renderValue(template, record, liquid.Limits{})
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"a: [", "a: &x [1]\nb: *x\n", "a: .inf"} {
		template, err := liquid.Parse(text)
		require.NoError(t, err)
		_, err = renderValue(template, record, liquid.Limits{})
		require.ErrorContains(t, err, "read output as YAML")
	}
}

// A missing column that a client named is reported by its place; a generated one is not.
func TestMissing(t *testing.T) {
	config := &api.SyncConfig{
		Operation: api.OperationAppend, HighWaterMarkAttribute: api.Ptr("changed"), FieldBehavior: api.Ptr(api.BehaviorAllProperties),
		Mappings: []api.Mapping{
			identifier("id", "id"), template(`{{ record["first"] }} {{ record["last"] }}`, "name"), mapped("city", "city"),
			{From: from(api.FromConstant, `{"value":"gone","basic_type":"text"}`), To: "source"}, template(`{{ broken`, "never"),
		},
	}
	columns := func(names ...string) (list []api.Column) {
		for _, name := range names {
			list = append(list, column(name, api.KindString))
		}
		return list
	}
	require.Empty(t, Missing(config, columns("id", "first", "last", "city", "changed", "more")))
	require.Equal(t, []Reading{
		{"mappings[1].from.data", "last"}, {"mappings[2].from.data", "city"}, {"high_water_mark_attribute", "changed"},
	}, Missing(config, columns("id", "first")))
	config.Operation = api.OperationUpsert
	require.Equal(t, []Reading{{"mappings[2].from.data", "city"}}, Missing(config, columns("id", "first", "last")))
}
