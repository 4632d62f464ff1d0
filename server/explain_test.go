package server

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

// explains requests one record of the latest run of a sync.
func (w *syncWorld) explains(id int64, identifier string) *answer {
	w.t.Helper()
	return w.control("GET", fmt.Sprintf("/explain?sync_id=%d&identifier=%s", id, url.QueryEscape(identifier)), nil).want(200)
}

// TestExplainARecordsWay follows one record from its first run to its removal.
func TestExplainARecordsWay(t *testing.T) {
	w, id := newKept(t, map[string]any{"operation": "mirror"})
	first := w.runs(id).id("data.id")
	a := w.explains(id, "ada@example.com")
	require.Equal(t, first, a.id("sync_run_id"))
	a.is("identifier", "ada@example.com", "source_row.name", "Ada")
	require.EqualValues(t, 36, a.id("source_row.age"), "columns that are not mapped are shown too")
	a.is("record", map[string]any{"email": "ada@example.com", "last_name": "Ada"}, "decision", "sent")
	require.Contains(t, a.at("reason"), "new")
	require.Nil(t, a.at("fingerprints.before"))
	require.NotEmpty(t, a.at("fingerprints.after"))
	require.Equal(t, a.at("fingerprints.now"), a.at("fingerprints.after"))
	require.Len(t, a.at("attempts"), 1)
	a.is("attempts.0.operation", "upsert", "attempts.0.verdict", "succeeded", "attempts.0.record.last_name", "Ada")
	a.is("attempts.0.exchange.status", 200, "attempts.0.exchange.request.records.0.last_name", "Ada")
	a.is("attempts.0.exchange.response.record_results.0.success", true)
	listed := w.control("GET", "/journal/calls?method="+rpc.MethodSyncBatch, nil).want(200)
	listed.is("entries.0.id", a.at("attempts.0.exchange.id"), "entries.0.request_id", a.at("attempts.0.call"))
	listed.is("entries.0.request.records.0.last_name", "Ada")
	a.is("verdict", "succeeded", "next_retry.when", "none")
	lacks(t, string(a.text), "destination-token", "header-secret", "unguessable-segment")

	w.runs(id)
	a = w.explains(id, `"ada@example.com"`)
	require.Equal(t, "left", a.at("decision"))
	require.Contains(t, a.at("reason"), "unchanged")
	require.Empty(t, a.at("attempts"))
	a.is("verdict", nil, "fingerprints.after", a.at("fingerprints.before"))

	w.changeSource(`UPDATE customers SET name = 'Ada Lovelace'`)
	w.runs(id)
	a = w.explains(id, "ada@example.com")
	require.Contains(t, a.at("reason"), "changed")
	require.NotEqual(t, a.at("fingerprints.before"), a.at("fingerprints.after"))
	old := w.control("GET", fmt.Sprintf("/explain?sync_run_id=%d&identifier=ada@example.com", first), nil).want(200)
	require.Equal(t, "Ada", old.at("attempts.0.record.last_name"), "an earlier run is told as it was")
	require.Equal(t, a.at("fingerprints.before"), old.at("fingerprints.after"))

	w.changeSource(`INSERT INTO customers (id, email, name) VALUES (2, 'grace@example.com', 'Grace'), (3, 'twin@example.com', 'A'), (4, 'twin@example.com', 'B')`)
	w.changeSource(`DELETE FROM customers WHERE id = 1`)
	w.runs(id)
	a = w.explains(id, "ada@example.com")
	a.is("decision", "deleted", "source_row", nil, "fingerprints.after", nil, "attempts.0.operation", "delete")
	a = w.explains(id, "twin@example.com")
	a.is("decision", "invalid", "copies", 2, "verdict", "invalid")

	run := w.do("POST", fmt.Sprintf("/syncs/%d/trigger?force_full_sync=true", id), w.key, nil).want(200).id("data.sync_run_id")
	w.control("POST", "/settle", nil).want(200)
	a = w.control("GET", fmt.Sprintf("/explain?sync_run_id=%d&identifier=grace@example.com", run), nil).want(200)
	require.Contains(t, a.at("reason"), "full sync")
}

