package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/audit"
)

// TestMatrixAuditOfEachOperation: worlds without a lie are clean, whatever the
// operation makes of new, changed, removed and invalid rows.
func TestMatrixAuditOfEachOperation(t *testing.T) {
	matrixtest.Long(t)
	for name, world := range map[string]struct {
		changes map[string]any
		before  func(*syncWorld)
		want    []string // information
	}{
		"upsert": {changes: map[string]any{"operation": "upsert"}},
		"insert": {changes: map[string]any{"operation": "insert"}},
		"insert of what is there": {
			changes: map[string]any{"operation": "insert"},
			before: func(w *syncWorld) {
				w.batch("upsert", map[string]any{"email": "alan@example.com", "last_name": "Turing"})
			},
			want: []string{`refused "alan@example.com"`},
		},
		"update": {
			changes: map[string]any{"operation": "update"},
			before: func(w *syncWorld) {
				w.batch("upsert", map[string]any{"email": "ada@example.com", "last_name": "?"}, map[string]any{"email": "grace@example.com", "last_name": "?"})
			},
			want: []string{`refused "alan@example.com"`, `refused "new@example.com"`},
		},
		"mirror":          {changes: map[string]any{"operation": "mirror"}},
		"mirror of nulls": {changes: map[string]any{"operation": "mirror", "mirror_strategy": "sync_updates_and_nulls"}},
		"mirror, swapped": {changes: map[string]any{"operation": "mirror", "mirror_strategy": "upload_and_swap"}},
		"all properties": {changes: map[string]any{
			"field_behavior": "sync_all_properties", "field_normalization": "match_source_names",
		}},
		"without nulls": {changes: map[string]any{"mappings": []any{
			column("email", "email", true), column("name", "last_name", false), column("age", "age", false, map[string]any{"sync_null_values": false}),
		}}},
		"the number of the run": {changes: map[string]any{"mappings": []any{
			column("email", "email", true),
			map[string]any{"from": map[string]any{"type": "sync_metadata", "data": "sync_run_id"}, "to": "last_name"},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			briefly(t, "mirror")
			w := newSyncWorld(t)
			w.changeSource(threePeople)
			if world.before != nil {
				world.before(w)
			}
			id := w.kept(world.changes).id("data.id")
			w.runsThrough(id)
			flawless(t, w.audits(id, nil))
			w.changeSource(`UPDATE customers SET name = 'Countess', age = NULL WHERE id = 1`)
			w.changeSource(`DELETE FROM customers WHERE id = 2`)
			w.changeSource(`INSERT INTO customers (id, email, name) VALUES (5, 'new@example.com', 'New'), (6, NULL, 'Nobody'),
				(7, 'twin@example.com', 'A'), (8, 'twin@example.com', 'B')`)
			w.runsThrough(id)
			second := flawless(t, w.audits(id, nil))
			require.Equal(t, world.want, said(second))
			require.EqualValues(t, 2, second.Checked.Runs)
			require.EqualValues(t, 6, second.Checked.Source)
			w.control("POST", "/clock", map[string]any{"advance": "400h"}).want(200)
			old := w.audits(id, nil)
			require.True(t, old.Clean, "the logs are gone, the state is there: %+v", old.Findings)
			require.EqualValues(t, 0, old.Checked.Runs)
		})
	}
}

// TestMatrixAuditOfLyingDestinations: the audit finds the simulator's false
// acknowledgements; an error that it reported is no fault of the service.
func TestMatrixAuditOfLyingDestinations(t *testing.T) {
	matrixtest.Long(t)
	one := destsim.Trigger{Identifier: api.Raw("grace@example.com")}
	for name, world := range map[string]struct {
		fault   destsim.Fault
		want    []string
		repairs bool // by the next run
	}{
		"acknowledged and not stored":  {fault: destsim.Fault{Kind: "acknowledge_unstored", When: one}, want: []string{`lost "grace@example.com"`}},
		"stored and refused":           {fault: destsim.Fault{Kind: "refuse_stored", When: one}, want: []string{`unacknowledged "grace@example.com"`}, repairs: true},
		"refused":                      {fault: destsim.Fault{Kind: "record_failure", When: one}, want: []string{`refused "grace@example.com"`}, repairs: true},
		"no result":                    {fault: destsim.Fault{Kind: "missing_results", When: one}, want: []string{`unacknowledged "grace@example.com"`}, repairs: true},
		"both results":                 {fault: destsim.Fault{Kind: "contradictory_results", When: one}, want: []string{`unacknowledged "grace@example.com"`}, repairs: true},
		"reset once after the commit":  {fault: destsim.Fault{Kind: "reset", At: "after", When: destsim.Trigger{Method: rpc.MethodSyncBatch, First: 1}}},
		"reset once between":           {fault: destsim.Fault{Kind: "reset", At: "between", Records: 1, When: destsim.Trigger{Method: rpc.MethodSyncBatch, First: 1}}},
		"an error after every commit":  {fault: destsim.Fault{Kind: "rpc_error", At: "after", Code: -1, Message: "no", When: destsim.Trigger{Method: rpc.MethodSyncBatch}}, want: []string{`unacknowledged "ada@example.com"`, `unacknowledged "alan@example.com"`, `unacknowledged "grace@example.com"`}, repairs: true},
		"an error before every commit": {fault: destsim.Fault{Kind: "rpc_error", Code: -1, Message: "no", When: destsim.Trigger{Method: rpc.MethodSyncBatch}}, want: []string{`refused "ada@example.com"`, `refused "alan@example.com"`, `refused "grace@example.com"`}, repairs: true},
	} {
		t.Run(name, func(t *testing.T) {
			briefly(t, "acknowledged and not stored")
			w := newSyncWorld(t)
			w.changeSource(threePeople)
			id := w.kept(nil).id("data.id")
			fault := must(w.sim.ArmFault(world.fault))(t)
			w.runsThrough(id)
			require.NoError(t, w.sim.DisarmFault(fault))
			require.Empty(t, w.sim.UnfiredFaults())
			found := w.audits(id, nil)
			require.Equal(t, world.want, said(found), "%+v", found.Findings)
			w.runsThrough(id)
			if again := w.audits(id, nil); world.repairs || world.want == nil {
				require.True(t, again.Clean, "%+v", again.Findings)
				require.Empty(t, again.Findings)
			} else {
				require.Equal(t, world.want, said(again), "nobody can know it but the audit")
			}
		})
	}
}

// TestAuditOfEmulatedDestinations: their own store is read, and what none of
// this sync has sent is seen there.
func TestAuditOfEmulatedDestinations(t *testing.T) {
	w := newSyncWorld(t)
	w.changeSource(threePeople)
	crm := w.emulated("salesforce").id("data.id")
	sync := func(changes map[string]any) int64 {
		body := map[string]any{
			"operation":              "upsert",
			"destination_attributes": map[string]any{"connection_id": crm, "object": "Contact"},
			"mappings":               []any{column("email", "Email", true), column("name", "LastName", false)},
		}
		maps.Copy(body, changes)
		return w.do("POST", "/syncs", w.key, w.body(body)).want(200).id("data.sync_id")
	}
	first := sync(nil)
	w.runsThrough(first).ended("completed")
	clean := flawless(t, w.ownAudit(first))
	require.EqualValues(t, 3, clean.Checked.Destination)

	w.changeSource(`DELETE FROM customers WHERE id = 2`)
	other := sync(map[string]any{"operation": "mirror"})
	w.runsThrough(other)
	found := w.ownAudit(other)
	require.True(t, found.Clean)
	require.Equal(t, []string{`foreign "grace@example.com"`}, said(found), "of another sync")

	swap := sync(map[string]any{"operation": "mirror", "mirror_strategy": "upload_and_swap"})
	w.runsThrough(swap)
	found = flawless(t, w.ownAudit(swap))
	require.Empty(t, found.Findings, "everything else is gone")
	require.Contains(t, said(w.ownAudit(first)), `lost "grace@example.com"`, "for the first sync that is a loss")
	w.changeSource(`INSERT INTO customers (id, email, name) VALUES (2, 'grace@example.com', 'Grace')`)
	w.runsThrough(sync(nil))
	found = w.ownAudit(swap)
	require.False(t, found.Clean, "a swap leaves nothing foreign")
	require.Contains(t, said(found), `foreign "grace@example.com"`)
}

// TestAuditOfAppends: rows that were taken as sent are nothing that was claimed,
// and rows at the high-water mark wait.
func TestAuditOfAppends(t *testing.T) {
	w := newSyncWorld(t)
	w.changeSource(threePeople)
	id := w.do("POST", "/syncs", w.key, w.body(w.spreadsheet(nil))).want(200).id("data.sync_id")
	w.runsThrough(id)
	clean := flawless(t, w.ownAudit(id))
	require.EqualValues(t, 3, clean.Checked.Ledger)
	w.changeSource(`INSERT INTO customers (id, name) VALUES (9, 'Late')`)
	require.Contains(t, fmt.Sprint(said(w.ownAudit(id))), "missing")
	w.runsThrough(id)
	flawless(t, w.ownAudit(id))

	skipping := w.do("POST", "/syncs", w.key, w.body(w.spreadsheet(map[string]any{
		"historical_sync_operation": "skip_current_records",
		"mappings":                  []any{column("name", "unique_id", true)},
	}))).want(200).id("data.sync_id")
	w.runsThrough(skipping)
	w.changeSource(`INSERT INTO customers (id, name) VALUES (10, 'Later')`)
	w.runsThrough(skipping)
	found := flawless(t, w.ownAudit(skipping))
	require.Empty(t, found.Findings)
	require.EqualValues(t, 1, found.Checked.Destination)
	w.control("POST", "/clock", map[string]any{"advance": "400h"}).want(200)
	flawless(t, w.ownAudit(skipping))
}

// TestAuditBehindTheMark: rows at the high-water mark wait for the next run, and
// rows behind it that were not sent are missing (spec 2.6).
func TestAuditBehindTheMark(t *testing.T) {
	w := newSyncWorld(t)
	w.changeSource(`UPDATE customers SET signed_up = '2026-01-01T00:00:00Z'`)
	w.changeSource(`INSERT INTO customers (id, name, signed_up) VALUES (2, 'Grace', '2026-01-02T00:00:00Z'), (3, 'Alan', '2026-01-03T00:00:00Z')`)
	id := w.do("POST", "/syncs", w.key, w.body(w.spreadsheet(map[string]any{"high_water_mark_attribute": "signed_up"}))).want(200).id("data.sync_id")
	run := w.runsThrough(id)
	require.EqualValues(t, 2, run.id("data.records_updated"), "the last moment waits")
	clean := flawless(t, w.ownAudit(id))
	require.Equal(t, audit.Checked{Source: 3, Ledger: 2, Destination: 2, Runs: 1}, clean.Checked)
	w.changeSource(`INSERT INTO customers (id, name, signed_up) VALUES (4, 'Behind', '2026-01-01T12:00:00Z')`)
	missing := w.ownAudit(id)
	require.EqualValues(t, 1, missing.Totals[audit.Missing])
	require.Contains(t, string(missing.Findings[0].Expected), "Behind")
}

// TestAuditOfHandledValues: an emulated application keeps existing values, and stores the id of
// the record that a value refers to: that is no difference.
func TestAuditOfHandledValues(t *testing.T) {
	w := newSyncWorld(t)
	crm := w.emulated("salesforce").id("data.id")
	sync := func(preserve bool) int64 {
		return w.do("POST", "/syncs", w.key, w.body(map[string]any{
			"operation":              "upsert",
			"destination_attributes": map[string]any{"connection_id": crm, "object": "Contact"},
			"mappings":               []any{column("email", "Email", true), column("name", "LastName", false, map[string]any{"preserve_values": preserve})},
		})).want(200).id("data.sync_id")
	}
	first, second := sync(false), sync(true)
	w.runsThrough(first)
	w.changeSource(`UPDATE customers SET name = 'Another'`)
	require.EqualValues(t, 1, w.runsThrough(second).id("data.records_updated"))
	flawless(t, w.ownAudit(second))
	require.Equal(t, []string{`changed "ada@example.com" LastName`}, said(w.ownAudit(first)), "a run would change it")
}

// TestAuditOfTopics: the latest message of an identifier counts, or each message,
// depending on the family of the sync.
func TestAuditOfTopics(t *testing.T) {
	for _, family := range []string{"mapRecords", "activateEvents"} {
		t.Run(family, func(t *testing.T) {
			w := newLiveWorld(t, map[string]any{"sync_behavior_family": family})
			w.post("ada@x.io Ada")
			w.post("bob@x.io Bob", "ada@x.io A.", "ada@x.io Countess")
			clean := flawless(t, w.audits(w.sync, nil))
			require.EqualValues(t, 4, clean.Checked.Source)
			require.EqualValues(t, 2, clean.Checked.Destination)
			w.batch("delete", map[string]any{"email": "bob@x.io"})
			require.Equal(t, []string{`lost "bob@x.io"`}, said(w.audits(w.sync, nil)))
			a := w.explains(w.sync, "ada@x.io")
			require.Equal(t, "sent", a.at("decision"), string(a.text))
			records := w.do("GET", fmt.Sprintf("/sync_runs/%d/records?primary_identifier=bob@x.io", a.id("sync_run_id")), w.key, nil).want(200)
			require.Equal(t, "bob@x.io", records.at("data.0.identifier"))
		})
	}
}

// TestAuditOfHooks: a hook that could hide a record is no proof, and no error
// contains its address or headers.
func TestAuditOfHooks(t *testing.T) {
	w := newSyncWorld(t)
	w.changeSource(threePeople)
	id := w.kept(nil).id("data.id")
	w.runs(id)
	var answer string
	status := http.StatusOK
	hook := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		require.Equal(t, "Bearer secret-of-the-hook", r.Header.Get("Authorization"))
		rw.WriteHeader(status)
		fmt.Fprint(rw, answer)
	}))
	t.Cleanup(hook.Close)
	ask := map[string]any{"sync_id": id, "readback": map[string]any{
		"url": hook.URL + "/secret-path", "headers": map[string]string{"authorization": "Bearer secret-of-the-hook"},
	}}
	for name, one := range map[string]struct {
		code         int
		answer, want string
	}{
		"no JSON":       {200, `<html>`, "shape"},
		"incomplete":    {200, `{"records":[]}`, "complete"},
		"not complete":  {200, `{"records":[],"complete":false}`, "complete"},
		"not asked for": {200, `{"records":[{"identifier":"x","count":1,"fields":{}}],"complete":true}`, "not asked for"},
		"twice":         {200, `{"records":[{"identifier":"ada@example.com","count":1,"fields":{}},{"identifier":"ada@example.com","count":1,"fields":{}}],"complete":true}`, "twice"},
		"no count":      {200, `{"records":[{"identifier":"ada@example.com","fields":{}}],"complete":true}`, "count"},
		"a status":      {500, ``, "HTTP status 500"},
	} {
		answer, status = one.answer, one.code
		a := w.control("POST", "/audit", ask).want(http.StatusBadRequest)
		require.Contains(t, a.at("message"), one.want, name)
		require.NotContains(t, string(a.text), "secret")
	}
	answer, status = `{"records":[{"identifier":"ada@example.com","count":2,"fields":{"email":"ada@example.com","last_name":"Ada"}}],"complete":true}`, http.StatusOK
	a := w.control("POST", "/audit", ask).want(http.StatusOK)
	a.is("findings.0.kind", "duplicate", "totals.lost", 2)
	ask["limit"] = 1
	a = w.control("POST", "/audit", ask).want(http.StatusOK)
	require.Len(t, a.at("findings"), 1)
	require.Equal(t, true, a.at("truncated"))
	hook.Close()
	a = w.control("POST", "/audit", ask).want(http.StatusBadRequest)
	require.NotContains(t, string(a.text), "secret")

	for body, want := range map[string]string{
		`{}`:             "sync_id",
		`{"sync_id":1}`:  "readback",
		`{"sync_id":99}`: "no sync 99",
		`{"sync_id":1,"readback":{"url":"http://example.com/x"}}`: "readback.url",
		`{"sync_id":1,"limit":100000}`:                            "limit",
		`{"sync_id":1,"readbak":{}}`:                              "readback",
	} {
		a := w.control("POST", "/audit", body)
		require.GreaterOrEqual(t, a.code, 400, body)
		require.Less(t, a.code, 500, body)
		require.True(t, strings.Contains(string(a.text), want), "%s: %s", body, a.text)
	}
}
