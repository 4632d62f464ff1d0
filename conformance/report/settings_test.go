package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	c "github.com/destkit/destkit/conformance"
)

// TestSettingsHaveValues: a report shows no setting without a value, also of a caller that
// was only watched.
func TestSettingsHaveValues(t *testing.T) {
	for name, r := range map[string]*c.Report{
		"a destination":        {Suite: c.SuiteDestination, Profile: "full", RunID: "r"},
		"a caller, watched":    {Suite: c.SuiteService, Profile: "full", RunID: "r", Settings: c.Settings{Passive: true}},
		"a service":            {Suite: c.SuiteService, Profile: "full", RunID: "r", Settings: c.Settings{Dialect: "spec", Clock: "real", Simulators: "in this process", Source: "topic"}},
		"a part of the checks": {Suite: c.SuiteDestination, Profile: "full", RunID: "r", Settings: c.Settings{Selected: []string{"RPC-*"}}},
	} {
		for _, s := range settings(r) {
			require.NotEmpty(t, s.Value, "%s: %s", name, s.Name)
		}
	}
}
