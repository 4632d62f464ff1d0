package causes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// TestMember: what stands in the place of a member leads to its cause, and a member that
// is as it must be to none.
func TestMember(t *testing.T) {
	for _, c := range []struct {
		object string
		name   string
		kind   wire.NodeKind
		cause  string
	}{
		{`{"success":true}`, "success", wire.Bool, ""},
		{`{"ok":true}`, "success", wire.Bool, "member under another name"},
		{`{"identifier":"a","error_message":"b"}`, "success", wire.Bool, "member left out"},
		{`{"success":"true"}`, "success", wire.Bool, "member as text"},
		{`{"success":1}`, "success", wire.Bool, "count for a boolean"},
		{`{"success":null}`, "success", wire.Bool, "null member"},
		{`{"results":[]}`, "record_results", wire.Array, "member under another name"},
		{`{"record_results":{"a":{}}}`, "record_results", wire.Array, "map for a list"},
		{`{"operations":"insert,update"}`, "operations", wire.Array, "member as text"},
		{`{"operations":" "}`, "operations", wire.Array, "empty text"},
		{`{"maximum_batch_size":0}`, "maximum_batch_size", wire.Number, "no limit"},
		{`{"maximum_batch_size":2.5}`, "maximum_batch_size", wire.Number, "number with fraction"},
		{`{"maximum_batch_size":true}`, "maximum_batch_size", wire.Number, "member of another type"},
		{`{"maximum_batch_size":7}`, "maximum_batch_size", wire.Number, ""},
		{`[]`, "record_results", wire.Array, ""},
	} {
		n, err := wire.Parse([]byte(c.object))
		require.NoError(t, err)
		got, is := Member(n, c.name, c.kind, "identifier", "error_message")
		require.Equal(t, c.cause, got.Name, c.object)
		require.Equal(t, c.cause != "", is, c.object)
		require.Equal(t, is, got.Text != "" && got.Fix != "", c.object)
	}
}
