package api

import "encoding/json"

// Operations of a sync (spec 2.6).
const (
	OperationAppend = "append"
	OperationInsert = "insert"
	OperationMirror = "mirror"
	OperationUpdate = "update"
	OperationUpsert = "upsert"
)

// The values of sync.status: no history, last run completed, last
// run failed. The spec dialect writes them in lower case.
const (
	SyncReady    = "Ready"
	SyncUpToDate = "Up to Date"
	SyncFailing  = "Failing"
)

// Values of the enums of a sync (spec 2.6).
const (
	BehaviorAllProperties      = "sync_all_properties"
	BehaviorSpecificProperties = "specific_properties"
	OrderAlphabetical          = "alphabetical_column_name"
	OrderMapping               = "mapping_order"
	FamilyActivateEvents       = "activateEvents"
	FamilyMapRecords           = "mapRecords"
	HistorySkip                = "skip_current_records"
	HistoryBackfill            = "backfill_all_records"
	MirrorDeletes              = "sync_updates_and_deletes"
	MirrorNulls                = "sync_updates_and_nulls"
	MirrorSwap                 = "upload_and_swap"
	ModeTriggered              = "triggered"
	ModeLive                   = "live"
)

// What a run does when the columns of its source have changed since the run before
// it (ours). Without a policy a sync of all properties propagates, and another one
// ignores.
const (
	SchemaPropagate = "propagate" // new columns are mapped, those that are gone no more
	SchemaIgnore    = "ignore"    // no mapping is generated for a new column
	SchemaPause     = "pause"     // nothing is sent, the sync is paused, an alert is raised
)

// Sync is a configured movement of records (spec 2.6).
type Sync struct {
	ID        int64  `json:"id"`
	Status    string `json:"status"`
	CreatedAt Time   `json:"created_at"`
	UpdatedAt Time   `json:"updated_at"`
	SyncConfig
	// MatchRateDetails is a MatchRate or null; empty where the dialect leaves it
	// out.
	MatchRateDetails json.RawMessage `json:"match_rate_details,omitempty"`
	// ResourceIdentifier is null, since syncs have none here; empty where the
	// dialect leaves it out.
	ResourceIdentifier json.RawMessage `json:"resource_identifier,omitempty"`
}

// SyncConfig is what a client decides about a sync (spec 2.6). The flat
// schedule fields and triggers are the older published form of mode:
// they are accepted, folded into Mode, and shown again in replies.
type SyncConfig struct {
	Label                        *string                    `json:"label"`
	Operation                    string                     `json:"operation"`
	DestinationAttributes        DestinationAttributes      `json:"destination_attributes"`
	SourceAttributes             SourceAttributes           `json:"source_attributes"`
	Mappings                     []Mapping                  `json:"mappings"`
	AlertAttributes              []Alert                    `json:"alert_attributes"`
	AdvancedConfiguration        map[string]json.RawMessage `json:"advanced_configuration"`
	Mode                         *Mode                      `json:"mode"`
	Paused                       bool                       `json:"paused"`
	FieldBehavior                *string                    `json:"field_behavior"`
	FieldNormalization           *string                    `json:"field_normalization"`
	FieldOrder                   *string                    `json:"field_order"`
	SchemaChangePolicy           *string                    `json:"schema_change_policy,omitempty"` // ours
	SyncBehaviorFamily           *string                    `json:"sync_behavior_family"`
	HighWaterMarkAttribute       *string                    `json:"high_water_mark_attribute"`
	HighWaterMarkAttributes      *HighWaterMarkAttributes   `json:"high_water_mark_attributes"`
	FailedRunNotifications       *bool                      `json:"failed_run_notifications_enabled"`
	FailedRecordNotifications    *bool                      `json:"failed_record_notifications_enabled"`
	FailedRecordThresholdPercent *int64                     `json:"failed_record_notifications_threshold_percent"`
	HistoricalSyncOperation      *string                    `json:"historical_sync_operation"`
	MirrorStrategy               *string                    `json:"mirror_strategy"`
	FilterSegmentID              *int64                     `json:"filter_segment_id,omitempty"`
	CohortID                     *int64                     `json:"cohort_id,omitempty"`

	ScheduleFrequency *string   `json:"schedule_frequency,omitempty"`
	ScheduleDay       *string   `json:"schedule_day,omitempty"`
	ScheduleHour      *int64    `json:"schedule_hour,omitempty"`
	ScheduleMinute    *int64    `json:"schedule_minute,omitempty"`
	CronExpression    *string   `json:"cron_expression,omitempty"`
	Triggers          *Triggers `json:"triggers,omitempty"`
}

