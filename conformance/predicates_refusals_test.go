package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
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
		want           Status
		reason         string
	}{
		{"SEM-001", none, Inconclusive, ""},
		{"SEM-002", none, Inconclusive, ""},
		{"SEM-002", changes, Pass, ""}, // the skip that it is about
		{"SEM-003", none, Inconclusive, ""},
		{"SEM-003", changes, Inconclusive, ""},
		{"AUTH-008", none, Inconclusive, ""},
		{"FLD-013", none, Inconclusive, ""},
		{"PAR-005", none, Inconclusive, ""},
		{"RES-015", none, Inconclusive, ""},
		{"RES-019", none, Inconclusive, ""},
		{"TIM-002", none, Inconclusive, ""},
		{"SEM-004", none, Inconclusive, ""},
		{"SEM-004", changes, Inconclusive, ""},
		{"SEM-005", none, Inconclusive, ""},
		{"SEM-006", none, Inconclusive, ""},
		{"SEM-007", none, Inconclusive, ""},
		{"SEM-007", changes, Inconclusive, ""},
		{"SEM-008", none, Inconclusive, ""},
		{"SEM-008", changes, Inconclusive, ""},
		{"SEM-009", none, Inconclusive, ""},
		{"SEM-009", changes, Inconclusive, ""},
		{"SEM-010", none, Inconclusive, ""},
		{"SEM-010", changes, Inconclusive, ""},
		{"SEM-012", none, Inconclusive, ""},
		{"SEM-012", changes, Inconclusive, ""},
		{"SEM-013", none, Inconclusive, ""},
		{"SEM-013", changes, Inconclusive, ""},
		{"SEM-014", none, Inconclusive, ""},
		{"SEM-015", none, Inconclusive, ""},
		{"SEM-015", changes, Fail, "every skip of update as success"},
		{"SEM-016", none, Inconclusive, ""},
		{"SEM-017", none, Inconclusive, ""},
		{"SEM-017", changes, Inconclusive, ""},
		{"DAT-001", none, Inconclusive, ""},
		{"DAT-003", none, Inconclusive, ""},
		{"DAT-003", changes, Inconclusive, ""},
		{"DAT-004", none, Inconclusive, ""},
		{"DAT-011", none, Inconclusive, ""},
		{"DAT-013", none, Inconclusive, ""},
		{"DAT-015", none, Inconclusive, ""},
		{"DUP-002", none, Inconclusive, ""},
		{"DUP-002", changes, Inconclusive, ""},
		{"DUR-001", none, Inconclusive, ""},
		{"DUR-004", none, Inconclusive, ""},
		{"DUR-004", changes, Inconclusive, ""},
		{"FLD-011", none, Inconclusive, ""},
		{"FLD-014", none, Inconclusive, ""},
		{"FLD-014", changes, Inconclusive, ""},
		{"OBJ-005", none, Inconclusive, ""},
		{"OPS-006", none, Inconclusive, ""},
		{"OPS-006", changes, Inconclusive, ""},
		{"PAR-003", none, Inconclusive, ""},
		{"RES-012", none, Inconclusive, ""},
		{"RES-012", changes, Inconclusive, ""},
		{"RES-013", none, Inconclusive, ""},
		{"RES-013", changes, Inconclusive, ""},
		{"RES-014", none, Inconclusive, ""},
		{"RES-014", changes, Inconclusive, ""},
		{"RES-016", none, Inconclusive, ""},
		{"RES-020", none, Inconclusive, ""},
		{"STA-002", none, Inconclusive, ""},
		{"STA-003", none, Inconclusive, ""},
		{"STA-004", none, Inconclusive, ""},
		{"STA-004", changes, Inconclusive, ""},
	}
	cat, err := LoadCatalogue(SuiteDestination)
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
