package service_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/service"
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

// post makes something through the API, in the way of another client.
func (b *bench) post(t *testing.T, path, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.target.BaseURL+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+b.target.WorkspaceAPIKey)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Less(t, resp.StatusCode, 300)
}

// TestCleanAfterAKill: the names in its journal lead to what a killed run leaves, and nothing else
// is touched.
func TestCleanAfterAKill(t *testing.T) {
	b := serve(t)
	b.opts.Journal = filepath.Join(t.TempDir(), "run.ndjson")
	service.SuiteOf(t, b.target, b.opts) // opened and never finished: its source stays
	const other = `{"connection":{"name":"%s","type":"snowflake","credentials":{"account":"a","warehouse":"W","database":"D","user":"U","password":"p"}}}`
	b.post(t, "/sources", strings.Replace(other, "%s", "zz-conf-another-run-source-1", 1))
	b.post(t, "/sources", strings.Replace(other, "%s", "Shop", 1))

	residue, err := service.Clean(t.Context(), b.target, b.opts)
	require.NoError(t, err)
	require.Equal(t, 1, residue.Cleaned)
	require.Empty(t, residue.Refused)
	j, err := journal.Read(b.opts.Journal)
	require.NoError(t, err)
	require.Empty(t, j.Pending())

	again, err := service.Clean(t.Context(), b.target, b.opts)
	require.NoError(t, err)
	require.Zero(t, again.Cleaned, "the sources of others stay")
}

// TestPlanSendsNothing: a plan needs no service, and reports what is missing.
func TestPlanSendsNothing(t *testing.T) {
	o := service.Options{Options: conformance.Options{Seed: 1}, NewSimulator: simulator, Listen: listen}
	p, err := service.Plan(service.Target{BaseURL: "http://127.0.0.1:1/api/v1", WorkspaceAPIKey: "k"}, o)
	require.NoError(t, err)
	for _, c := range p.Checks {
		if !c.Runs {
			require.Equal(t, "--control-url", c.Decider, c.ID)
		}
	}
	require.NotEmpty(t, p.Checks)
}
