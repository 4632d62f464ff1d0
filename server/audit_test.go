package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/audit"
)

// batch writes to the simulator behind the service's back.
func (w *syncWorld) batch(operation string, records ...map[string]any) {
	w.t.Helper()
	client := rpc.Client{URL: w.destination(), Token: "destination-token"}
	object := rpc.ObjectRef{APIName: "person", Label: "Person"}
	fields := must(client.ListFields(w.t.Context(), object))(w.t)
	schema := map[string]rpc.SchemaField{}
	for _, f := range fields {
		if _, sent := records[0][f.APIName]; sent {
			schema[f.APIName] = rpc.SchemaField{ActiveIdentifier: f.APIName == "email", Field: f}
		}
	}
	plan := rpc.SyncPlan{Object: object, Operation: operation, SyncRunID: 1, SyncID: 1, Schema: schema}
	var result rpc.BatchResult
	require.NoError(w.t, client.Call(w.t.Context(), rpc.MethodSyncBatch, map[string]any{"sync_plan": plan, "records": records}, &result))
	for _, r := range result.RecordResults {
		require.True(w.t, r.Success, r.ErrorMessage)
	}
}

// audits requests an audit through the simulator's hook.
func (w *syncWorld) audits(id int64, changes map[string]any) *audit.Report {
	w.t.Helper()
	body := map[string]any{"sync_id": id, "readback": map[string]any{"url": w.dest0() + "/_control/readback"}}
	maps.Copy(body, changes)
	a := w.control("POST", "/audit", body).want(http.StatusOK)
	var report audit.Report
	require.NoError(w.t, json.Unmarshal(a.text, &report))
	return &report
}

// dest0 is the address of the simulator.
func (w *syncWorld) dest0() string { w.destination(); return w.world.dest.URL }

// flawless demands that an audit found nothing amiss.
func flawless(t testing.TB, r *audit.Report) *audit.Report {
	t.Helper()
	require.True(t, r.Clean, "%+v", r.Findings)
	return r
}

// ownAudit is an audit of a destination whose records the service keeps.
func (w *syncWorld) ownAudit(id int64) *audit.Report {
	w.t.Helper()
	return w.audits(id, map[string]any{"readback": nil})
}

// said are the findings of a report as kind, identifier and field.
func said(r *audit.Report) (list []string) {
	for _, f := range r.Findings {
		line := f.Kind + " " + string(f.Identifier)
		if f.Field != nil {
			line += " " + *f.Field
		}
		list = append(list, line)
	}
	slices.Sort(list)
	return list
}

const threePeople = `INSERT INTO customers (id, email, name) VALUES (2, 'grace@example.com', 'Grace'), (3, 'alan@example.com', 'Alan')`