// TestExplainWhatFails lists every call of a refused record, and when it is sent
// again.
func TestExplainWhatFails(t *testing.T) {
	w := newSyncWorld(t)
	w.standsAt("2026-12-01T08:30:00Z") // far from the hour that the schedule waits for
	w.changeSource(threePeople)
	id := w.kept(map[string]any{"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": map[string]any{"frequency": "hourly"}}}}).id("data.id")
	_, err := w.sim.ArmFault(destsim.Fault{Kind: "rpc_error", Code: -32000, Message: "out of order", When: destsim.Trigger{Method: rpc.MethodSyncBatch, First: 1}})
	require.NoError(t, err)
	_, err = w.sim.ArmFault(destsim.Fault{Kind: "record_failure", Message: "not this one", When: destsim.Trigger{Identifier: api.Raw("grace@example.com")}})
	require.NoError(t, err)
	w.runs(id)
	a := w.explains(id, "grace@example.com")
	require.Equal(t, "this run", a.at("next_retry.when"), "the run waits for its next try")
	require.Equal(t, "in doubt", a.at("verdict"))
	w.control("POST", "/clock", map[string]any{"advance": "1m"}).want(200)
	a = w.explains(id, "grace@example.com")
	var verdicts []string
	for i := range a.at("attempts").([]any) {
		verdicts = append(verdicts, a.at(fmt.Sprintf("attempts.%d.verdict", i)).(string))
		require.NotNil(t, a.at(fmt.Sprintf("attempts.%d.exchange", i)))
	}
	require.Equal(t, []string{"failed", "rejected", "rejected", "rejected"}, verdicts)
	require.Contains(t, a.at("attempts.0.message"), "out of order")
	a.is("attempts.0.exchange.outcome", "rpc_error", "attempts.3.message", "not this one", "verdict", "rejected")
	a.is("message", "not this one", "next_retry.when", "next run")
	require.NotNil(t, a.at("next_retry.at"))
	w.control("POST", "/clock", map[string]any{"advance": "1h"}).want(200)
	require.Contains(t, w.explains(id, "grace@example.com").at("reason"), "refused it before")
	require.Equal(t, "none", w.explains(id, "alan@example.com").at("next_retry.when"))

	// The journal forgets; the ledger does not.
	w.control("DELETE", "/journal/calls", nil).want(200)
	a = w.explains(id, "grace@example.com")
	require.Nil(t, a.at("attempts.0.exchange"))
	require.NotEmpty(t, a.at("attempts.0.call"))
	// A source that cannot be read leaves out what only it knows.
	w.changeSource("DROP TABLE customers")
	a = w.explains(id, "grace@example.com")
	require.NotEmpty(t, a.at("source_error"))
	require.Equal(t, "rejected", a.at("verdict"))
}

// TestExplainSkipped: records that an append sync takes as sent.
func TestExplainSkipped(t *testing.T) {
	w := newSyncWorld(t)
	body := w.spreadsheet(map[string]any{
		"historical_sync_operation": "skip_current_records",
		"mappings":                  []any{column("name", "unique_id", true)},
	})
	id := w.do("POST", "/syncs", w.key, w.body(body)).want(200).id("data.sync_id")
	w.runs(id)
	a := w.explains(id, "Ada")
	require.Equal(t, "skipped", a.at("decision"), string(a.text))
	require.Empty(t, a.at("attempts"))
}

// TestExplainNothing: a missing thing is a clear 404, and a query with too few
// or too many parameters a 400.
func TestExplainNothing(t *testing.T) {
	w, id := newKept(t, nil)
	w.control("GET", fmt.Sprintf("/explain?sync_id=%d&identifier=x", id), nil).want(404) // never ran
	w.runs(id)
	missing := w.control("GET", fmt.Sprintf("/explain?sync_id=%d&identifier=nobody@example.com", id), nil).want(404)
	require.Contains(t, missing.at("message"), "nobody@example.com")
	w.control("GET", "/explain?sync_run_id=99&identifier=x", nil).want(404)
	w.control("GET", "/explain?sync_run_id=1&sync_id=1&identifier=x", nil).want(400)
	w.control("GET", "/explain?identifier=x", nil).want(400)
	w.control("GET", fmt.Sprintf("/explain?sync_id=%d", id), nil).want(400)
	w.control("GET", fmt.Sprintf("/explain?sync=%d&identifier=x", id), nil).want(400)
}
