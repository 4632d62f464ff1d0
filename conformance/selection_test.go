package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// selected are the ids that a run with these options would judge.
func selected(t *testing.T, cat *Catalogue, sel, skip []string) []string {
	t.Helper()
	opts := &Options{Select: sel, Skip: skip}
	checks, err := opts.selectChecks(cat)
	require.NoError(t, err)
	var ids []string
	for _, c := range checks {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestSelection(t *testing.T) {
	cat, err := LoadCatalogue(SuiteDestination)
	require.NoError(t, err)
	all := selected(t, cat, nil, nil)
	require.Len(t, all, len(cat.Checks))

	ids := selected(t, cat, []string{"OBJ-00[12]"}, nil)
	require.Subset(t, ids, []string{"OBJ-001", "OBJ-002"})
	require.NotContains(t, ids, "OBJ-003")

	ids = selected(t, cat, []string{"RPC-*", "OBJ-001"}, []string{"RPC-00?"})
	require.Contains(t, ids, "RPC-010")
	require.Contains(t, ids, "OBJ-001")
	require.NotContains(t, ids, "RPC-003")

	ids = selected(t, cat, nil, []string{"RPC-*", "TLS-*"})
	require.False(t, slices.ContainsFunc(ids, func(id string) bool { return id[:4] == "RPC-" || id[:4] == "TLS-" }))
	require.Less(t, len(ids), len(all))
}

// TestSelectionAddsNeeds: whatever a selected check builds on is judged with it,
// through all the steps.
func TestSelectionAddsNeeds(t *testing.T) {
	cat, err := LoadCatalogue(SuiteDestination)
	require.NoError(t, err)
	for _, c := range cat.Checks {
		ids := selected(t, cat, []string{c.ID}, nil)
		require.Contains(t, ids, c.ID)
		for _, id := range ids {
			check, _ := cat.Check(id)
			require.Subset(t, ids, check.Needs, "%s selects %s", c.ID, id)
		}
	}
	ids := selected(t, cat, []string{"SEM-007"}, nil)
	require.Subset(t, ids, []string{"SEM-006", "RES-001", "OPS-004"})
}

func TestSelectionKeepsTheOrderOfTheCatalogue(t *testing.T) {
	cat, err := LoadCatalogue(SuiteDestination)
	require.NoError(t, err)
	ids := selected(t, cat, []string{"SEM-*", "RPC-*", "RES-*"}, nil)
	at := -1
	for _, id := range ids {
		next := slices.IndexFunc(cat.Checks, func(c *Check) bool { return c.ID == id })
		require.Greater(t, next, at, id)
		at = next
	}
}