// DestinationAttributes names the destination object of a sync (spec 2.6).
type DestinationAttributes struct {
	ConnectionID int64   `json:"connection_id"`
	Object       string  `json:"object"` // full_name
	LeadUnion    *string `json:"lead_union_insert_to,omitempty"`
}

// SourceAttributes names the source object of a sync (spec 2.6). A segment of a
// dataset appears next to it, and again at the top of the sync.
type SourceAttributes struct {
	ConnectionID    int64        `json:"connection_id"`
	Object          SourceObject `json:"object"`
	FilterSegmentID *int64       `json:"filter_segment_id,omitempty"`
}

// Types of a source object (spec 2.8). Replies show a segment as
// ObjectFilterSegment.
const (
	ObjectTable         = "table"
	ObjectDataset       = "dataset"
	ObjectModel         = "model"
	ObjectTopic         = "topic"
	ObjectSegment       = "segment"
	ObjectFilterSegment = "filter_segment_source"
)

// SourceObject points at a table, dataset, model or topic (spec 2.8; model and
// topic from published material). Tables are named by the three table_ fields, models by
// id or name, the others by id. In replies a dataset, model or topic also shows
// its name, its times and its query.
type SourceObject struct {
	Type         string  `json:"type"`
	ID           *int64  `json:"id,omitempty"`
	Name         *string `json:"name,omitempty"`
	TableCatalog *string `json:"table_catalog,omitempty"`
	TableSchema  *string `json:"table_schema,omitempty"`
	TableName    *string `json:"table_name,omitempty"`
	DatasetID    *int64  `json:"dataset_id,omitempty"`
	CreatedAt    *Time   `json:"created_at,omitempty"`
	UpdatedAt    *Time   `json:"updated_at,omitempty"`
	Query        *string `json:"query,omitempty"`
}

// Types of a mapping's source (spec 2.7; the last three from published material).
const (
	FromColumn            = "column"
	FromConstant          = "constant_value"
	FromLiquid            = "liquid_template"
	FromSyncMetadata      = "sync_metadata"
	FromSegmentMembership = "segment_membership"
	FromCompoundKey       = "compound_key"
)

// Mapping moves one value into one destination field (spec 2.7; the fields
// below LookupField from published material).
type Mapping struct {
	From                MappingFrom `json:"from"`
	To                  string      `json:"to"`
	IsPrimaryIdentifier bool        `json:"is_primary_identifier"`
	LookupObject        *string     `json:"lookup_object"`
	LookupField         *string     `json:"lookup_field"`
	GenerateField       bool        `json:"generate_field"`
	PreserveValues      bool        `json:"preserve_values"`
	Operation           *string     `json:"operation"` // merge, overwrite; arrays only
	SyncNullValues      *bool       `json:"sync_null_values"`
	ArrayField          bool        `json:"array_field"`
	FieldType           *string     `json:"field_type"`
	FollowSourceType    bool        `json:"follow_source_type"`
	Position            *int64      `json:"position"`
}

