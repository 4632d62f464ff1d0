package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUnsetRetention: a client that decodes a plain integer fails on a null.
func TestUnsetRetention(t *testing.T) {
	inBothDialects(t, func(t *testing.T, live bool, change func(*Config)) {
		w := newWorld(t, change)
		const key = "warehouse_writeback_retention_in_days"
		created := w.do("POST", "/sources", w.key, connection(map[string]any{"name": "P", "type": "postgres", "sync_engine": "advanced", "credentials": map[string]any{
			"host": "127.0.0.1", "port": 1, "database": "d", "username": "u", "password": "p", "sslmode": "disable",
		}})).want(201)
		path := fmt.Sprintf("/sources/%d", created.id("data.id"))
		unset := func(a *answer, at string) {
			t.Helper()
			require.Equal(t, !live, a.has(at+"."+key))
			if !live {
				require.Nil(t, a.at(at+"."+key))
			}
		}
		unset(created, "data")
		unset(w.do("GET", path, w.key, nil).want(200), "data")
		unset(w.do("GET", "/sources", w.key, nil).want(200), "data.0")
		require.EqualValues(t, 14, w.do("PATCH", path, w.key, connection(map[string]any{key: 14})).want(200).id("data."+key))
		require.EqualValues(t, 14, w.do("GET", path, w.key, nil).want(200).id("data."+key))
		unset(w.do("PATCH", path, w.key, connection(map[string]any{key: nil})).want(200), "data")
	})
}

// TestSchedulePlaceholders: parts of a schedule that are not set are null, and
// not absent, in every reply with a sync.
func TestSchedulePlaceholders(t *testing.T) {
	parts := []string{"schedule_day", "schedule_hour", "schedule_minute", "cron_expression"}
	inBothDialects(t, func(t *testing.T, live bool, change func(*Config)) {
		w, id := newKept(t, nil, change)
		path := fmt.Sprintf("/syncs/%d", id)
		check := func(a *answer, at string, set map[string]string) {
			t.Helper()
			require.Equal(t, live, a.has(at+".resource_identifier"))
			for _, part := range parts {
				want, isSet := set[part]
				require.Equal(t, live || isSet, a.has(at+"."+part), part)
				switch {
				case isSet:
					require.Equal(t, want, fmt.Sprint(a.at(at+"."+part)))
				case live:
					require.Nil(t, a.at(at+"."+part), part)
				}
			}
			require.True(t, a.has(at+".schedule_frequency"))
		}
		check(w.do("GET", path, w.key, nil).want(200), "data", nil)
		check(w.do("GET", "/syncs", w.key, nil).want(200), "data.0", nil)
		check(w.do("POST", "/syncs", w.key, w.body(map[string]any{"validate_only": true})).want(200), "data", nil)
		weekly := map[string]any{"schedule_frequency": "weekly", "schedule_day": "Monday", "schedule_hour": 6}
		want := map[string]string{"schedule_day": "Monday", "schedule_hour": "6", "schedule_minute": "0"}
		updated := w.do("PATCH", path, w.key, w.body(weekly)).want(200)
		check(updated, "data", want)
		check(w.do("GET", path, w.key, nil).want(200), "data", want)
		// A client can send back a reply without changing anything.
		echoed := w.do("PATCH", path, w.key, updated.at("data")).want(200)
		check(echoed, "data", want)
		require.Empty(t, echoed.header.Get("Warning"))
	})
}

// TestObjectsOfADestinationThatIsDown: that is not the caller's fault, and the
// cached objects are shown.
func TestObjectsOfADestinationThatIsDown(t *testing.T) {
	inBothDialects(t, func(t *testing.T, _ bool, change func(*Config)) {
		w := newWorld(t, change)
		known := w.newDestination()
		w.dest.Close()
		a := w.do("POST", "/destinations", w.key, customDestination(w.dest.URL+"/hook/unguessable-segment")).want(201)
		require.Equal(t, false, a.at("data.last_test_succeeded"))
		for _, path := range []string{"/objects", "/objects/person"} {
			down := w.do("GET", fmt.Sprintf("/destinations/%d%s", a.id("data.id"), path), w.key, nil).want(502)
			require.Equal(t, "error", down.at("status"))
			require.Contains(t, down.at("message"), "refuses the connection")
			require.NotContains(t, string(down.text), "unguessable-segment")
			w.do("GET", fmt.Sprintf("/destinations/%d%s", known, path), w.key, nil).want(200)
		}
		w.do("GET", fmt.Sprintf("/destinations/%d", a.id("data.id")), w.key, nil).want(200)
		// A sync needs the objects: which field is in the way is said there.
		w.control("POST", "/clock", map[string]any{"advance": "1h"}).want(200)
		body := syncBody(w.newSource(), a.id("data.id"))
		require.Contains(t, w.do("POST", "/syncs", w.key, body).want(400).at("message"), "destination_attributes.connection_id")
	})
}

