package mapping

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

func TestCheckSettings(t *testing.T) {
	config := func(change func(c *api.SyncConfig)) func(s *Subject) { return func(s *Subject) { change(&s.Config) } }
	str := api.Ptr[string]
	isAppend := func(c *api.SyncConfig) { c.Operation = "append"; c.Mappings[0].To = "id" }
	runRules(t, []rule{
		{"label", config(func(c *api.SyncConfig) { c.Label = str(strings.Repeat("ü", 255)) }), ""},
		{"long label", config(func(c *api.SyncConfig) { c.Label = str(strings.Repeat("ü", 256)) }), "label: at most 255 characters, not 256"},
		{"label with NUL", config(func(c *api.SyncConfig) { c.Label = str("a\x00") }), "label: NUL"},
		{"specific", config(func(c *api.SyncConfig) { c.FieldBehavior = str("specific_properties") }), ""},
		{"unknown behavior", config(func(c *api.SyncConfig) { c.FieldBehavior = str("some") }), "field_behavior: unknown value"},
		{"all properties", func(s *Subject) {
			s.Object.AllowCustomFields = true
			s.Config.FieldBehavior, s.Config.FieldNormalization = str("sync_all_properties"), str("snake_case")
		}, ""},
		{"all properties where fields are fixed", config(func(c *api.SyncConfig) { c.FieldBehavior = str("sync_all_properties") }),
			"field_behavior: creates fields on write"},
		{"all properties fill required fields", func(s *Subject) {
			s.Object.AllowCustomFields = true
			s.Object.Fields[2].RequiredForMapping = true
			s.Config.Mappings = s.Config.Mappings[:1]
			s.Config.FieldBehavior, s.Config.FieldNormalization = str("sync_all_properties"), str("lower_case")
		}, ""},
		{"all properties in a run where fields are fixed", func(s *Subject) {
			s.Running, s.Config.FieldBehavior = true, str("sync_all_properties")
		}, ""},
		{"schema policy", config(func(c *api.SyncConfig) { c.SchemaChangePolicy = str("pause") }), ""},
		{"unknown schema policy", config(func(c *api.SyncConfig) { c.SchemaChangePolicy = str("stop") }), "schema_change_policy: unknown value"},
		{"empty schema policy", config(func(c *api.SyncConfig) { c.SchemaChangePolicy = str("") }), "schema_change_policy: is required: one of propagate, ignore, pause"},
		{"schema policy of a topic", func(s *Subject) {
			s.Streaming, s.Config.SchemaChangePolicy = true, str("ignore")
		}, "schema_change_policy: does not apply to topics"},
		{"normalization alone", config(func(c *api.SyncConfig) { c.FieldNormalization = str("snake_case") }), "field_normalization: only when"},
		{"unknown normalization", config(func(c *api.SyncConfig) { c.FieldNormalization = str("kebab") }), "field_normalization: unknown value"},
		{"field order", config(func(c *api.SyncConfig) { c.FieldOrder = str("mapping_order") }), ""},
		{"unknown field order", config(func(c *api.SyncConfig) { c.FieldOrder = str("random") }), "field_order: unknown value"},
		{"field order not supported", func(s *Subject) {
			s.Object.SupportsFieldOrdering = false
			s.Config.FieldOrder = str("mapping_order")
		}, "field_order: supports_field_ordering"},
		{"left over field order", func(s *Subject) {
			s.Object.SupportsFieldOrdering = false
			s.Present = map[string]bool{"label": true}
			s.Config.FieldOrder = str("mapping_order")
		}, ""},
		{"mirror strategy", config(func(c *api.SyncConfig) { c.Operation, c.MirrorStrategy = "mirror", str("upload_and_swap") }), ""},
		{"unknown mirror strategy", config(func(c *api.SyncConfig) { c.Operation, c.MirrorStrategy = "mirror", str("swap") }), "mirror_strategy: unknown value"},
		{"mirror strategy of upsert", config(func(c *api.SyncConfig) { c.MirrorStrategy = str("upload_and_swap") }), "mirror_strategy: only to operation mirror"},
		{"left over mirror strategy", func(s *Subject) {
			s.Present = map[string]bool{"operation": true}
			s.Config.MirrorStrategy = str("upload_and_swap")
		}, ""},
		{"history", config(func(c *api.SyncConfig) { isAppend(c); c.HistoricalSyncOperation = str("skip_current_records") }), ""},
		{"unknown history", config(func(c *api.SyncConfig) { isAppend(c); c.HistoricalSyncOperation = str("skip") }), "historical_sync_operation: unknown value"},
		{"history of upsert", config(func(c *api.SyncConfig) { c.HistoricalSyncOperation = str("skip_current_records") }), "historical_sync_operation: only to append"},
		{"water mark", config(func(c *api.SyncConfig) { isAppend(c); c.HighWaterMarkAttribute = str("CHANGED") }), ""},
		{"water mark of upsert", config(func(c *api.SyncConfig) { c.HighWaterMarkAttribute = str("CHANGED") }), "high_water_mark_attribute: only to append"},
		{"water mark of numbers", config(func(c *api.SyncConfig) { isAppend(c); c.HighWaterMarkAttribute = str("ID") }), "high_water_mark_attribute: needs a timestamp"},
		{"unknown water mark", config(func(c *api.SyncConfig) { isAppend(c); c.HighWaterMarkAttribute = str("CHANGE") }), `high_water_mark_attribute: did you mean "CHANGED"?`},
		{"empty water mark", config(func(c *api.SyncConfig) { isAppend(c); c.HighWaterMarkAttribute = str("") }), "high_water_mark_attribute: must be the name"},
		{"deprecated water mark", config(func(c *api.SyncConfig) {
			isAppend(c)
			c.HighWaterMarkAttributes = &api.HighWaterMarkAttributes{UseHighWaterMark: true, ColumnName: str("BORN")}
		}), ""},
		{"deprecated and off", config(func(c *api.SyncConfig) { c.HighWaterMarkAttributes = &api.HighWaterMarkAttributes{} }), ""},
		{"deprecated without column", config(func(c *api.SyncConfig) {
			isAppend(c)
			c.HighWaterMarkAttributes = &api.HighWaterMarkAttributes{UseHighWaterMark: true}
		}), "high_water_mark_attributes.column_name: is required"},
		{"deprecated of upsert", config(func(c *api.SyncConfig) {
			c.HighWaterMarkAttributes = &api.HighWaterMarkAttributes{UseHighWaterMark: true, ColumnName: str("BORN")}
		}), "high_water_mark_attributes: only to append"},
		{"both alike", config(func(c *api.SyncConfig) {
			isAppend(c)
			c.HighWaterMarkAttribute = str("BORN")
			c.HighWaterMarkAttributes = &api.HighWaterMarkAttributes{UseHighWaterMark: true, ColumnName: str("BORN")}
		}), ""},
		{"both and different", config(func(c *api.SyncConfig) {
			isAppend(c)
			c.HighWaterMarkAttribute = str("BORN")
			c.HighWaterMarkAttributes = &api.HighWaterMarkAttributes{UseHighWaterMark: true, ColumnName: str("CHANGED")}
		}), "high_water_mark_attributes: contradicts"},
		{"one on, one off", config(func(c *api.SyncConfig) {
			isAppend(c)
			c.HighWaterMarkAttribute = str("BORN")
			c.HighWaterMarkAttributes = &api.HighWaterMarkAttributes{}
		}), "high_water_mark_attributes: contradicts"},
		{"threshold", config(func(c *api.SyncConfig) { c.FailedRecordThresholdPercent = api.Ptr(int64(100)) }), ""},
		{"threshold too high", config(func(c *api.SyncConfig) { c.FailedRecordThresholdPercent = api.Ptr(int64(101)) }),
			"failed_record_notifications_threshold_percent: from 0 to 100, not 101"},
		{"threshold too low", config(func(c *api.SyncConfig) { c.FailedRecordThresholdPercent = api.Ptr(int64(-1)) }),
			"failed_record_notifications_threshold_percent: from 0 to 100"},
	})
}

