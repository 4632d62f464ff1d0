package destination_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
)

// TestMatrixWideEndpoint judges endpoints whose answers are far larger together than what the
// judge keeps: nothing is blamed on them, and nothing stays undecided for it.
func TestMatrixWideEndpoint(t *testing.T) {
	matrixtest.Long(t)
	if testing.Short() {
		t.Skip("describes 60 objects with 300 fields each")
	}
	for name, wide := range map[string]struct{ objects, fields, label int }{
		"many fields": {60, 300, 30},
		"long labels": {60, 250, 900},
	} {
		config := destsim.Config{}
		for i := range wide.objects {
			o := destsim.ObjectConfig{Name: fmt.Sprintf("object_%d", i), Operations: []string{"upsert"}}
			for j := range wide.fields {
				o.Fields = append(o.Fields, destsim.FieldConfig{
					Name: fmt.Sprintf("field_%d", j), Label: strings.Repeat("L", wide.label), Type: "string",
					Identifier: j == 0, Required: j == 0, Createable: new(true), Updateable: new(true),
				})
			}
			config.Objects = append(config.Objects, o)
		}
		report, err := destination.Run(t.Context(), destination.Target{URL: processes(t, config)[0]}, conformance.Options{Seed: 7, Select: []string{"RPC-*", "HTTP-*", "OBJ-*", "FLD-*", "OPS-*", "STA-*"}})
		require.NoError(t, err)
		require.Empty(t, broken(report), name)
		for _, c := range report.Checks {
			require.NotContains(t, c.Reason, "larger than", "%s: %s", name, c.ID)
			require.NotContains(t, c.Reason, "hold in memory", "%s: %s", name, c.ID)
		}
	}
}
