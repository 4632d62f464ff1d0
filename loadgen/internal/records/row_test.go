package records

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

func TestRecordsHaveTheTypesOfTheirFields(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, typ := range rpc.FieldTypes() {
		for range 200 {
			for _, array := range []bool{false, true} {
				raw := appendField(nil, rpc.Field{Type: typ, Array: array}, r)
				require.True(t, json.Valid(raw), string(raw))
				var v any
				require.NoError(t, json.Unmarshal(raw, &v))
				if array {
					list := v.([]any)
					require.NotEmpty(t, list)
					v = list[0]
				}
				want := map[string]any{rpc.TypeBoolean: true, rpc.TypeFloat: 1.0, rpc.TypeInteger: 1.0}[typ]
				if want == nil {
					want = ""
				}
				require.IsType(t, want, v, typ)
			}
		}
	}
}
