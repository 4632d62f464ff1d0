package mapping

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/liquid"
	"github.com/destkit/destkit/internal/suggest"
	"github.com/destkit/destkit/server/api"
)

// Reading is a column that a configuration names, and where it does so.
type Reading struct{ Field, Column string }

// Readings are the columns that the client of a sync has named: in its mappings, in
// their templates, and as the high-water mark.
func Readings(c *api.SyncConfig) (list []Reading) {
	for i := range c.Mappings {
		m := &c.Mappings[i]
		field := fmt.Sprintf("mappings[%d].from.data", i)
		switch m.From.Type {
		case api.FromColumn:
			var name string
			if json.Unmarshal(m.From.Data, &name) == nil {
				list = append(list, Reading{field, name})
			}
		case api.FromLiquid:
			source, err := templateText(m.From.Data)
			if err != nil {
				continue
			}
			template, err := liquid.Parse(source)
			if err != nil {
				continue // Check reports it
			}
			for _, name := range template.Columns() {
				list = append(list, Reading{field, name})
			}
		}
	}
	if c.Operation == api.OperationAppend && text(c.HighWaterMarkAttribute) != "" {
		list = append(list, Reading{"high_water_mark_attribute", *c.HighWaterMarkAttribute})
	}
	return list
}

// Missing are the readings of columns that the source does not have.
func Missing(c *api.SyncConfig, columns []api.Column) []Reading {
	return slices.DeleteFunc(Readings(c), func(r Reading) bool {
		return slices.ContainsFunc(columns, func(column api.Column) bool { return column.Name == r.Column })
	})
}

// didYouMean gives ` (did you mean "x"?)` for the nearest of the known names, or
// all of them when they are few and none is near.
func didYouMean(name string, known []string) string {
	if near := suggest.Word(foreign.Clip(name, 80), known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	} else if len(known) > 0 && len(known) <= 12 {
		return fmt.Sprintf(" (known: %s)", strings.Join(known, ", "))
	}
	return ""
}

// FollowDeprecated lets an update by the deprecated fields act on a sync whose
// alerts are still those that the service has made from these fields: otherwise
// the fields could never be changed, as alert_attributes take precedence (spec
// 2.6). before is the configuration that was stored, after the one with the
// payload laid over it, present its top-level keys. Alerts keep their ids.
func FollowDeprecated(before, after *api.SyncConfig, present map[string]bool) {
	deprecated := present["failed_run_notifications_enabled"] || present["failed_record_notifications_enabled"] ||
		present["failed_record_notifications_threshold_percent"]
	if !deprecated || present["alert_attributes"] || !madeByService(before) {
		return
	}
	fresh := DefaultAlerts(after)
	for i := range fresh {
		had := func(a api.Alert) bool { return a.Type == fresh[i].Type }
		if at := slices.IndexFunc(before.AlertAttributes, had); at >= 0 {
			fresh[i].ID = before.AlertAttributes[at].ID
		}
	}
	after.AlertAttributes = fresh
}

// madeByService reports whether the alerts are what the deprecated fields say.
func madeByService(c *api.SyncConfig) bool {
	return c.AlertAttributes != nil && slices.EqualFunc(c.AlertAttributes, DefaultAlerts(c), func(a, b api.Alert) bool {
		a.ID, b.ID = nil, nil
		return reflect.DeepEqual(a, b)
	})
}
