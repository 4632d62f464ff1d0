package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	c "github.com/destkit/destkit/conformance"
)

// TestAgain: the command under a finding shows it again, also one that was waited
// for.
func TestAgain(t *testing.T) {
	found := c.CheckResult{ID: "RES-002", Findings: []c.Finding{{Exchanges: []c.Exchange{{}}}}}
	for name, tc := range map[string]struct {
		report c.Report
		check  c.CheckResult
		want   string
	}{
		"of a destination": {c.Report{}, found, "destkit replay r.json RES-002"},
		"of no exchange":   {c.Report{}, c.CheckResult{ID: "RES-002"}, ""},
		"of a service":     {c.Report{Suite: c.SuiteService, Target: "http://h/api/v1"}, found, "destkit conform service http://h/api/v1 --select RES-002"},
		"found by waiting for it": {c.Report{Suite: c.SuiteService, Target: "http://h/api/v1", Settings: c.Settings{Clock: "real"}}, found,
			"destkit conform service http://h/api/v1 --select RES-002 --patient"},
	} {
		require.Equal(t, tc.want, Options{ReportFile: "r.json"}.again(&tc.report, tc.check), name)
	}
}

// TestAgainOfAnOutage: the calls of other checks, one at a time, show again what happened during
// them; what ERR-006 has sent itself, ERR-006 alone.
func TestAgainOfAnOutage(t *testing.T) {
	outage := func(sender string) c.CheckResult {
		return c.CheckResult{ID: "ERR-006", Findings: []c.Finding{{Exchanges: []c.Exchange{{Check: sender}}}}}
	}
	for _, tc := range []struct{ rerun, sender, want string }{
		{"destkit conform http://h", "RPC-005", "destkit conform http://h --serial"},
		{"destkit conform http://h --serial", "RPC-005", "destkit conform http://h --serial"},
		{"destkit conform http://h", "ERR-006", "destkit conform http://h --select ERR-006"},
	} {
		require.Equal(t, tc.want, Options{Rerun: tc.rerun}.again(&c.Report{}, outage(tc.sender)))
	}
}

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