func TestCheckAdvanced(t *testing.T) {
	set := func(key, value string) func(s *Subject) {
		return func(s *Subject) {
			s.Config.AdvancedConfiguration = map[string]json.RawMessage{key: json.RawMessage(value)}
		}
	}
	own := func(typ string, change func(s *Subject)) func(s *Subject) {
		return func(s *Subject) {
			Define(typ, []*api.DestinationObject{s.Object})
			change(s)
		}
	}
	required := func(s *Subject) { s.Object.AdvancedConfigurationFields[0].Required = api.Ptr(true) }
	both := func(a, b func(s *Subject)) func(s *Subject) { return func(s *Subject) { a(s); b(s) } }
	const at = "advanced_configuration."
	runRules(t, []rule{
		{"value", set("region", `"eu"`), ""},
		{"null", set("region", `null`), ""},
		{"unknown key", set("regoin", `"eu"`), at + `regoin: did you mean "region"?`},
		{"other value", set("region", `"asia"`), at + "region: must be one of eu, us"},
		{"wrong type", set("region", `5`), at + "region: must be a string"},
		{"integer", set("size", `5`), ""},
		{"integer as text", set("size", `"5"`), at + "size: must be an integer"},
		{"integer with a fraction", set("size", `5.5`), at + "size: must be an integer"},
		{"required", required, at + "region: is required"},
		{"required and given", both(required, set("region", `"eu"`)), ""},
		{"required with a default", both(required, func(s *Subject) { s.Object.AdvancedConfigurationFields[0].Default = json.RawMessage(`"eu"`) }), ""},
		{"own key", own("", set("allow_empty_source", `true`)), ""},
		{"own key of a wrong type", own("", set("allow_empty_source", `"true"`)), at + "allow_empty_source: true or false"},
		{"own key where nothing is mirrored", func(s *Subject) {
			s.Object.SupportedOperations = []string{"upsert"}
			own("", set("allow_empty_source", `true`))(s)
		}, at + "allow_empty_source: does nothing"},
		{"delete_records elsewhere", own("salesforce", set("delete_records", `"full"`)), at + "delete_records: does nothing"},
		{"delete_records", own(api.TypeCustomAPI, set("delete_records", `"full"`)), ""},
		{"other delete_records", own(api.TypeCustomAPI, set("delete_records", `"all"`)), at + "delete_records: one of identifier, full"},
		{"own key of the object", func(s *Subject) {
			s.Object.ConfigurableFieldDefinitions = map[string]string{"allow_empty_source": "integer"}
			own("", set("allow_empty_source", `7`))(s)
		}, ""},
		{"by configurable_field_definitions", both(set("x", `1`), func(s *Subject) {
			s.Object.ConfigurableFieldDefinitions = map[string]string{"x": "integer"}
		}), ""},
	})
}

