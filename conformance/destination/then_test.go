package destination_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
)

func same(source string) string { return source }

// TestMatrixNegatedThenFails: on the clean destination the opposite of each claim is
// false, so that no claim is empty words.
func TestMatrixNegatedThenFails(t *testing.T) {
	t.Parallel()
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	runs := matrixtest.Sample(t, sharedCode, checkCells(t, cat.Checks))
	for i, c := range cat.Checks {
		if c.Level == conformance.Info || strings.HasPrefix(c.ID, "TLS-") || !runs[i] {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			plain := conformance.Pass
			synctest.Test(t, func(t *testing.T) {
				for _, claim := range c.Claims() {
					b := inMemory(t, simConfig())
					if plain = judgeAltered(t, b, c.ID, same, ""); plain != conformance.Pass {
						return
					}
					require.Equal(t, conformance.Fail, judgeAltered(t, b, c.ID, same, claim), claim)
				}
			})
			if plain != conformance.Pass {
				t.Skipf("%s on the clean destination", plain)
			}
		})
	}
}

// judgeAltered judges one check with an altered scenario.
func judgeAltered(t *testing.T, b *bench, id string, alter func(source string) string, negated string) conformance.Status {
	t.Helper()
	status, err := destination.JudgeAltered(context.Background(), b.target, b.opts, id, alter, negated)
	require.NoError(t, err)
	return status
}

// TestMatrixDroppedThen: each claim is needed; without it some
// violation of the check goes unseen.
func TestMatrixDroppedThen(t *testing.T) {
	t.Parallel()
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	n, runs := 0, matrixtest.Sample(t, sharedCode, checkCells(t, cat.Checks))
	for i, c := range cat.Checks {
		claims := c.Claims()
		if len(claims) < 2 || c.Level == conformance.Info {
			continue // without its only claim a scenario cannot fail
		}
		n++
		if !runs[i] {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			if testing.Short() {
				t.Skip("runs without -short")
			}
			t.Parallel()
			for _, claim := range claims {
				require.True(t, someSurvives(t, c, claim), "no violation needs %q", claim)
			}
		})
	}
	require.NotZero(t, n)
}

// someSurvives drops a claim and shows the check its violations.
func someSurvives(t *testing.T, c *conformance.Check, claim string) bool {
	drop := func(source string) string {
		lines := strings.Split(source, "\n")
		for i, line := range lines {
			for _, keyword := range []string{"Then ", "And "} {
				if strings.TrimSpace(line) == keyword+claim {
					lines[i] = ""
					if keyword == "Then " && i+1 < len(lines) {
						lines[i+1] = strings.Replace(lines[i+1], "And ", "Then ", 1)
					}
				}
			}
		}
		return strings.Join(lines, "\n")
	}
	for _, v := range destsim.Violations() {
		if matrixtest.CheckOf(v.ID) != c.ID {
			continue
		}
		on := stageFor(v.ID)
		require.Equal(t, conformance.Fail, alteredOn(t, on, c.ID, same), v.ID)
		if alteredOn(t, on, c.ID, drop) != conformance.Fail {
			return true
		}
	}
	return false
}

func alteredOn(t *testing.T, on stage, id string, alter func(source string) string) (status conformance.Status) {
	t.Helper()
	on.run(t, func(t *testing.T) { status = judgeAltered(t, on.build(t), id, alter, "") })
	return status
}