// TestMessagesNameAllProblems: a reply without the list of problems has them in
// its message.
func TestMessagesNameAllProblems(t *testing.T) {
	inBothDialects(t, func(t *testing.T, live bool, change func(*Config)) {
		w := newSyncWorld(t, change)
		for _, body := range []map[string]any{
			w.body(map[string]any{"operation": "replace", "paused": "yes", "mappings": []any{map[string]any{"to": 7}}}),                             // of the document
			w.body(map[string]any{"operation": "append", "field_order": "mapping_order", "mirror_strategy": "upload_and_swap", "label": "a\u0000"}), // of the service
		} {
			a := w.do("POST", "/syncs", w.key, body).want(400)
			message := a.at("message").(string)
			require.Equal(t, !live, a.has("errors"))
			fields := []string{"operation ", "paused ", "mappings[0].to ", "mappings[0].from "}
			if body["operation"] == "append" {
				fields = []string{"operation: ", "field_order: ", "mirror_strategy: ", "label: "}
			}
			if !live {
				require.Contains(t, message, "more)")
				require.Len(t, a.at("errors"), len(fields))
				continue
			}
			require.Len(t, strings.Split(message, "; "), len(fields), message)
			for _, field := range fields {
				require.Contains(t, message, strings.TrimRight(field, ": "))
			}
		}
		require.NotContains(t, w.do("POST", "/syncs", w.key, w.body(map[string]any{"label": 7})).want(400).at("message"), ";")
	})
}

// TestUpdateNeedsIdentifierOnly: an updated record has its fields since its
// creation.
func TestUpdateNeedsIdentifierOnly(t *testing.T) {
	inBothDialects(t, func(t *testing.T, live bool, change func(*Config)) {
		w := newSyncWorld(t, change)
		identifier := column("email", "email", true)
		body := w.body(map[string]any{"operation": "update", "mappings": []any{identifier}})
		for _, operation := range []string{"upsert", "insert", "mirror"} {
			body["operation"] = operation
			require.Contains(t, w.do("POST", "/syncs", w.key, body).want(400).at("message"), "last_name", operation)
		}
		body["operation"] = "update"
		a := w.do("POST", "/syncs", w.key, body).accepted(live, 200, "mappings")
		if !live {
			return
		}
		require.Equal(t, "completed", w.runs(w.kept(nil).id("data.id")).at("data.status"), "the record is there")
		run := w.runs(a.id("data.sync_id")).ended("completed")
		require.Equal(t, [7]int64{1, 1, 0, 0, 1, 1, 0}, run.counts())
		body["mappings"] = []any{column("name", "last_name", false)}
		require.Contains(t, w.do("POST", "/syncs", w.key, body).want(400).at("message"), "is_primary_identifier")
	})
}

// runNumbers are the counters of a run.
var runNumbers = []string{
	"source_record_count", "source_record_updates", "source_record_deletes", "source_record_invalids",
	"records_processed", "records_updated", "records_failed", "records_invalid",
}

// TestRunsOfBothDialects: the replies for a failed and a triggered run.
func TestRunsOfBothDialects(t *testing.T) {
	inBothDialects(t, func(t *testing.T, live bool, change func(*Config)) {
		w := newSyncWorld(t, change)
		id := w.kept(map[string]any{"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": map[string]any{"frequency": "hourly"}}}}).id("data.id")
		check := func(a *answer, at string, nulls bool) {
			t.Helper()
			for _, key := range append([]string{"completed_at"}, runNumbers...) {
				require.Equal(t, nulls, a.at(at+key) == nil, "%s in %s", key, a.text)
			}
		}
		good := w.runs(id).ended("completed")
		check(good, "data.", false)
		require.Equal(t, live, good.at("data.scheduled_execution_time") == nil)

		w.control("POST", "/clock", map[string]any{"advance": "1h"}).want(200)
		scheduled := w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", id), w.key, nil).want(200)
		require.Equal(t, "Scheduled", scheduled.at("data.0.sync_trigger_reason.ui_tag"))
		require.NotNil(t, scheduled.at("data.0.scheduled_execution_time"))

		w.changeSource(`DROP TABLE customers`)
		bad := w.runs(id).ended("failed")
		check(bad, "data.", live)
		for _, key := range []string{"error_code", "error_message"} {
			require.NotEmpty(t, bad.at("data."+key))
		}
		check(w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", id), w.key, nil).want(200), "data.0.", live)
	})
}

