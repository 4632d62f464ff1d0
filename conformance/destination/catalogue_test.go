package destination

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/judge"
)

// TestEveryStepIsDefined: each sentence of the catalogue has exactly one meaning.
func TestEveryStepIsDefined(t *testing.T) {
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	suite := engine.Suite{Catalogue: cat, Steps: judge.Definitions()}
	require.Empty(t, suite.Undefined())
}

// TestStepsAreShared: at most one definition in five serves a single scenario,
// and none serves no one.
func TestStepsAreShared(t *testing.T) {
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	single, unused := []string{}, []string{}
	for _, text := range Steps() {
		pattern := regexp.MustCompile(text)
		users := map[string]bool{}
		for _, c := range cat.Checks {
			for _, s := range c.Steps {
				if _, said, _ := strings.Cut(s, " "); pattern.MatchString(said) {
					users[c.ID] = true
				}
			}
		}
		switch len(users) {
		case 0:
			unused = append(unused, text)
		case 1:
			single = append(single, text)
		}
	}
	require.Empty(t, unused)
	require.LessOrEqual(t, len(single)*5, len(judge.Definitions()), "%d of %d: %v", len(single), len(judge.Definitions()), single)
}