// MappingFrom is where a mapped value comes from (spec 2.7). Data is a string
// for column and sync_metadata, a Constant for constant_value, a Template for
// liquid_template (a bare string is accepted too).
type MappingFrom struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// Constant is the data of a constant_value. BasicType is boolean, date_time
// (or datetime), number or text.
type Constant struct {
	Value     json.RawMessage `json:"value"`
	BasicType string          `json:"basic_type"`
}

// Template is the data of a liquid_template.
type Template struct {
	Text string `json:"liquid_template"`
}

// Types of an alert (spec 2.8; all but the first two from published material).
const (
	AlertFailure              = "FailureAlertConfiguration"
	AlertInvalidRecordPercent = "InvalidRecordPercentAlertConfiguration"
	AlertFullSyncTrigger      = "FullSyncTriggerAlertConfiguration"
	AlertRecordCountDeviation = "RecordCountDeviationAlertConfiguration"
	AlertRuntime              = "RuntimeAlertConfiguration"
	AlertStatus               = "StatusAlertConfiguration"
	SendFirstTime             = "first_time"
	SendEveryTime             = "every_time"
)

// Alert is one alert of a sync (spec 2.8). ID is given by the service and must
// be sent back in updates.
type Alert struct {
	ID                 *int64        `json:"id,omitempty"`
	Type               string        `json:"type"`
	SendFor            string        `json:"send_for"`
	ShouldSendRecovery bool          `json:"should_send_recovery"`
	Options            *AlertOptions `json:"options"`
}

// AlertOptions are the options of the alert types together (spec 2.8): Threshold in
// percent, or in Unit for a runtime.
type AlertOptions struct {
	Threshold  *int64  `json:"threshold,omitempty"`
	RecordType *string `json:"record_type,omitempty"`
	RunCount   *int64  `json:"run_count,omitempty"` // ours: earlier runs to average, 1 to 100
	Unit       *string `json:"unit,omitempty"`
	StartType  *string `json:"start_type,omitempty"`
	StatusName *string `json:"status_name,omitempty"`
}

// Mode defines when a sync runs (spec 2.6).
type Mode struct {
	Type     string    `json:"type"` // triggered, live
	Triggers *Triggers `json:"triggers"`
}

// Triggers start runs; several can be combined.
type Triggers struct {
	Schedule     *Schedule        `json:"schedule,omitempty"`
	DBTCloud     *DBTTrigger      `json:"dbt_cloud,omitempty"`
	Fivetran     *FivetranTrigger `json:"fivetran,omitempty"`
	SyncSequence *SequenceTrigger `json:"sync_sequence,omitempty"`
}

// Frequencies of a schedule (spec 2.6 shows daily; the others from published material).
const (
	FrequencyNever         = "never"
	FrequencyContinuous    = "continuous"
	FrequencyQuarterHourly = "quarter_hourly"
	FrequencyHourly        = "hourly"
	FrequencyDaily         = "daily"
	FrequencyWeekly        = "weekly"
	FrequencyExpression    = "expression"
)

// Schedule in UTC. Day is Sunday to Saturday, Hour 0 to 24, Minute 0 to 59,
// CronExpression has five fields and goes with frequency expression.
type Schedule struct {
	Frequency      string  `json:"frequency"`
	Day            *string `json:"day"`
	Hour           *int64  `json:"hour"`
	Minute         *int64  `json:"minute"`
	CronExpression *string `json:"cron_expression"`
}

// DBTTrigger runs a sync after a job of another product.
type DBTTrigger struct {
	ProjectID string `json:"project_id"`
	JobID     string `json:"job_id"`
}

// FivetranTrigger runs a sync after a job of another product.
type FivetranTrigger struct {
	JobID   string `json:"job_id"`
	JobName string `json:"job_name"`
}

// SequenceTrigger runs a sync after another one completed.
type SequenceTrigger struct {
	SyncID int64 `json:"sync_id"`
}

