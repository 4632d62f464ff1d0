package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// foreseen holds a dry run against the run that followed it.
func (w *world) foreseen(dry, run *answer) {
	w.t.Helper()
	if dry.code != 200 { // another run was active
		return
	}
	info := fmt.Sprintf("planned %s\nrun %s", dry.text, run.text)
	switch status, code := run.at("data.status"), run.at("data.error_code"); {
	case status == api.RunCompleted:
		require.Nil(w.t, dry.at("failure"), info)
		for _, name := range []string{"source_record_count", "source_record_updates", "source_record_deletes", "source_record_invalids"} {
			require.Equal(w.t, run.id("data."+name), dry.id(name), info)
		}
		require.Equal(w.t, run.at("data.full_sync"), dry.at("full_sync"), info)
		require.Equal(w.t, dry.id("source_record_deletes"), dry.id("actions.delete"), info)
		require.Equal(w.t, dry.id("source_record_invalids"), dry.id("actions.refuse"), info)
	case code == executor.CodeEmptySource, code == executor.CodeConfiguration, code == executor.CodeSource:
		require.Equal(w.t, code, dry.at("failure.error_code"), info)
	}
}

// plan makes a dry run.
func (w *world) plan(id int64, body any) *answer {
	w.t.Helper()
	return w.control("POST", fmt.Sprintf("/syncs/%d/plan", id), body)
}

// num is a number of an answer.
func num(n int) json.Number { return json.Number(fmt.Sprint(n)) }

// look is all that a dry run must leave as it is: every row of the store and every
// entry of the books.
func (w *world) look(id int64) string {
	w.t.Helper()
	var b bytes.Buffer
	require.NoError(w.t, w.s.store.View(context.Background(), func(tx *store.Tx) error {
		runs, total, err := store.SyncRuns.List(tx, id, store.Page{Ascending: true})
		require.NoError(w.t, err)
		y := must(tx.EverySync(id-1, 1))(w.t)
		settings := must(tx.Settings(""))(w.t)
		fmt.Fprintf(&b, "%d %s\n%s\n%v\n", total, api.Raw(runs), api.Raw(y[0]), settings)
		return nil
	}))
	books := w.s.ledger.Sync(id)
	meta := must(books.Meta())(w.t)
	logged := must(books.Runs())(w.t)
	fmt.Fprintf(&b, "%+v %v\n", meta, logged)
	state := must(books.Scan())(w.t)
	defer state.Close()
	for {
		entry, err := state.Next()
		if err != nil {
			return b.String()
		}
		fmt.Fprintf(&b, "%+v\n", entry)
	}
}

// TestPlanShowsWhatARunWouldDo: counts, a sample of each action and the reasons of
// refusals; nothing is sent and nothing is stored.
func TestPlanShowsWhatARunWouldDo(t *testing.T) {
	w := newSyncWorld(t)
	w.changeSource(`INSERT INTO customers (id, email, name) VALUES (2, 'grace@example.com', 'Grace'), (3, 'alan@example.com', 'Alan')`)
	id := w.kept(map[string]any{"operation": "mirror"}).id("data.id")
	first := w.plan(id, nil).want(200)
	first.is("actions.create", 3, "sample.0.record", map[string]any{"email": "ada@example.com", "last_name": "Ada"})
	first.is("sample.0.operation", "upsert")
	w.runs(id)
	w.changeSource(`UPDATE customers SET name = 'Ada Lovelace' WHERE id = 1`)
	w.changeSource(`DELETE FROM customers WHERE id = 2`)
	w.changeSource(`INSERT INTO customers (id, email, name) VALUES (4, 'destination-token', 'Secret'), (5, 'twin@example.com', 'A'), (6, 'twin@example.com', 'B'), (7, NULL, 'C')`)
	calls := len(w.control("GET", "/journal/calls", nil).want(200).at("entries").([]any))
	before := w.look(id)
	a := w.plan(id, nil).want(200)
	require.Equal(t, before, w.look(id))
	require.Len(t, w.control("GET", "/journal/calls", nil).want(200).at("entries"), calls, "the destination was called")
	a.is("actions", map[string]any{"create": num(1), "change": num(1), "resend": num(0), "delete": num(1), "refuse": num(3), "skip": num(0), "unchanged": num(1)})
	a.is("refused.0.reason", executor.Duplicate, "refused.0.rows", 2, "failure", nil)
	require.NotContains(t, string(a.text), "destination-token", "what is secret in the journal is secret here")
	require.Contains(t, string(a.text), "[hidden]")
	a.is("sample.2.action", "delete", "sample.2.record", map[string]any{"email": "grace@example.com"})

	full := w.plan(id, `{"full":true,"limit":0}`).want(200)
	full.is("full_sync", true, "actions.resend", 1)
	require.Empty(t, full.at("sample"))
	w.runs(id)

	w.changeSource(`DELETE FROM customers`)
	require.Equal(t, "EMPTY_SOURCE", w.plan(id, nil).want(200).at("failure.error_code"))
	require.Equal(t, "EMPTY_SOURCE", w.runs(id).at("data.error_code"))
	w.changeSource(`DROP TABLE customers`)
	require.Equal(t, w.plan(id, nil).want(200).at("failure.error_code"), w.runs(id).at("data.error_code"))
}

// TestPlanRefusals: a refused plan reports why.
func TestPlanRefusals(t *testing.T) {
	w, id := newKept(t, nil)
	appending := w.spreadsheet(nil)
	appending["operation"] = "append"
	appended := w.do("POST", "/syncs", w.key, w.body(appending)).want(200).id("data.sync_id")
	require.Contains(t, w.plan(99, nil).want(404).at("message"), "there is no sync 99")
	require.Contains(t, w.plan(id, `{"limit":101}`).want(400).at("message"), "limit: must be 0 to 100")
	require.Contains(t, w.plan(id, `{"ful":true}`).want(400).at("message"), `did you mean "full"`)
	require.Contains(t, w.plan(appended, `{"full":true}`).want(400).at("message"), "no full sync")
	run, release := w.held(id)
	require.Contains(t, w.plan(id, nil).want(409).at("message"), fmt.Sprintf("run %d of sync %d is active", run, id))
	release()
	w.control("POST", "/settle", nil).want(200)
	w.plan(id, nil).want(200)
}

// TestPlanOfAnotherURL: everything would be sent again, and the answer reports why.
func TestPlanOfAnotherURL(t *testing.T) {
	w, id := newKept(t, nil)
	w.runs(id)
	moved := map[string]any{"service_connection": map[string]any{"credentials": map[string]any{"webhook_url": w.destination() + "/moved"}}}
	w.do("PATCH", fmt.Sprintf("/destinations/%d", w.dest), w.key, moved).want(200)
	a := w.plan(id, nil).want(200)
	a.is("full_sync_reason", "the URL of the destination has changed", "actions.resend", 1)
	w.runs(id)
}

// TestPlanAndARunInBetween: data read partly before a run and partly after it is no plan.
func TestPlanAndARunInBetween(t *testing.T) {
	w, id := newKept(t, nil)
	w.control("POST", "/clock", map[string]any{"advance": "1h"}).want(200) // the cached objects of the destination are old
	reached, release := w.hold()
	planned := make(chan *answer)
	go func() { planned <- w.plan(id, nil) }()
	<-reached
	run := w.trigger(id)
	release()
	// The run is seen in the store, or by its ledger, which knows no numbers of runs.
	require.Regexp(t, fmt.Sprintf("^(run %d|a run) of sync %d ", run, id), (<-planned).want(409).at("message"))
	w.control("POST", "/settle", nil).want(200)
}
