package mapping

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// The six kinds of alerts (spec 2.8 shows two the others).
var alertTypes = []string{
	api.AlertFailure, api.AlertInvalidRecordPercent, api.AlertFullSyncTrigger,
	api.AlertRecordCountDeviation, api.AlertRuntime, api.AlertStatus,
}

// alertOptions are the options of each type in the order of the wire (spec 2.8); a
// question mark follows those that may be left out.
var alertOptions = map[string][]string{
	api.AlertFailure:              nil,
	api.AlertInvalidRecordPercent: {"threshold"},
	api.AlertFullSyncTrigger:      nil,
	api.AlertRecordCountDeviation: {"threshold", "record_type", "run_count?"},
	api.AlertRuntime:              {"threshold", "unit", "start_type"},
	api.AlertStatus:               {"status_name"},
}

// Counts that a count deviation can compare, in the words of the wire.
var countedRecords = []string{
	"source_record_count", "records_updates", "records_deletes", "records_invalid",
	"records_processed", "records_updated", "records_failed",
}

// checkAlerts: spec 2.8. An alert with an id is one that the sync has already;
// one without is new.
func (c *checker) checkAlerts() {
	seen := map[int64]bool{}
	for i := range c.config.AlertAttributes {
		alert := &c.config.AlertAttributes[i]
		at := fmt.Sprintf("alert_attributes[%d]", i)
		if id := alert.ID; id != nil {
			switch {
			case !slices.Contains(c.ExistingAlerts, *id):
				c.bad(at+".id", "the sync has no alert %d: leave the id out to add one", *id)
			case seen[*id]:
				c.bad(at+".id", "the alert %d is listed twice", *id)
			}
			seen[*id] = true
		}
		known := c.oneOf(at+".type", alert.Type, alertTypes...)
		c.oneOf(at+".send_for", alert.SendFor, api.SendFirstTime, api.SendEveryTime)
		if known {
			c.checkAlertOptions(at+".options", alert)
		}
	}
}

// checkAlertOptions holds the options against those of the type: one that
// another type has would never be looked at.
func (c *checker) checkAlertOptions(at string, alert *api.Alert) {
	o := alert.Options
	if o == nil {
		o = &api.AlertOptions{}
	}
	given := map[string]bool{
		"threshold": o.Threshold != nil, "record_type": o.RecordType != nil, "run_count": o.RunCount != nil,
		"unit": o.Unit != nil, "start_type": o.StartType != nil, "status_name": o.StatusName != nil,
	}
	// In one order, so that the same payload gets the same answer.
	for _, option := range []string{"threshold", "record_type", "run_count", "unit", "start_type", "status_name"} {
		wanted := alertOptions[alert.Type]
		switch {
		case given[option] && !slices.Contains(wanted, option) && !slices.Contains(wanted, option+"?"):
			c.bad(at+"."+option, "is not an option of %s: %s", alert.Type, optionList(wanted))
		case !given[option] && slices.Contains(wanted, option):
			c.bad(at+"."+option, "is required for %s", alert.Type)
		case given[option]:
			c.checkAlertOption(at+"."+option, option, alert.Type, o)
		}
	}
}

// optionList words which options there are, for a message.
func optionList(options []string) string {
	if len(options) == 0 {
		return "it has none"
	}
	return "it has " + strings.ReplaceAll(strings.Join(options, ", "), "?", "")
}

// checkAlertOption checks the value of one option that the type has.
func (c *checker) checkAlertOption(field, option, alertType string, o *api.AlertOptions) {
	switch option {
	case "threshold":
		if alertType == api.AlertRuntime {
			const longest = 100_000 // in minutes or hours, ours
			c.within(field, *o.Threshold, 1, longest)
		} else {
			c.within(field, *o.Threshold, 0, 100)
		}
	case "record_type":
		c.oneOf(field, *o.RecordType, countedRecords...)
	case "run_count":
		c.within(field, *o.RunCount, 1, 100)
	case "unit":
		c.oneOf(field, *o.Unit, "minutes", "hours")
	case "start_type":
		c.oneOf(field, *o.StartType, "actual", "scheduled")
	case "status_name":
		c.oneOf(field, *o.StatusName, "started", "completed")
	}
}

// AlertIDs are the ids of the alerts that a sync has.
func AlertIDs(config *api.SyncConfig) (ids []int64) {
	for _, alert := range config.AlertAttributes {
		if alert.ID != nil {
			ids = append(ids, *alert.ID)
		}
	}
	return ids
}
