package mapping

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
)

// The five operations of spec 2.6.
var operations = []string{api.OperationAppend, api.OperationInsert, api.OperationMirror, api.OperationUpdate, api.OperationUpsert}

// checkOperation: spec 2.6, and the object decides what it can do (spec 2.3).
// Mirror is a separate operation and must be listed like the others.
func (c *checker) checkOperation() {
	if !c.oneOf("operation", c.config.Operation, operations...) {
		return
	}
	// A custom destination is never offered append, whatever it lists.
	if c.config.Operation == api.OperationAppend && c.DestinationType == api.TypeCustomAPI {
		c.bad("operation", "append is not possible on a custom destination: use insert or upsert")
		return
	}
	if c.config.Operation == api.OperationMirror && c.Streaming {
		c.bad("operation", "mirror is not possible from a topic, whose messages do not say what is gone: use upsert")
		return
	}
	if c.Object != nil && !slices.Contains(c.Object.SupportedOperations, c.config.Operation) {
		c.bad("operation", "%s is not supported by the object %q: it supports %s", c.config.Operation,
			c.Object.FullName, listed(c.Object.SupportedOperations))
	}
}

// listed words a list that may be empty.
func listed(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// checkDestination: the connection and one of its objects (spec 2.6). That both
// exist was looked up before.
func (c *checker) checkDestination() {
	d := c.config.DestinationAttributes
	if d.ConnectionID <= 0 {
		c.bad("destination_attributes.connection_id", "is required: the id of a destination")
	}
	if text(d.LeadUnion) != "" {
		c.bad("destination_attributes.lead_union_insert_to", "is for a union of leads and contacts, which no destination here has: leave it out, or empty")
	}
	switch {
	case d.Object == "":
		c.bad("destination_attributes.object", "is required: the full_name of a destination object")
	case c.Object != nil && !c.Object.CanBeSyncDestination:
		c.bad("destination_attributes.object", "the object %q cannot be the destination of a sync%s", foreign.Clip(d.Object, 80), whyNot(c.Object))
	}
}

// whyNot is the object's own reason, which a client sees with the object too.
func whyNot(o *api.DestinationObject) string {
	rules := o.PrimaryIdentifierMappingAttributes
	if rules == nil || text(rules.Upsert.Notes) == "" {
		return ""
	}
	return ": " + strings.TrimPrefix(*rules.Upsert.Notes, "This object cannot be written to: ")
}

// Names that replies of the real service use for datasets; a client
// may send them back.
var internalSources = []string{"business_object_source", "filter_segment_source", "cohort_source"}

// checkSource: the shapes of spec 2.8 and published behaviour.
func (c *checker) checkSource() {
	if c.config.SourceAttributes.ConnectionID <= 0 {
		c.bad("source_attributes.connection_id", "is required: the id of a source")
	}
	o := c.config.SourceAttributes.Object
	const at = "source_attributes.object"
	if slices.Contains(internalSources, o.Type) {
		o.Type = api.ObjectDataset
	}
	if !c.oneOf(at+".type", o.Type, api.ObjectTable, api.ObjectDataset, api.ObjectModel, api.ObjectTopic) {
		return
	}
	// Each kind has its own way to be named; an id does for all of them.
	hasID := o.ID != nil
	switch o.Type {
	case api.ObjectTable:
		if !hasID && text(o.TableName) == "" {
			c.bad(at+".table_name", "is required: a table is named by table_catalog, table_schema and table_name")
		}
	case api.ObjectModel:
		if !hasID && text(o.Name) == "" {
			c.bad(at+".id", "is required: a model is named by its id or its name")
		}
	case api.ObjectDataset:
		if !hasID && o.DatasetID == nil {
			c.bad(at+".id", "is required: the id of the dataset")
		}
	default:
		if !hasID {
			c.bad(at+".id", "is required: the id of the %s", o.Type)
		}
	}
}

// In characters, as a person counts them.
const longestLabel = 255

// checkLabel: any text that people can read.
func (c *checker) checkLabel() {
	label := text(c.config.Label)
	if n := utf8.RuneCountInString(label); n > longestLabel {
		c.bad("label", "must have at most %d characters, not %d", longestLabel, n)
	}
	if strings.ContainsRune(label, 0) {
		c.bad("label", "must not contain NUL")
	}
}

// checkFieldBehavior: spec 2.6 and 4.1.3. Properties are added by themselves
// only where the destination creates fields on write.
func (c *checker) checkFieldBehavior() {
	behavior := text(c.config.FieldBehavior)
	if c.config.FieldBehavior != nil &&
		c.oneOf("field_behavior", behavior, api.BehaviorAllProperties, api.BehaviorSpecificProperties) &&
		behavior == api.BehaviorAllProperties && c.Object != nil && !c.Object.AllowCustomFields && !c.Running {
		c.bad("field_behavior", "sync_all_properties needs an object that creates fields on write, and %q does not: use specific_properties", c.Object.FullName)
	}
	if n := c.config.FieldNormalization; n != nil && c.oneOf("field_normalization", *n, normalizations...) &&
		behavior != api.BehaviorAllProperties && c.sent("field_normalization") {
		c.bad("field_normalization", "applies only when field_behavior is sync_all_properties: set that, or leave it out")
	}
	if o := c.config.FieldOrder; o != nil && c.oneOf("field_order", *o, api.OrderAlphabetical, api.OrderMapping) &&
		c.Object != nil && !c.Object.SupportsFieldOrdering && c.sent("field_order") {
		c.bad("field_order", "the object %q does not support field ordering (supports_field_ordering): leave it out", c.Object.FullName)
	}
}

// checkSchemaChangePolicy: our own setting. The columns of a topic are its schema,
// which only a client changes.
func (c *checker) checkSchemaChangePolicy() {
	policy := c.config.SchemaChangePolicy
	if policy != nil && c.oneOf("schema_change_policy", *policy, api.SchemaPropagate, api.SchemaIgnore, api.SchemaPause) &&
		c.Streaming && c.sent("schema_change_policy") {
		c.bad("schema_change_policy", "does not apply to topics, whose schema only changes through this API: leave it out")
	}
}

// live reports whether the sync runs all the time.
func (c *checker) live() bool { return c.config.Mode != nil && c.config.Mode.Type == api.ModeLive }

// checkFamily: both exclusions of spec 2.6.
func (c *checker) checkFamily() {
	family := c.config.SyncBehaviorFamily
	if family == nil || !c.oneOf("sync_behavior_family", *family, api.FamilyActivateEvents, api.FamilyMapRecords) {
		return
	}
	switch {
	case *family == api.FamilyActivateEvents && (!c.live() || !c.Streaming && !c.StreamingDatabase):
		c.bad("sync_behavior_family", "activateEvents is only for live syncs from a streaming source: set mode.type to live and read a topic or a streaming database, or leave it out")
	case *family == api.FamilyActivateEvents && c.config.Operation == api.OperationMirror:
		c.bad("sync_behavior_family", "activateEvents is not for operation mirror, since events do not say what is gone: use upsert, or leave it out")
	case *family == api.FamilyMapRecords && c.live() && c.StreamingDatabase:
		c.bad("sync_behavior_family", "mapRecords is not for live syncs from a streaming database: leave it out, or set mode.type to triggered")
	}
}

// checkStrategies: spec 4.1.4.
func (c *checker) checkStrategies() {
	if h := c.config.HistoricalSyncOperation; h != nil && c.oneOf("historical_sync_operation", *h, api.HistorySkip, api.HistoryBackfill) &&
		c.config.Operation != api.OperationAppend && c.sent("historical_sync_operation") {
		c.bad("historical_sync_operation", "applies only to append syncs: leave it out")
	}
	if m := c.config.MirrorStrategy; m != nil && c.oneOf("mirror_strategy", *m, api.MirrorDeletes, api.MirrorNulls, api.MirrorSwap) &&
		c.config.Operation != api.OperationMirror && c.sent("mirror_strategy") {
		c.bad("mirror_strategy", "applies only to operation mirror: leave it out")
	}
}

// checkHighWaterMark: the column of new records of append syncs, in its present
// and its deprecated form (spec 2.6, 9).
func (c *checker) checkHighWaterMark() {
	// Both forms are stored, so a client that sends back a reply sends both.
	const now, old = "high_water_mark_attribute", "high_water_mark_attributes"
	name := text(c.config.HighWaterMarkAttribute)
	if c.config.HighWaterMarkAttribute != nil {
		if name == "" {
			c.bad(now, "must be the name of a timestamp column, or null")
		} else {
			c.checkWaterMarkColumn(now, now, name)
		}
	}
	deprecated := c.config.HighWaterMarkAttributes
	if deprecated == nil {
		return
	}
	column := text(deprecated.ColumnName)
	switch {
	case deprecated.UseHighWaterMark && column == "":
		c.bad(old+".column_name", "is required when use_high_water_mark_diff_type is true")
	case deprecated.UseHighWaterMark && name != "" && name != column:
		c.bad(old, "contradicts high_water_mark_attribute (%q against %q): leave the deprecated field out", foreign.Clip(column, 80), foreign.Clip(name, 80))
	case !deprecated.UseHighWaterMark && name != "":
		c.bad(old, "contradicts high_water_mark_attribute (%q): leave the deprecated field out", foreign.Clip(name, 80))
	case deprecated.UseHighWaterMark && name == "":
		c.checkWaterMarkColumn(old, old+".column_name", column)
	}
}

// checkWaterMarkColumn: the column must exist and have an order in time. Values
// of an unknown kind are given the benefit of the doubt.
func (c *checker) checkWaterMarkColumn(key, field, name string) {
	if c.Streaming {
		c.bad(key, "does not apply to topics, whose messages are known by their positions: set it to null")
		return
	}
	if c.config.Operation != api.OperationAppend {
		// A value from an earlier operation is dropped by Normalize instead.
		if c.sent(key) {
			c.bad(key, "applies only to append syncs: leave it out")
		}
		return
	}
	column := c.column(field, name)
	if column == nil {
		return
	}
	switch column.Kind {
	case api.KindDate, api.KindDateTime, api.KindAny, "":
	default:
		c.bad(field, "the column %q is of type %s: a high-water mark needs a timestamp or a date", foreign.Clip(name, 80), column.Kind)
	}
}

// column finds a column of the source, and reports one that is not there.
func (c *checker) column(field, name string) *api.Column {
	if !c.ColumnsKnown {
		return nil
	}
	names := make([]string, len(c.Columns))
	for i := range c.Columns {
		if c.Columns[i].Name == name {
			return &c.Columns[i]
		}
		names[i] = c.Columns[i].Name
	}
	c.bad(field, "the source has no column %q%s", foreign.Clip(name, 80), didYouMean(name, names))
	return nil
}

// checkDeprecatedThreshold: spec 8.
func (c *checker) checkDeprecatedThreshold() {
	if t := c.config.FailedRecordThresholdPercent; t != nil {
		c.within("failed_record_notifications_threshold_percent", *t, 0, 100)
	}
}

// checkSegments: a segment is a part of a dataset, and there are no
// cohorts: one that is kept without being read would send every row.
func (c *checker) checkSegments() {
	segment := c.config.FilterSegmentID
	switch isDataset := c.config.SourceAttributes.Object.Type == api.ObjectDataset; {
	case segment == nil:
	case *segment <= 0:
		c.bad("filter_segment_id", "must be an id above 0, not %d", *segment)
	case !isDataset && (c.sent("filter_segment_id") || c.sent("source_attributes")):
		c.bad("filter_segment_id", "needs a source object of type dataset: leave it out")
	}
	if c.config.CohortID != nil {
		c.bad("cohort_id", "cohorts are not supported: leave it out, or make a segment of the dataset and name it in filter_segment_id")
	}
}