// TestMatrixAuditNamesEachLie plants one false claim at a time, each in a separate
// world, and the audit names the record and the kind.
func TestMatrixAuditNamesEachLie(t *testing.T) {
	matrixtest.Long(t)
	const (
		adds    = `INSERT INTO customers (id, email, name) VALUES (9, 'new@example.com', 'New')`
		changes = `UPDATE customers SET name = 'Amazing' WHERE id = 2`
		deletes = `DELETE FROM customers WHERE id = 2`
	)
	grace := map[string]any{"email": "grace@example.com"}
	named := func(email, name string) map[string]any { return map[string]any{"email": email, "last_name": name} }
	ledgerOnly := map[string]any{"ledger_only": true}
	for name, lie := range map[string]struct {
		operation string
		sql       string         // of the source, before
		runs      bool           // the sync sends it
		refuses   string         // the sync runs, and the destination refuses this record
		deletes   bool           // … which was to be deleted
		batch     string         // an operation behind the service's back
		record    map[string]any // … of this record
		tamper    func(run *store.SyncRun)
		audits    map[string]any
		want      []string
	}{
		"lost": {batch: "delete", record: grace, want: []string{`lost "grace@example.com"`}},
		"changed": {
			batch: "upsert", record: named("grace@example.com", "Other"), want: []string{`changed "grace@example.com" last_name`},
		},
		"changed in the source":                {sql: changes, want: []string{`changed "grace@example.com" last_name`}},
		"changed in the source, not looked at": {sql: changes, audits: ledgerOnly},
		"never sent":                           {sql: adds, want: []string{`counter null source_record_count`, `missing "new@example.com"`}},
		"stored and not acknowledged": {
			sql: adds, refuses: "new@example.com", batch: "upsert", record: named("new@example.com", "New"),
			want: []string{`unacknowledged "new@example.com"`},
		},
		"a value that was not acknowledged": {
			sql: changes, refuses: "grace@example.com", batch: "upsert", record: named("grace@example.com", "Amazing"),
			want: []string{`unacknowledged "grace@example.com" last_name`},
		},
		"refused and said so": {sql: changes, refuses: "grace@example.com", want: []string{`refused "grace@example.com"`}},
		"removed and there again": {
			operation: "mirror", sql: deletes, runs: true, batch: "upsert", record: named("grace@example.com", "Grace"),
			want: []string{`leftover "grace@example.com"`},
		},
		"gone from the source of a mirror": {
			operation: "mirror", sql: deletes, want: []string{`counter null source_record_count`, `leftover "grace@example.com"`},
		},
		"a removal that was not acknowledged": {
			operation: "mirror", sql: deletes, refuses: "grace@example.com", deletes: true, batch: "delete", record: grace,
			want: []string{`unacknowledged "grace@example.com"`},
		},
		"a refused removal that was said": {
			operation: "mirror", sql: deletes, refuses: "grace@example.com", deletes: true, want: []string{`refused "grace@example.com"`},
		},
		"a counter off by one": {
			tamper: func(run *store.SyncRun) { *run.Run.RecordsUpdated-- }, want: []string{"counter null records_updated"},
		},
		"every counter": {
			tamper: func(run *store.SyncRun) {
				for _, c := range []**int64{
					&run.Run.RecordsFailed, &run.Run.RecordsProcessed, &run.Run.RecordsInvalid, &run.Run.SourceRecordUpdates, &run.Run.SourceRecordDeletes,
				} {
					**c += 2
				}
				run.Run.SourceRecordCount = nil
			},
			want: []string{
				"counter null records_failed", "counter null records_invalid", "counter null records_processed",
				"counter null source_record_count", "counter null source_record_deletes", "counter null source_record_updates",
			},
		},
		"a foreign record": {sql: adds, batch: "upsert", record: named("new@example.com", "Foreign"), audits: ledgerOnly},
	} {
		t.Run(name, func(t *testing.T) {
			briefly(t, "lost", "removed and there again")
			w := newSyncWorld(t)
			w.changeSource(threePeople)
			id := w.kept(map[string]any{"operation": cmp.Or(lie.operation, "upsert")}).id("data.id")
			w.runs(id)
			clean := flawless(t, w.audits(id, nil))
			require.Equal(t, audit.Checked{Source: 3, Ledger: 3, Destination: 3, Runs: 1}, clean.Checked)
			w.changeSource(lie.sql)
			if lie.runs {
				w.runs(id)
			}
			if lie.refuses != "" {
				w.failing(id, lie.refuses, lie.deletes)
			}
			if lie.batch != "" {
				w.batch(lie.batch, lie.record)
			}
			if lie.tamper != nil {
				w.tamper(id, lie.tamper)
			}
			found := w.audits(id, lie.audits)
			require.Equal(t, lie.want, said(found), "%+v", found.Findings)
			harmless := len(lie.want) == 0 || strings.HasPrefix(lie.want[0], audit.Refused)
			require.Equal(t, harmless, found.Clean)
		})
	}
}

// failing runs the sync while the destination refuses one record, and stores
// nothing of it.
func (w *syncWorld) failing(id int64, email string, deleted bool) {
	w.t.Helper()
	fault := must(w.sim.ArmFault(destsim.Fault{Kind: "record_failure", Message: "not now", When: destsim.Trigger{Identifier: api.Raw(email)}}))(w.t)
	run := w.runsThrough(id)
	require.NoError(w.t, w.sim.DisarmFault(fault))
	require.EqualValues(w.t, 1, run.id("data.records_failed"), string(run.text))
	if deleted {
		require.EqualValues(w.t, 1, run.id("data.source_record_deletes"))
	}
}

