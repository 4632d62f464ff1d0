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
)

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
