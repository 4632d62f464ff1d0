package rpc

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesOfTheProtocol(t *testing.T) {
	require.Equal(t, []string{"test_connection", "list_objects", "list_fields",
		"supported_operations", "get_sync_speed", "sync_batch"}, Methods())
	require.Equal(t, []string{"boolean", "decimal", "float", "integer", "date", "date_time", "string"}, FieldTypes())
}

// TestFieldHasAllEightKeys: no key of a field may vanish when it is false or
// empty, and can_create_fields must when it is not used.
func TestFieldHasAllEightKeys(t *testing.T) {
	text, err := json.Marshal(Field{})
	require.NoError(t, err)
	require.Equal(t, `{"field_api_name":"","label":"","identifier":false,"required":false,`+
		`"createable":false,"updateable":false,"type":"","array":false}`, string(text))
	text, err = json.Marshal(Object{APIName: "a", Label: "A"})
	require.NoError(t, err)
	require.Equal(t, `{"object_api_name":"a","label":"A"}`, string(text))
	require.Equal(t, ObjectRef{APIName: "a", Label: "A"}, Object{APIName: "a", Label: "A", CanCreateFields: CanCreateOnWrite}.Ref())
}
