package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// TestStepsTakeTables: what stands below a step arrives as a type of this package.
func TestStepsTakeTables(t *testing.T) {
	type actor struct {
		table *wire.DataTable
	}
	steps := []Step{
		NewStep(`^a table:$`, func(a *actor) any { return func(t *wire.DataTable) error { a.table = t; return nil } }),
	}
	source := "Feature: F\n  Scenario: S\n    Given a table:\n      | a | b |\n      | 1 |   |\n"
	a := &actor{}
	out := runScenario(&Check{ID: "T-001", File: "t.feature", source: []byte(source)}, steps, a, "")
	require.Equal(t, Pass, out.status, out.reason)
	require.Equal(t, [][]string{{"a", "b"}, {"1", ""}}, a.table.Rows())
}