// TestCancelledRunsShowTheirEnd in both dialects: no one has seen them without.
func TestCancelledRunsShowTheirEnd(t *testing.T) {
	inBothDialects(t, func(t *testing.T, _ bool, change func(*Config)) {
		w, id := newKept(t, nil, change)
		run, release := w.held(id)
		w.do("POST", fmt.Sprintf("/sync_runs/%d/cancel", run), w.key, nil).want(200)
		release()
		w.control("POST", "/settle", nil).want(200)
		a := w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200)
		require.Equal(t, true, a.at("data.canceled"))
		require.NotNil(t, a.at("data.completed_at"))
		require.NotNil(t, a.at("data.records_processed"))
	})
}

// TestEngineOfAnyType: a client that requests the advanced engine everywhere gets
// it back, and gets a warning where there is none.
func TestEngineOfAnyType(t *testing.T) {
	inBothDialects(t, func(t *testing.T, live bool, change func(*Config)) {
		w := newSyncWorld(t, change)
		body := map[string]any{"name": "Advanced", "type": "sqlite", "sync_engine": "advanced", "credentials": map[string]any{"path": w.sourceFile()}}
		a := w.do("POST", "/sources", w.key, connection(body)).accepted(live, 201, "connection.sync_engine")
		has := w.do("POST", "/sources", w.key, connection(map[string]any{
			"name": "Warehouse", "type": "snowflake", "sync_engine": "advanced",
			"credentials": map[string]any{"account": "a", "warehouse": "w", "database": "d", "user": "u", "password": "p"},
		})).want(201)
		require.Empty(t, has.header.Get("Warning"))
		has.is("data.sync_engine", "advanced", "data.read_only_connection", false)
		if !live {
			return
		}
		require.Contains(t, a.header.Get("Warning"), "sync_engine")
		path := fmt.Sprintf("/sources/%d", a.id("data.id"))
		for _, shown := range []*answer{a, w.do("GET", path, w.key, nil).want(200), w.do("PATCH", path, w.key, connection(map[string]any{"sync_engine": "advanced"})).want(200)} {
			require.Equal(t, "advanced", shown.at("data.sync_engine"))
			require.Equal(t, true, shown.at("data.read_only_connection"), "nothing is written into it")
		}
		require.Contains(t, w.do("PATCH", path, w.key, connection(map[string]any{"sync_engine": "basic"})).want(400).at("message"), "cannot be changed")
		run := w.runs(w.do("POST", "/syncs", w.key, syncBody(a.id("data.id"), w.dest)).want(200).id("data.sync_id")).ended("completed")
		require.Equal(t, [7]int64{1, 1, 0, 0, 1, 1, 0}, run.counts())
	})
}

// TestRefusedSecretFailsRuns: an emulated application lets no one in with a
// secret that it refuses, neither a test nor a run.
func TestRefusedSecretFailsRuns(t *testing.T) {
	inBothDialects(t, func(t *testing.T, _ bool, change func(*Config)) {
		w := newSyncWorld(t, change)
		id := w.emulated("salesforce").id("data.id")
		secret := func(word string) *answer {
			return w.do("PATCH", fmt.Sprintf("/destinations/%d", id), w.key, map[string]any{"service_connection": map[string]any{"credentials": map[string]any{"client_secret": word}}}).want(200)
		}
		sync := w.kept(map[string]any{
			"destination_attributes": map[string]any{"connection_id": id, "object": "Contact"},
			"mappings":               []any{column("email", "Email", true), column("name", "LastName", false)},
		}).id("data.id")
		require.Equal(t, false, secret("wrong").at("data.last_test_succeeded"))
		refused := w.runs(sync).ended("failed")
		require.Equal(t, "UNAUTHORIZED", refused.at("data.error_code"))
		require.Contains(t, refused.at("data.error_message"), "Salesforce refuses the client_secret")
		w.do("GET", fmt.Sprintf("/destinations/%d/objects", id), w.key, nil).want(502)
		require.Equal(t, true, secret("another").at("data.last_test_succeeded"))
		w.runs(sync).ended("completed")
	})
}
