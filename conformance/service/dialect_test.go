package service_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server"
)

// TestLiveDialect: each named difference is reported by its name, and none as a
// failure.
func TestLiveDialect(t *testing.T) {
	cat := catalogueOf(t, conformance.SuiteService)
	b := serving(t, server.Config{Dialect: server.DialectLive})
	b.opts.Dialect = "live"
	for _, c := range cat.Checks {
		if len(c.Differs) > 0 {
			b.opts.Select = append(b.opts.Select, c.ID)
		}
	}
	r := b.judge(t)
	require.Zero(t, r.ExitStatus, explain(r))
	require.Empty(t, tripped(r), explain(r))
	require.GreaterOrEqual(t, r.Counts[conformance.Waived], 4)
	notes := strings.Join(r.Notes, "\n")
	for _, d := range openapi.Differences() {
		require.Contains(t, notes, "known difference "+d.Name+": ")
	}
	for _, c := range r.Checks {
		require.True(t, c.Status != conformance.Waived || strings.HasPrefix(c.Reason, "known difference: "), c.ID)
	}

	// The same service judged by the specification is not conformant.
	b = serving(t, server.Config{Dialect: server.DialectLive})
	b.opts.Select = []string{"SYN-012"}
	require.Equal(t, 1, b.judge(t).ExitStatus)
}
