package destination

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/judge"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// TestHookIsNamedBeforeTheEndpoint: a database without booleans and lists gives 1 and
// text, and a hook that hands them on makes a right endpoint look wrong.
func TestHookIsNamedBeforeTheEndpoint(t *testing.T) {
	flag, list := rpc.Field{APIName: "active", Type: rpc.TypeBoolean}, rpc.Field{APIName: "tags", Type: rpc.TypeString, Array: true}
	for _, tt := range []struct {
		field        rpc.Field
		sent, stored string
		want         string
	}{
		{flag, `true`, `1`, "the read-back hook shows 1 for true and 0 for false, as the database keeps it; or the endpoint "},
		{flag, `false`, `0`, "the read-back hook shows 1 for true and 0 for false, "},
		{flag, `true`, `"t"`, "the read-back hook shows text for true and false, "},
		{list, `["a","b"]`, `"[\"a\", \"b\"]"`, "the read-back hook shows the text of a list for the list, "},
		{list, `["a","b"]`, `"{a,b}"`, "the read-back hook shows the text of a list for the list, "},
		{list, `[]`, `"[]"`, "the read-back hook shows the text of a list for the list, "},
		{flag, `true`, `0`, ""},
		{flag, `true`, `null`, ""},
		{list, `["a","b"]`, `"a,b"`, ""},
		{list, `["a","b"]`, `"[\"a\"]"`, ""},
		{rpc.Field{APIName: "n", Type: rpc.TypeInteger}, `1`, `"1"`, ""},
	} {
		p := values.Pair{Field: tt.field, Sent: json.RawMessage(tt.sent), Stored: json.RawMessage(tt.stored)}
		cause, fix := write.HookShows(p)
		require.Equal(t, tt.want == "", cause == "", "%s as %s", tt.sent, tt.stored)
		require.Contains(t, cause, tt.want)
		require.Equal(t, tt.want == "", fix == "")
		require.Equal(t, cause, judge.DifferenceOf(&write.Record{}, p).Cause)
	}
}
