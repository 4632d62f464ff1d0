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

// TestTheLastReadbackFinds defects that no check looks for: reading back all keys of the run finds
// each kind of defect that breaks acknowledged, refused or deleted records.
func TestTheLastReadbackFinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, violation, actual string }{
		{"acknowledged and gone", "DUR-006", "it is not there"},
		{"acknowledged and changed", "DUR-006.2", ", as before"},
		{"a record of another check changed", "DUR-006.3", `it is "of another batch", though no later batch named it`},
		{"refused and written later", "DUR-007", "it is there"},
		{"deleted and returned", "DUR-008", "it is there again"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			b := inMemory(t, simConfig(c.violation))
			b.opts.Objects = b.opts.Objects[:1]
			b.opts.Select = []string{"DUR-006", "DUR-007", "DUR-008"}
			r := b.judge(t)
			check := matrixtest.CheckOf(c.violation)
			require.Equal(t, []string{check}, tripped(r))
			for _, found := range r.Checks {
				if found.ID == check {
					require.Contains(t, found.Findings[0].Actual, c.actual)
				}
			}
		})
	}
}

// TestALossIsWitnessed: without a read-back, an update shows which acknowledged record is not there.
func TestALossIsWitnessed(t *testing.T) {
	t.Parallel()
	b := inMemory(t, simConfig("SEM-003.4"))
	b.opts.Objects, b.opts.Select, b.opts.Readback = b.opts.Objects[:1], []string{"SEM-003"}, conformance.HookSpec{}
	require.Equal(t, []string{"SEM-003"}, tripped(b.judge(t)))
}
