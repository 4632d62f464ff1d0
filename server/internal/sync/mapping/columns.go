package mapping

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/destkit/destkit/internal/liquid"
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
