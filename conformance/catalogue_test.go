package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryStepIsDefined: each sentence of the catalogue has exactly one meaning.
func TestEveryStepIsDefined(t *testing.T) {
	cat, err := LoadCatalogue(SuiteDestination)
	require.NoError(t, err)
	for _, c := range cat.Checks {
		require.Empty(t, undefinedSteps(c, definitions()), "%s:%d", c.File, c.Line)
	}
}

// TestStepsAreShared: at most one definition in five serves a single scenario,
// and none serves no one.
func TestStepsAreShared(t *testing.T) {
	cat, err := LoadCatalogue(SuiteDestination)
	require.NoError(t, err)
	single, unused := []string{}, []string{}
	for _, d := range definitions() {
		users := map[string]bool{}
		for _, c := range cat.Checks {
			for _, s := range c.Steps {
				if d.pattern.MatchString(sentence(s)) {
					users[c.ID] = true
				}
			}
		}
		switch len(users) {
		case 0:
			unused = append(unused, d.pattern.String())
		case 1:
			single = append(single, d.pattern.String())
		}
	}
	require.Empty(t, unused)
	require.LessOrEqual(t, len(single)*5, len(definitions()), "%d of %d: %v", len(single), len(definitions()), single)
}
