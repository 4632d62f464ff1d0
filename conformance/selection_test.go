package conformance

import (
	"context"
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

func TestSelectionsThatAreMistakes(t *testing.T) {
	cases := []struct {
		name      string
		sel, skip []string
		want      string
	}{
		{"unknown id", []string{"RES-999"}, nil, `--select "RES-999" matches no check`},
		{"a good and an unknown one", []string{"RES-002", "XYZ-*"}, nil, `--select "XYZ-*" matches no check`},
		{"lower case", []string{"res-002"}, nil, "matches no check"},
		{"empty", []string{""}, nil, "matches no check"},
		{"no pattern", []string{"RES-[0"}, nil, "is not a pattern"},
		{"unknown skip", nil, []string{"RES-999"}, `--skip "RES-999" matches no check`},
		{"skip is no pattern", nil, []string{"[-]"}, "is not a pattern"},
		{"everything is skipped", nil, []string{"*"}, "nothing is selected"},
		{"the selection is skipped", []string{"OBJ-001"}, []string{"OBJ-001"}, "nothing is selected"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := newSmall()
			opts := Options{Select: c.sel, Skip: c.skip}
			_, err := Run(context.Background(), Target{Handler: e}, opts)
			requireUsage(t, err, c.want)
			_, err = Plan(context.Background(), Target{Handler: e}, opts)
			requireUsage(t, err, c.want)
			require.Empty(t, e.calls, "nothing is sent before the selection is understood")
		})
	}
}