// HighWaterMarkAttributes is the deprecated form of high_water_mark_attribute
// (spec 2.6).
type HighWaterMarkAttributes struct {
	UseHighWaterMark bool    `json:"use_high_water_mark_diff_type"`
	ColumnName       *string `json:"column_name"`
}

// MatchRate of an audience destination: matched over sent in the last run, 0 to
// 1 (spec 2.6).
type MatchRate struct {
	MatchRate        float64 `json:"match_rate"`
	LastCalculatedAt Time    `json:"match_rate_last_calculated_at"`
}

// SyncRun is one execution of a sync (spec 2.9). Counters are null until the
// run knows them.
type SyncRun struct {
	ID                     int64          `json:"id"`
	SyncID                 int64          `json:"sync_id"`
	CreatedAt              Time           `json:"created_at"`
	UpdatedAt              Time           `json:"updated_at"`
	CompletedAt            *Time          `json:"completed_at"`
	ScheduledExecutionTime *Time          `json:"scheduled_execution_time"`
	Status                 string         `json:"status"`
	CurrentStep            *string        `json:"current_step"`
	Canceled               bool           `json:"canceled"`
	FullSync               bool           `json:"full_sync"`
	ErrorCode              *string        `json:"error_code"`
	ErrorMessage           *string        `json:"error_message"`
	ErrorDetail            *string        `json:"error_detail"`
	SourceRecordCount      *int64         `json:"source_record_count"`
	SourceRecordUpdates    *int64         `json:"source_record_updates"`
	SourceRecordDeletes    *int64         `json:"source_record_deletes"`
	SourceRecordInvalids   *int64         `json:"source_record_invalids"`
	RecordsProcessed       *int64         `json:"records_processed"`
	RecordsUpdated         *int64         `json:"records_updated"`
	RecordsFailed          *int64         `json:"records_failed"`
	RecordsInvalid         *int64         `json:"records_invalid"`
	TriggerReason          *TriggerReason `json:"sync_trigger_reason"`
	SchemaChanges          []SchemaChange `json:"schema_changes,omitempty"` // ours
}

// The kinds of SchemaChange. A column that got another name is one that is removed
// and one that is added.
const (
	ColumnAdded   = "added"
	ColumnRemoved = "removed"
	ColumnRetyped = "retyped"
)

// SchemaChange is a source column that changed since the run before. Before and
// After are its types as the source calls them; Handling describes how the run
// dealt with it.
type SchemaChange struct {
	Change   string  `json:"change"`
	Column   string  `json:"column"`
	Before   *string `json:"type_before"`
	After    *string `json:"type_after"`
	Handling string  `json:"handling"`
}

// SyncRunRecord is what became of one record of a run. Identifier is
// null where the row has none.
type SyncRunRecord struct {
	RecordPayload    json.RawMessage `json:"record_payload"`
	Identifier       json.RawMessage `json:"identifier"`
	BatchStartedAt   Time            `json:"batch_started_at"`
	BatchCompletedAt Time            `json:"batch_completed_at"`
	Operation        string          `json:"operation"`
	Status           string          `json:"status"`
	StatusMessage    *string         `json:"status_message"`
}

// Statuses of invalid rows whose identifier is what is wrong.
const (
	RecordNull      = "NULL"
	RecordDuplicate = "DUPLICATE"
)

// ErrorSchemaChanged is the error_code of a run that found other columns in its source
// while the schema_change_policy of its sync is pause.
const ErrorSchemaChanged = "SCHEMA_CHANGED"

// ReasonManual is the ui_tag of a run that a client has triggered.
const ReasonManual = "Manual"

// TriggerReason holds why a run was started (spec 2.9).
type TriggerReason struct {
	UITag    string `json:"ui_tag"`
	UIDetail string `json:"ui_detail"`
}

// The values of sync_run.status.
const (
	RunQueued    = "queued"
	RunWorking   = "working"
	RunCompleted = "completed"
	RunFailed    = "failed"
	RunSkipped   = "skipped"
)