func TestCheckMode(t *testing.T) {
	schedule := func(sc api.Schedule) func(s *Subject) {
		return func(s *Subject) {
			s.Config.Mode = &api.Mode{Type: "triggered", Triggers: &api.Triggers{Schedule: &sc}}
		}
	}
	triggers := func(tr api.Triggers) func(s *Subject) {
		return func(s *Subject) { s.Config.Mode = &api.Mode{Type: "triggered", Triggers: &tr} }
	}
	cron := func(expression string) func(s *Subject) {
		return schedule(api.Schedule{Frequency: "expression", CronExpression: &expression})
	}
	live := func(s *Subject) { s.Config.Mode = &api.Mode{Type: "live"} }
	n := func(n int64) *int64 { return &n }
	const at = "mode.triggers.schedule."
	runRules(t, []rule{
		{"daily", schedule(api.Schedule{Frequency: "daily", Hour: n(24), Minute: n(59)}), ""},
		{"hour out of range", schedule(api.Schedule{Frequency: "daily", Hour: n(25)}), at + "hour: from 0 to 24, not 25"},
		{"minute out of range", schedule(api.Schedule{Frequency: "hourly", Minute: n(60)}), at + "minute: from 0 to 59"},
		{"never", schedule(api.Schedule{Frequency: "never"}), ""},
		{"unknown frequency", schedule(api.Schedule{Frequency: "monthly"}), at + "frequency: unknown value"},
		{"weekly", schedule(api.Schedule{Frequency: "weekly", Day: api.Ptr("Monday")}), ""},
		{"weekly without day", schedule(api.Schedule{Frequency: "weekly"}), at + "day: is required"},
		{"unknown day", schedule(api.Schedule{Frequency: "weekly", Day: api.Ptr("monday")}), at + "day: unknown value"},
		{"cron", cron("0 6 * * 1,2,3"), ""},
		{"cron with steps", cron("*/15 * * * *"), ""},
		{"cron of six fields", cron("0 0 6 * * *"), at + "cron_expression: has 6"},
		{"no cron", schedule(api.Schedule{Frequency: "expression"}), at + "cron_expression: is required"},
		{"cron beside daily", schedule(api.Schedule{Frequency: "daily", CronExpression: api.Ptr("0 6 * * *")}), at + "cron_expression: only"},
		{"sequence", triggers(api.Triggers{SyncSequence: &api.SequenceTrigger{SyncID: 4}}), ""},
		{"sequence without id", triggers(api.Triggers{SyncSequence: &api.SequenceTrigger{}}), "mode.triggers.sync_sequence.sync_id: is required"},
		{"dbt", triggers(api.Triggers{DBTCloud: &api.DBTTrigger{ProjectID: "1", JobID: "2"}}), ""},
		{"dbt without job", triggers(api.Triggers{DBTCloud: &api.DBTTrigger{ProjectID: "1"}}), "mode.triggers.dbt_cloud.job_id: is required"},
		{"fivetran without job", triggers(api.Triggers{Fivetran: &api.FivetranTrigger{}}), "mode.triggers.fivetran.job_id: is required"},
		{"unknown type", func(s *Subject) { s.Config.Mode = &api.Mode{Type: "manual"} }, "mode.type: unknown value"},
		{"live", func(s *Subject) { live(s); s.Streaming = true }, ""},
		{"mirror of a topic", func(s *Subject) {
			s.Streaming = true
			s.Config.Operation = "mirror"
			s.Object.SupportedOperations = append(s.Object.SupportedOperations, "mirror")
		}, "operation: mirror is not possible from a topic"},
		{"water mark of a topic", func(s *Subject) { s.Streaming = true; s.Config.HighWaterMarkAttribute = api.Ptr("CHANGED") },
			"high_water_mark_attribute: does not apply to topics"},
		{"live without a stream", live, "mode.type: streaming source"},
		{"live with a schedule", func(s *Subject) {
			schedule(api.Schedule{Frequency: "daily"})(s)
			s.Config.Mode.Type, s.Streaming = "live", true
		}, "mode.triggers: leave the triggers out"},
		{"flat", func(s *Subject) { s.Config.ScheduleFrequency, s.Config.ScheduleHour = api.Ptr("daily"), n(5) }, ""},
		{"flat hour out of range", func(s *Subject) { s.Config.ScheduleFrequency, s.Config.ScheduleHour = api.Ptr("daily"), n(25) },
			"schedule_hour: from 0 to 24"},
		{"flat without frequency", func(s *Subject) { s.Config.ScheduleHour = n(5) }, "schedule_frequency: is required"},
		{"flat against mode", func(s *Subject) {
			schedule(api.Schedule{Frequency: "hourly"})(s)
			s.Config.ScheduleFrequency = api.Ptr("daily")
		}, "schedule_frequency: contradicts"},
		{"older triggers", func(s *Subject) { s.Config.Triggers = &api.Triggers{SyncSequence: &api.SequenceTrigger{SyncID: 4}} }, ""},
		{"older triggers against mode", func(s *Subject) {
			triggers(api.Triggers{SyncSequence: &api.SequenceTrigger{SyncID: 4}})(s)
			s.Config.Triggers = &api.Triggers{SyncSequence: &api.SequenceTrigger{SyncID: 5}}
		}, "triggers: contradicts"},
		{"events", func(s *Subject) { live(s); s.Streaming = true; s.Config.SyncBehaviorFamily = api.Ptr("activateEvents") }, ""},
		{"events of a triggered sync", func(s *Subject) { s.Streaming = true; s.Config.SyncBehaviorFamily = api.Ptr("activateEvents") },
			"sync_behavior_family: only for live syncs"},
		{"events of a streaming database", func(s *Subject) {
			live(s)
			s.StreamingDatabase = true
			s.Config.SyncBehaviorFamily = api.Ptr("activateEvents")
		}, ""},
		{"events of a mirrored streaming database", func(s *Subject) {
			live(s)
			s.StreamingDatabase, s.Config.Operation = true, "mirror"
			s.Config.SyncBehaviorFamily = api.Ptr("activateEvents")
		}, "sync_behavior_family: not for operation mirror"},
		{"events of a database", func(s *Subject) { s.Config.SyncBehaviorFamily = api.Ptr("activateEvents") },
			"sync_behavior_family: only for live syncs from a streaming source"},
		{"records", func(s *Subject) { s.Config.SyncBehaviorFamily = api.Ptr("mapRecords") }, ""},
		{"records of a live streaming database", func(s *Subject) {
			live(s)
			s.StreamingDatabase = true
			s.Config.SyncBehaviorFamily = api.Ptr("mapRecords")
		}, "sync_behavior_family: not for live syncs"},
		{"unknown family", func(s *Subject) { s.Config.SyncBehaviorFamily = api.Ptr("events") }, "sync_behavior_family: unknown value"},
	})
}

