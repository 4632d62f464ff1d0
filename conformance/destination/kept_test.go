package destination_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/matrixtest"
)

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
