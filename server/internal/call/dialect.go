package call

import (
	"encoding/json"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// Switches are all places where the dialects differ; the names are in
// x-differences of the OpenAPI document, and a test holds the two together.
type Switches struct {
	SyncStatusCase         bool `switch:"sync-status-case"`
	PartialSyncUpdate      bool `switch:"partial-sync-update"`
	ErrorStatusInteger     bool `switch:"error-status-integer"`
	ErrorProblems          bool `switch:"error-problems"`
	RulesAsList            bool `switch:"rules-as-list"`
	NextInEveryList        bool `switch:"next-in-every-list"`
	BareKeys               bool `switch:"bare-keys"`
	UpdateOnlyProperties   bool `switch:"update-only-properties"`
	UnknownFields          bool `switch:"unknown-fields"`
	OrganizationDeprecated bool `switch:"organization-endpoints-deprecated"`
	IDsAsText              bool `switch:"ids-as-text"`
	QueryBooleans          bool `switch:"query-booleans"`
	UnsetRetention         bool `switch:"unset-retention"`
	SchedulePlaceholders   bool `switch:"schedule-placeholders"`
	UpdateNeedsIdentifier  bool `switch:"update-needs-identifier-only"`
	FailedRunNulls         bool `switch:"failed-run-nulls"`
	ManualRunUnscheduled   bool `switch:"manual-run-unscheduled"`
	EngineOfAnyType        bool `switch:"engine-of-any-type"`
	CredentialsCoerced     bool `switch:"credentials-coerced"`
}

// Live has every switch on. Without names, so that a new switch does not compile
// until it is here.
func Live() Switches {
	return Switches{
		true, true, true, true, true, true, true, true, true, true,
		true, true, true, true, true, true, true, true, true,
	}
}

// SyncStatus is a status as the dialect writes it.
func (s Switches) SyncStatus(status string) string {
	if s.SyncStatusCase {
		return status
	}
	return strings.ToLower(status)
}

// Fields sets the form of every rule.
func (s Switches) Fields(fields []api.ConfigField) []api.ConfigField {
	out := make([]api.ConfigField, len(fields))
	for i, f := range fields {
		f.Rules.AsList = s.RulesAsList
		if f.PossibleValues == nil {
			f.PossibleValues = []string{}
		}
		out[i] = f
	}
	return out
}

// Destination leaves out what the specification shows in update replies only
// (spec 2.2, 2.3). The objects are copied, since they are shared with a cache.
func (s Switches) Destination(d *api.Destination, update bool) {
	if update || s.UpdateOnlyProperties {
		return
	}
	d.IsFileSystemDestination = nil
	for i, o := range d.Objects {
		d.Objects[i] = s.Object(o)
	}
}

// Object is the same for one destination object. One that no sync can write to keeps
// the notes that say why.
func (s Switches) Object(o *api.DestinationObject) *api.DestinationObject {
	if s.UpdateOnlyProperties {
		return o
	}
	shown := *o
	if o.CanBeSyncDestination {
		shown.PrimaryIdentifierMappingAttributes = nil
	}
	shown.SupportedCustomFieldTypes = nil
	shown.IsAudienceDestination = nil
	return &shown
}

// publishedSync shows the schedule of a sync in full: some clients read its
// parts without looking whether they are there.
type publishedSync struct {
	*api.Sync
	ScheduleDay    *string `json:"schedule_day"`
	ScheduleHour   *int64  `json:"schedule_hour"`
	ScheduleMinute *int64  `json:"schedule_minute"`
	CronExpression *string `json:"cron_expression"`
}

// Sync is a sync as the dialect writes it.
func (s Switches) Sync(y *api.Sync) any {
	if !s.SchedulePlaceholders {
		return y
	}
	y.ResourceIdentifier = json.RawMessage("null")
	return publishedSync{y, y.ScheduleDay, y.ScheduleHour, y.ScheduleMinute, y.CronExpression}
}

// Run is a sync run as the dialect writes it. The work of a failed run stays in
// its records, and a cancelled run keeps its end: no source contradicts this.
func (s Switches) Run(r api.SyncRun) api.SyncRun {
	if s.FailedRunNulls && r.Status == api.RunFailed && !r.Canceled {
		r.CompletedAt = nil
		r.SourceRecordCount, r.SourceRecordUpdates, r.SourceRecordDeletes, r.SourceRecordInvalids = nil, nil, nil, nil
		r.RecordsProcessed, r.RecordsUpdated, r.RecordsFailed, r.RecordsInvalid = nil, nil, nil, nil
	}
	if s.ManualRunUnscheduled && r.TriggerReason != nil && r.TriggerReason.UITag == api.ReasonManual {
		r.ScheduledExecutionTime = nil
	}
	return r
}

// Retention is the days of a writeback log; a client fails on a null.
func (s Switches) Retention(days *int64) json.RawMessage {
	if days == nil && s.UnsetRetention {
		return nil
	}
	return api.Raw(days)
}