func TestCheckAlerts(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	str := api.Ptr[string]
	alert := func(kind string, o *api.AlertOptions) func(s *Subject) {
		return func(s *Subject) {
			s.Config.AlertAttributes = []api.Alert{{Type: kind, SendFor: "first_time", Options: o}}
		}
	}
	const at = "alert_attributes[0]."
	runRules(t, []rule{
		{"failure", alert(api.AlertFailure, nil), ""},
		{"failure with empty options", alert(api.AlertFailure, &api.AlertOptions{}), ""},
		{"failure with a threshold", alert(api.AlertFailure, &api.AlertOptions{Threshold: n(5)}), at + "options.threshold: not an option"},
		{"unknown type", alert("Failure", nil), at + "type: unknown value"},
		{"send_for", func(s *Subject) {
			s.Config.AlertAttributes = []api.Alert{{Type: api.AlertFailure, SendFor: "always"}}
		}, at + "send_for: unknown value"},
		{"percent", alert(api.AlertInvalidRecordPercent, &api.AlertOptions{Threshold: n(0)}), ""},
		{"percent too high", alert(api.AlertInvalidRecordPercent, &api.AlertOptions{Threshold: n(101)}), at + "options.threshold: from 0 to 100"},
		{"percent without threshold", alert(api.AlertInvalidRecordPercent, nil), at + "options.threshold: is required"},
		{"full sync", alert(api.AlertFullSyncTrigger, nil), ""},
		{"deviation", alert(api.AlertRecordCountDeviation, &api.AlertOptions{Threshold: n(10), RecordType: str("records_updated"), RunCount: n(5)}), ""},
		{"deviation of something", alert(api.AlertRecordCountDeviation, &api.AlertOptions{Threshold: n(10), RecordType: str("rows")}),
			at + "options.record_type: unknown value"},
		{"deviation of no runs", alert(api.AlertRecordCountDeviation, &api.AlertOptions{Threshold: n(10), RecordType: str("records_updated"), RunCount: n(0)}),
			at + "options.run_count: from 1 to 100"},
		{"runtime", alert(api.AlertRuntime, &api.AlertOptions{Threshold: n(200), Unit: str("minutes"), StartType: str("actual")}), ""},
		{"runtime in days", alert(api.AlertRuntime, &api.AlertOptions{Threshold: n(2), Unit: str("days"), StartType: str("actual")}),
			at + "options.unit: unknown value"},
		{"runtime from somewhere", alert(api.AlertRuntime, &api.AlertOptions{Threshold: n(2), Unit: str("hours"), StartType: str("late")}),
			at + "options.start_type: unknown value"},
		{"status", alert(api.AlertStatus, &api.AlertOptions{StatusName: str("started")}), ""},
		{"other status", alert(api.AlertStatus, &api.AlertOptions{StatusName: str("failed")}), at + "options.status_name: unknown value"},
		{"known id", func(s *Subject) {
			s.Config.AlertAttributes = []api.Alert{{ID: n(7), Type: api.AlertFailure, SendFor: "every_time"}}
		}, ""},
		{"unknown id", func(s *Subject) {
			s.Config.AlertAttributes = []api.Alert{{ID: n(8), Type: api.AlertFailure, SendFor: "every_time"}}
		}, at + "id: no alert 8"},
		{"id twice", func(s *Subject) {
			a := api.Alert{ID: n(7), Type: api.AlertFailure, SendFor: "every_time"}
			s.Config.AlertAttributes = []api.Alert{a, a}
		}, "alert_attributes[1].id: listed twice"},
	})
}

// All problems of a payload are reported together, in its order.
func TestCheckReportsAll(t *testing.T) {
	s := valid()
	s.Config.Operation = "nothing"
	s.Config.SourceAttributes.ConnectionID = 0
	s.Config.Mappings = append(s.Config.Mappings, mapColumn("X", "y"))
	s.Config.FieldOrder = api.Ptr("z")
	var fields []string
	for _, p := range Check(s) {
		fields = append(fields, p.Field)
	}
	require.Equal(t, []string{"operation", "source_attributes.connection_id", "mappings[2].from.data", "mappings[2].to", "field_order"}, fields)
}

func TestCheckEmpty(t *testing.T) {
	require.NotEmpty(t, Check(Subject{}))
	require.NotEmpty(t, Check(Subject{Object: &api.DestinationObject{}}))
}
