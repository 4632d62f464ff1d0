package mapping

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// What a client has named itself is missed by its place; what is generated is not.
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
