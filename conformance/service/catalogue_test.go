package service_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service"
	"github.com/destkit/destkit/internal/matrixtest"
)

// TestStepsAreKnown: each step of the catalogue has one meaning.
func TestStepsAreKnown(t *testing.T) {
	b := serve(t)
	require.Empty(t, service.SuiteOf(t, b.target, b.opts).Undefined())
}

// TestMatrixNegatedClaimsFail: on the clean service the opposite of each claim is
// false, so that no claim is empty words.
func TestMatrixNegatedClaimsFail(t *testing.T) {
	cat, err := conformance.LoadCatalogue(conformance.SuiteService)
	require.NoError(t, err)
	b, short := serve(t), serveImpatient(t)
	suites := map[bool]*engine.Suite{false: service.SuiteOf(t, b.target, b.opts), true: service.SuiteOf(t, short.target, short.opts)}
	same := func(source string) string { return source }
	runs := matrixtest.Sample(t, sharedCode, checkCells(t, cat.Checks))
	for i, c := range cat.Checks {
		if c.Level == conformance.Info || !runs[i] {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			for _, claim := range c.Claims() {
				r := suites[strings.HasPrefix(c.ID, "TOUT-")].Try(t.Context(), c.ID, same, claim)
				require.Equal(t, conformance.Fail, r.Status, "%s: %s", claim, r.Reason)
			}
		})
	}
}

// TestAreas: the ids of a feature share their prefix, and no other feature has it:
// a violation is judged with the checks of its area.
func TestAreas(t *testing.T) {
	cat, err := conformance.LoadCatalogue(conformance.SuiteService)
	require.NoError(t, err)
	other, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	areas := map[string]string{}
	for _, c := range other.Checks {
		prefix, _, _ := strings.Cut(c.ID, "-")
		areas[prefix] = c.Area
	}
	for _, c := range cat.Checks {
		prefix, _, _ := strings.Cut(c.ID, "-")
		if areas[prefix] == "" {
			areas[prefix] = c.Area
		}
		require.Equal(t, areas[prefix], c.Area, "%s shares its prefix with another feature", c.ID)
	}
}
