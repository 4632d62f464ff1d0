package destination

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
)

// refusingEndpoints are endpoints that answer well and refuse records one by one.
var refusingEndpoints = map[string]says{
	"every record": {"sync_batch": results(refusal)},
	// What is new is taken, and each change of it is not.
	"every change": {"sync_batch": when(func(a *asked) bool { return a.again }, results(refusal), results(acknowledged))},
}

// TestNothingRefusedPasses: what an endpoint refuses shows nothing of what it does
// with a record that it accepts. The read-back shows what was acknowledged.
func TestNothingRefusedPasses(t *testing.T) {
	none, changes := "every record", "every change"
	cases := []struct {
		check, refuses string
		want           conformance.Status
		reason         string
	}{
		{"SEM-001", none, conformance.Inconclusive, ""},
		{"SEM-002", none, conformance.Inconclusive, ""},
		{"SEM-002", changes, conformance.Pass, ""}, // the skip that it is about
		{"SEM-003", none, conformance.Inconclusive, ""},
		{"SEM-003", changes, conformance.Inconclusive, ""},
		{"AUTH-008", none, conformance.Inconclusive, ""},
		{"FLD-013", none, conformance.Inconclusive, ""},
		{"PAR-005", none, conformance.Inconclusive, ""},
		{"RES-015", none, conformance.Inconclusive, ""},
		{"RES-019", none, conformance.Inconclusive, ""},
		{"TIM-002", none, conformance.Inconclusive, ""},
		{"SEM-004", none, conformance.Inconclusive, ""},
		{"SEM-004", changes, conformance.Inconclusive, ""},
		{"SEM-005", none, conformance.Inconclusive, ""},
		{"SEM-006", none, conformance.Inconclusive, ""},
		{"SEM-007", none, conformance.Inconclusive, ""},
		{"SEM-007", changes, conformance.Inconclusive, ""},
		{"SEM-008", none, conformance.Inconclusive, ""},
		{"SEM-008", changes, conformance.Inconclusive, ""},
		{"SEM-009", none, conformance.Inconclusive, ""},
		{"SEM-009", changes, conformance.Inconclusive, ""},
		{"SEM-010", none, conformance.Inconclusive, ""},
		{"SEM-010", changes, conformance.Inconclusive, ""},
		{"SEM-012", none, conformance.Inconclusive, ""},
		{"SEM-012", changes, conformance.Inconclusive, ""},
		{"SEM-013", none, conformance.Inconclusive, ""},
		{"SEM-013", changes, conformance.Inconclusive, ""},
		{"SEM-014", none, conformance.Inconclusive, ""},
		{"SEM-015", none, conformance.Inconclusive, ""},
		{"SEM-015", changes, conformance.Fail, "every skip of update as success"},
		{"SEM-016", none, conformance.Inconclusive, ""},
		{"SEM-017", none, conformance.Inconclusive, ""},
		{"SEM-017", changes, conformance.Inconclusive, ""},
		{"DAT-001", none, conformance.Inconclusive, ""},
		{"DAT-003", none, conformance.Inconclusive, ""},
		{"DAT-003", changes, conformance.Inconclusive, ""},
		{"DAT-004", none, conformance.Inconclusive, ""},
		{"DAT-011", none, conformance.Inconclusive, ""},
		{"DAT-013", none, conformance.Inconclusive, ""},
		{"DAT-015", none, conformance.Inconclusive, ""},
		{"DUP-002", none, conformance.Inconclusive, ""},
		{"DUP-002", changes, conformance.Inconclusive, ""},
		{"DUR-001", none, conformance.Inconclusive, ""},
		{"DUR-004", none, conformance.Inconclusive, ""},
		{"DUR-004", changes, conformance.Inconclusive, ""},
		{"FLD-011", none, conformance.Inconclusive, ""},
		{"FLD-014", none, conformance.Inconclusive, ""},
		{"FLD-014", changes, conformance.Inconclusive, ""},
		{"OBJ-005", none, conformance.Inconclusive, ""},
		{"OPS-006", none, conformance.Inconclusive, ""},
		{"OPS-006", changes, conformance.Inconclusive, ""},
		{"PAR-003", none, conformance.Inconclusive, ""},
		{"RES-012", none, conformance.Inconclusive, ""},
		{"RES-012", changes, conformance.Inconclusive, ""},
		{"RES-013", none, conformance.Inconclusive, ""},
		{"RES-013", changes, conformance.Inconclusive, ""},
		{"RES-014", none, conformance.Inconclusive, ""},
		{"RES-014", changes, conformance.Inconclusive, ""},
		{"RES-016", none, conformance.Inconclusive, ""},
		{"RES-020", none, conformance.Inconclusive, ""},
		{"STA-002", none, conformance.Inconclusive, ""},
		{"STA-003", none, conformance.Inconclusive, ""},
		{"STA-004", none, conformance.Inconclusive, ""},
		{"STA-004", changes, conformance.Inconclusive, ""},
	}
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	for _, c := range cases {
		t.Run(c.check+"/"+c.refuses, func(t *testing.T) {
			t.Parallel()
			check, ok := cat.Check(c.check)
			require.True(t, ok)
			e := exchange{}
			r := e.judge(t, check, talk{says: refusingEndpoints[c.refuses], holds: []stored{asAcknowledged}})
			require.Equal(t, c.want, r.Status, "%s%s", r.Reason, findings(r))
			require.Contains(t, r.Reason+findings(r), c.reason)
		})
	}
}