// runsThrough is runs for a destination that needs a second call: it waits on the
// simulated clock instead of real time.
func (w *syncWorld) runsThrough(id int64) *answer {
	w.t.Helper()
	w.s.clock.Freeze(true)
	defer w.s.clock.Freeze(false)
	run := w.runs(id).id("data.id")
	w.control("POST", "/clock", map[string]any{"advance": "10m"}).want(http.StatusOK)
	ended := w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(http.StatusOK)
	require.NotNil(w.t, ended.at("data.completed_at"), string(ended.text))
	return ended
}

// briefly leaves out all cases but some where time is short (-race): the
// concurrency is the same in each.
func briefly(t *testing.T, some ...string) {
	t.Helper()
	_, name, _ := strings.Cut(t.Name(), "/")
	if testing.Short() && !slices.Contains(some, strings.ReplaceAll(name, "_", " ")) {
		t.Skip("left out with -short")
	}
}

// tamper changes the newest run behind the engine's back.
func (w *syncWorld) tamper(id int64, change func(*store.SyncRun)) {
	w.t.Helper()
	require.NoError(w.t, w.s.store.Update(w.t.Context(), func(tx *store.Tx) error {
		run, err := tx.LastRun(id)
		if err != nil {
			return err
		}
		change(run)
		return store.SyncRuns.Save(tx, run)
	}))
}

// TestAuditOfFiles: rows of a file are identified by their content and
// counted, when they are appended and when the file is replaced.
func TestAuditOfFiles(t *testing.T) {
	for _, format := range []string{"csv", "jsonl"} {
		for operation, strategy := range map[string]any{"append": nil, "mirror": "upload_and_swap"} {
			t.Run(format+" "+operation, func(t *testing.T) {
				briefly(t, "csv append")
				w := newSyncWorld(t)
				dir := t.TempDir()
				file := filepath.Join(dir, "records."+format)
				made := w.do("POST", "/destinations", w.key, map[string]any{"service_connection": map[string]any{
					"name": "Files", "type": "local_files", "credentials": map[string]any{"path": dir, "format": format},
				}}).want(201)
				body := map[string]any{
					"destination_attributes": map[string]any{"connection_id": made.id("data.id"), "object": "records"},
					"operation":              operation, "mappings": []any{column("name", "name", false), column("age", "age", false), column("email", "email", false)},
				}
				if strategy != nil {
					body["mirror_strategy"] = strategy
				}
				w.changeSource(`INSERT INTO customers (id, name, age) VALUES (2, 'Ada', 36), (3, 'Twin', 7), (4, 'Twin', 7), (5, 'A, "quoted" one', NULL)`)
				id := w.kept(body).id("data.id")
				w.runsThrough(id).ended("completed")
				clean := flawless(t, w.ownAudit(id))
				require.Equal(t, audit.Checked{Source: 5, Ledger: 5, Destination: 5, Runs: 1}, clean.Checked)
				w.changeSource(`INSERT INTO customers (id, name) VALUES (9, 'New')`)
				w.changeSource(`DELETE FROM customers WHERE id = 3`)
				w.runsThrough(id)
				flawless(t, w.ownAudit(id))

				text := contentOf(t, file)
				if format == "csv" {
					require.NoError(t, os.WriteFile(file, append(bytes.Clone(text), "\"torn"...), 0o600))
				} else {
					require.NoError(t, os.WriteFile(file, append([]byte("no JSON\n"), text...), 0o600))
				}
				broken := w.control("POST", "/audit", map[string]any{"sync_id": id}).want(409)
				require.Contains(t, broken.at("message"), "records."+format)
				for kind, edit := range map[string]func([]byte) []byte{
					audit.Lost:    func(text []byte) []byte { return text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1] },
					audit.Foreign: func(text []byte) []byte { return append(bytes.Clone(text), foreignLine[format]...) },
					audit.Duplicate: func(text []byte) []byte {
						return append(bytes.Clone(text), text[bytes.LastIndexByte(text[:len(text)-1], '\n')+1:]...)
					},
				} {
					require.NoError(t, os.WriteFile(file, edit(text), 0o600))
					found := w.ownAudit(id)
					require.Equal(t, map[string]int64{kind: 1}, found.Totals, "%+v", found.Findings)
					require.Equal(t, kind == audit.Foreign && strategy == nil, found.Clean, kind)
				}
			})
		}
	}
}

var foreignLine = map[string]string{"csv": "Stranger,1,\n", "jsonl": "{\"name\":\"Stranger\",\"age\":1}\n"}
